"""The benchmarks this planner knows: the built-in ones and those that installed packages bring."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from srbench_kit.errors import InvalidInput

from srbench_planner.benchmark import PROFILES, BenchmarkSpec, Profile
from srbench_planner.benchmarks import BUILT_IN

ENTRY_POINT_GROUP = "srbench.benchmarks"
MODES = ("live", "preview")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Benchmarks in catalog order; ids are unique."""

    benchmarks: tuple[BenchmarkSpec, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for spec in self.benchmarks:
            if spec.id in seen:
                raise InvalidInput(
                    "DUPLICATE_BENCHMARK", f"two benchmarks have the id {spec.id!r}; expected one", value=spec.id
                )
            seen.add(spec.id)

    def get(self, benchmark: str) -> BenchmarkSpec:
        """The benchmark named `benchmark`. Raises `InvalidInput` (`NO_SUCH_BENCHMARK`)."""
        for spec in self.benchmarks:
            if spec.id == benchmark:
                return spec
        known = ", ".join(spec.id for spec in self.benchmarks)
        raise InvalidInput(
            "NO_SUCH_BENCHMARK",
            f"there is no benchmark {benchmark!r}; expected one of {known}",
            field="benchmark",
            value=benchmark,
        )

    def preparable(self, benchmark: str) -> BenchmarkSpec:
        """`get`, for a benchmark that this build can prepare. Raises also `InvalidInput` (`NOT_AVAILABLE`)."""
        spec = self.get(benchmark)
        if not spec.available:
            can = ", ".join(each.id for each in self.benchmarks if each.available)
            raise InvalidInput(
                "NOT_AVAILABLE",
                f"this build cannot prepare {benchmark}; expected one of {can}",
                field="benchmark",
                value=benchmark,
            )
        return spec

    def totals(self) -> dict[Profile, int]:
        """Cases of each profile over the benchmarks."""
        return {profile: sum(spec.counts.of(profile) for spec in self.benchmarks) for profile in PROFILES}


def load(found: Iterable[EntryPoint] | None = None) -> Catalog:
    """The catalog. `found` stands in for the installed entry points of the group `srbench.benchmarks`.

    An entry point names a `BenchmarkSpec`, or a function without arguments that gives one.
    Raises: `InvalidInput` (`DUPLICATE_BENCHMARK`, `BAD_BENCHMARK`).
    """
    points = entry_points(group=ENTRY_POINT_GROUP) if found is None else found
    return Catalog((*BUILT_IN, *(_from_package(point) for point in sorted(points, key=lambda point: point.name))))


def _from_package(point: EntryPoint) -> BenchmarkSpec:
    loaded: BenchmarkSpec | Callable[[], object] = point.load()
    spec = loaded() if callable(loaded) else loaded
    if not isinstance(spec, BenchmarkSpec):
        raise InvalidInput(
            "BAD_BENCHMARK",
            f"entry point {point.name!r} ({point.value}) gives a {type(spec).__name__}; expected a BenchmarkSpec",
            value=point.value,
        )
    _log.info("benchmark %s comes from the entry point %s", spec.id, point.value)
    return spec
