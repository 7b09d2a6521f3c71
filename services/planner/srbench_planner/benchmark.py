"""What a benchmark is: data in one frozen value. `benchmarks/` has one file a benchmark; other packages may bring more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner.ports import HarnessNeeds

ID_PATTERN = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}\Z")
PROTOCOL = "sr-bench-1.0"
DEFAULT_SEED = 20260918
MAX_SEED = 2**53 - 1
# Version of the row rules and prompts here; 'v1' is the released implementation's.
NORMALIZER = "sr-bench-normalizer-v2"

Profile: TypeAlias = Literal["smoke", "quick", "standard"]
PROFILES: tuple[Profile, ...] = ("smoke", "quick", "standard")
PROFILE_PURPOSE: dict[Profile, str] = {
    "smoke": "A few cases of every kind, to see that everything is connected.",
    "quick": "The fixed development set.",
    "standard": "The frozen holdout; it shares no case with quick.",
}


def split_of(profile: Profile) -> str:
    """`dev`, or `holdout` for the standard profile."""
    return "holdout" if profile == "standard" else "dev"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSource:
    """Files of a Hugging Face dataset at a fixed revision.

    Attributes:
        repository: `owner/name` of the dataset.
        revision: commit, 40 hex digits.
        files: paths within the repository, in reading order.
        license_url: where the terms are.
        access_note: what a user must know before downloading.
        gated: whether the terms must be accepted with an account first.
    """

    repository: str
    revision: str
    files: tuple[str, ...]
    license_url: str
    access_note: str
    gated: bool = False

    @property
    def url(self) -> str:
        """The dataset's page."""
        return f"https://huggingface.co/datasets/{self.repository}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """A folder of a Git repository at a fixed commit.

    Attributes:
        repository: `owner/name` on the host.
        revision: commit, 40 hex digits.
        folder: path of the task folder within the repository.
        files: paths within `folder` of the files that hold the tasks; empty when each `.json` file in it is a task.
        package: PyPI package that ships the same tasks, readable as `<package>:`; empty for none.
        task_file: where tasks are folders, the TOML file that each of them holds; empty where each is a JSON file.
    """

    repository: str
    revision: str
    folder: str
    license_url: str
    access_note: str
    files: tuple[str, ...] = ()
    package: str = ""
    task_file: str = ""

    @property
    def url(self) -> str:
        """The repository's page."""
        return f"https://github.com/{self.repository}"


Source: TypeAlias = HubSource | GitSource


@dataclass(frozen=True, slots=True)
class Counts:
    """How many cases each profile takes."""

    smoke: int
    quick: int
    standard: int

    def of(self, profile: Profile) -> int:
        """The count of one profile."""
        return {"smoke": self.smoke, "quick": self.quick, "standard": self.standard}[profile]

    def start(self, profile: Profile) -> int:
        """Where the profile's window begins in the selection order."""
        return self.quick if profile == "standard" else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a source as it was read.

    Attributes:
        position: its place in the source, from 0.
        where: how messages name it, such as `row 12` or `0934a4d8.json`.
        values: its fields; empty when it could not be read.
        problem: why it could not be read; empty otherwise.
    """

    position: int
    where: str
    values: Mapping[str, Json] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task, normalised: what a case is made of.

    Attributes:
        identity: its name within the benchmark.
        stratum: the group it is drawn from.
        prompt: text of the one user message; empty where a harness asks the model.
        messages: (role, text) of all messages, where one prompt is not all that is asked.
        answer: the reference; `None` where hidden tests take its place.
        choices: texts of the options in the order of the letters.
        metadata: more facts, never sent to a model.
    """

    identity: str
    stratum: str
    prompt: str = ""
    messages: tuple[tuple[str, str], ...] = ()
    answer: Json = None
    choices: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)


def _needs_little(_metadata: Mapping[str, Json]) -> HarnessNeeds:
    return HarnessNeeds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """Who runs the cases of an agent benchmark.

    Attributes:
        runner: name of the runner, as executors know it (`srbench_executor.harness.runners`, or another package's).
        task_fields: the fields of a case's metadata that the runner is given; no others leave the planner.
        roles: the benchmark options that must name a target beside the subject: `simulator`, `judge`.
        needs: what one case, by its metadata, needs of a plan's limits; a plan that gives less is refused.
    """

    runner: str
    task_fields: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    needs: Callable[[Mapping[str, Json]], HarnessNeeds] = _needs_little


