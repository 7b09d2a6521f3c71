"""What plans need of the catalog and of the datasets, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from srbench_kit.values import Json

# How leases name the driver of a harness: this and the name of its runner.
HARNESS_PREFIX = "harness:"


class HarnessSpec(Protocol):
    """What a benchmark says of the harness that runs its cases."""

    @property
    def runner(self) -> str:
        """Name of the runner, as executors know it."""

    @property
    def task_fields(self) -> tuple[str, ...]:
        """The fields of a case's metadata that the runner is given."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The benchmark options that must name a target beside the subject: `simulator`, `judge`."""

    def needs(self, metadata: Mapping[str, Json]) -> HarnessNeeds:
        """What one case needs of a plan's limits."""


@dataclass(frozen=True, slots=True)
class HarnessNeeds:
    """What a case needs of a plan's limits, at least: seconds in all, and model calls."""

    case_timeout_s: float = 0.0
    calls: int = 1


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

    @property
    def harness(self) -> HarnessSpec | None:
        """Where the driver is `harness`: who runs its cases; else `None`."""


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
