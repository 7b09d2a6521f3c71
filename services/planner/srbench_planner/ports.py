"""What plans need of the catalog and of the datasets, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from srbench_kit.values import Json


class BenchmarkSpec(Protocol):
    """One registered benchmark."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def kind(self) -> str:
        """`multiple-choice`, `grid`, `judge`, `code` or `agent`."""

    @property
    def weight(self) -> float:
        """Its weight in the score."""

    @property
    def adapter_version(self) -> str:
        """Version of prompt and grader together."""

    @property
    def driver(self) -> str:
        """How the executor talks to the model."""

    @property
    def grader(self) -> str:
        """Name of the grader."""

    @property
    def requires_answer(self) -> bool:
        """Whether a live case needs a reference answer."""

    @property
    def requires_messages(self) -> bool:
        """Whether a case needs messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmarks:
    """The registered benchmarks.

    Attributes:
        specs: by id, in catalog order.
        built_in: ids of those whose weights stand in every plan.
    """

    specs: Mapping[str, BenchmarkSpec]
    built_in: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundFile:
    """A dataset file as read.

    Attributes:
        path: where it lies, absolute.
        sha256: of its bytes.
        cases: its rows in order.
        sibling: the `manifest.json` beside it, if there is one that is an object.
    """

    path: str
    sha256: str
    cases: list[Json]
    sibling: dict[str, Json] | None


class CaseFiles(Protocol):
    """Reads dataset files. Called from threads."""

    def find(self, dataset_id: str) -> str | None:
        """The path of the cases of the dataset with this id, or a unique beginning of it; `None` when there is none."""

    def read(self, path: str, sha256: str) -> BoundFile:
        """Reads the file at `path`, whose bytes must have the digest `sha256` (any, when that is empty).

        Raises: `NotFound`, `InvalidInput`, `DataLoss`.
        """