# Reads the rows of a source from its files, (name, path) in the order of the source, where no common reader fits.
# Raises `InvalidInput` (`BAD_SOURCE`).
ReadFiles: TypeAlias = Callable[[Sequence[tuple[str, Path]]], Iterator[Row]]
# Whether a row belongs to the benchmark at all; the others are left out without a word.
Keeps: TypeAlias = Callable[[Row], bool]
# The part of a row that is too large for a case and for graders' eyes only, such as hidden tests, as bytes. It is stored
# apart, by the SHA-256 that the case's metadata names. Raises `InvalidInput` (`BAD_ROW`).
Hidden: TypeAlias = Callable[[Row], bytes]
# Makes a task of a row. The seed is the dataset's. Raises `InvalidInput` (`BAD_ROW`), whose fact `field` names the fault.
Normalize: TypeAlias = Callable[[Row, int], Task]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkSpec:
    """A benchmark.

    Attributes:
        id: lower-case letters, digits, dots and hyphens, at most 64.
        kind: `multiple-choice`, `grid`, `judge`, `code` or `agent`.
        weight: its part of the headline score.
        adapter_version: changes whenever prompt or grader change.
        source_url: the page for people.
        source: where the tasks are fetched.
        driver: how the executor talks to the model.
        grader: how the answer is judged.
        columns: fields every row must have; a file without them is refused as the wrong file.
        read: reads the rows of a source of several files that belong together; `None` for the common readers.
        normalize: makes a task of a row; `None` until this build can prepare the benchmark.
        keeps: which rows belong to the benchmark; `None` for all.
        hidden: the part of a row that is stored apart; `None` where there is none.
        harness: who runs its cases where `driver` is `harness`; `None` elsewhere.
        order: `proportional`, or `balanced` (round robin over the strata).
    """

    id: str
    title: str
    kind: str
    weight: float
    adapter_version: str
    source_url: str
    source: Source
    counts: Counts
    driver: str
    grader: str
    columns: tuple[str, ...] = ()
    read: ReadFiles | None = None
    normalize: Normalize | None = None
    keeps: Keeps | None = None
    hidden: Hidden | None = None
    harness: Harness | None = None
    normalizer: str = NORMALIZER
    order: Literal["proportional", "balanced"] = "proportional"
    requires_answer: bool = True
    requires_messages: bool = True

    def __post_init__(self) -> None:
        if not ID_PATTERN.match(self.id):
            raise InvalidInput(
                "BAD_BENCHMARK",
                f"benchmark id {self.id!r} is malformed; expected at most 64 lower-case letters, digits, dots, hyphens",
                field="id",
            )
        if not 0 < self.weight < float("inf"):
            raise InvalidInput(
                "BAD_BENCHMARK", f"weight of benchmark {self.id} is {self.weight}; expected above 0", field="weight"
            )
        if (self.driver == "harness") != (self.harness is not None):
            raise InvalidInput(
                "BAD_BENCHMARK",
                f"benchmark {self.id} has the driver {self.driver}; expected harness exactly where a Harness is given",
                field="harness",
            )

    @property
    def available(self) -> bool:
        """Whether this build can prepare and run it."""
        return self.normalize is not None


def bad_row(name: str, message: str) -> InvalidInput:
    """The error for one field of a row."""
    return InvalidInput("BAD_ROW", message, field=name)


def text_of(row: Row, name: str, *, blank: bool = False) -> str:
    """The text in field `name` as it stands. Raises `InvalidInput` when it is absent, no text or (unless `blank`) empty."""
    value = row.values.get(name)
    if not isinstance(value, str):
        shown = "null" if value is None else type(value).__name__
        raise bad_row(name, f"{name} is {shown}; expected text")
    if not blank and not value.strip():
        raise bad_row(name, f"{name} is empty; expected text")
    return value


def identity_of(row: Row, names: Iterable[str] = ("id", "question_id", "problem_id")) -> str:
    """The row's upstream identity: the first of `names` it has, else its position, as text.

    Raises: `InvalidInput` for an identity that is neither text nor an integer.
    """
    for name in names:
        if name in row.values:
            value = row.values[name]
            if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
                raise bad_row(name, f"{name} is {value!r}; expected text or an integer")
            return str(value)
    return str(row.position)
