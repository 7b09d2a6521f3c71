"""Joining datasets, and choosing the one that serves a benchmark. Pure but for reading the store."""

from __future__ import annotations

from dataclasses import dataclass

from srbench_kit.errors import InvalidInput

from srbench_planner.benchmark import DEFAULT_SEED, Profile
from srbench_planner.catalog import Catalog
from srbench_planner.dataset import Case, Dataset, SourceRecord
from srbench_planner.datasets import DatasetStore

MAX_PARTS = 32
MAX_CANDIDATES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """Which datasets hold a benchmark, the preferred one first; `reason` says why none can be used."""

    benchmark: str
    case_count: int = 0
    source_ids: tuple[str, ...] = ()
    reason: str = ""

    @property
    def eligible(self) -> bool:
        """Whether the benchmark can be used."""
        return not self.reason


@dataclass(frozen=True, slots=True)
class ProfileSelection:
    """The datasets of one profile by benchmark, all of one seed."""

    profile: Profile
    seed: int
    benchmarks: tuple[Selected, ...]


def compose(store: DatasetStore, catalog: Catalog, dataset_ids: list[str], wanted: list[str]) -> Dataset:
    """One dataset of the `wanted` benchmarks (all when empty) of several datasets.

    A dataset that has exactly these benchmarks already is returned as it is. Parts must share profile and seed; a
    benchmark that several parts hold must have the same cases in each.
    Raises: `InvalidInput` (`BAD_DATASET_IDS`, `DUPLICATE_BENCHMARK`, `PROFILE_CONFLICT`, `SEED_CONFLICT`,
    `BENCHMARK_CONFLICT`, `BENCHMARK_MISSING`), `NotFound` (`NO_SUCH_DATASET`).
    """
    if not 1 <= len(dataset_ids) <= MAX_PARTS:
        raise InvalidInput(
            "BAD_DATASET_IDS", f"dataset_ids has {len(dataset_ids)} entries; expected 1 to {MAX_PARTS}", field="dataset_ids"
        )
    if len(set(wanted)) != len(wanted):
        raise InvalidInput("DUPLICATE_BENCHMARK", "benchmarks names one twice; expected each once", field="benchmarks")
    parts = sorted({found.id: found for found in map(store.get, dataset_ids)}.values(), key=lambda part: part.id)
    _check_agreement(parts)
    benchmarks = sorted(wanted or {name for part in parts for name in part.benchmarks})
    owners = {benchmark: _owner(store, parts, benchmark) for benchmark in benchmarks}
    whole = [part for part in parts if list(part.benchmarks) == benchmarks]
    if whole:
        return whole[0]
    return _publish(store, catalog, owners)


def _check_agreement(parts: list[Dataset]) -> None:
    first = parts[0]
    for part in parts[1:]:
        if part.profile != first.profile:
            raise InvalidInput(
                "PROFILE_CONFLICT",
                f"{part.id[:12]} is {part.profile} and {first.id[:12]} is {first.profile}; expected one profile",
                field="dataset_ids",
            )
        if part.seed != first.seed:
            raise InvalidInput(
                "SEED_CONFLICT",
                f"{part.id[:12]} has seed {part.seed} and {first.id[:12]} has {first.seed}; expected one seed",
                field="dataset_ids",
            )


def _owner(store: DatasetStore, parts: list[Dataset], benchmark: str) -> Dataset:
    """The part that gives the benchmark's cases."""
    holders = [part for part in parts if benchmark in part.benchmarks]
    if not holders:
        raise InvalidInput(
            "BENCHMARK_MISSING",
            f"none of the datasets holds {benchmark}; expected one that does",
            field="benchmarks",
            value=benchmark,
        )
    if len({store.index(part).digests[benchmark] for part in holders}) > 1:
        ids = ", ".join(part.id[:12] for part in holders)
        raise InvalidInput(
            "BENCHMARK_CONFLICT",
            f"{ids} hold different cases of {benchmark}; leave all but one out",
            field="dataset_ids",
            value=benchmark,
        )
    return holders[0]


def _publish(store: DatasetStore, catalog: Catalog, owners: dict[str, Dataset]) -> Dataset:
    cases: list[Case] = []
    sources: dict[str, SourceRecord] = {}
    planned: dict[str, int] = {}
    first = next(iter(owners.values()))
    for benchmark, owner in owners.items():
        cases += [case for case in store.cases(owner) if case["benchmark"] == benchmark]
        sources[benchmark] = owner.sources[benchmark]
        known = {spec.id: spec for spec in catalog.benchmarks}.get(benchmark)
        planned[benchmark] = known.counts.of(owner.profile) if known else owner.counts[benchmark]
    return store.publish(
        sorted(cases, key=lambda case: str(case["id"])),
        profile=first.profile,
        seed=first.seed,
        sources=sources,
        custom_subset=any(owner.custom_subset for owner in owners.values()),
        planned=planned,
    )


def select_by_profile(store: DatasetStore, catalog: Catalog, profile: Profile) -> ProfileSelection:
    """For each benchmark of the catalog, the full datasets of `profile` that hold it.

    All must have one seed: the default one if any dataset has it, else the lowest.
    """
    full = [part for part in store.list()[:MAX_CANDIDATES] if part.profile == profile and not part.custom_subset]
    seeds = {part.seed for part in full}
    seed = DEFAULT_SEED if DEFAULT_SEED in seeds or not seeds else min(seeds)
    chosen = tuple(_select(store, full, seed, spec.id) for spec in catalog.benchmarks)
    return ProfileSelection(profile, seed, chosen)


def _select(store: DatasetStore, full: list[Dataset], seed: int, benchmark: str) -> Selected:
    holders = [part for part in full if benchmark in part.benchmarks]
    if not holders:
        return Selected(benchmark=benchmark, reason="not_prepared")
    fitting = [part for part in holders if part.seed == seed]
    ids = tuple(part.id for part in sorted(fitting or holders, key=_preference))
    if not fitting:
        return Selected(benchmark=benchmark, source_ids=ids, reason="seed_conflict")
    if len({store.index(part).digests[benchmark] for part in fitting}) > 1:
        return Selected(benchmark=benchmark, source_ids=ids, reason="source_conflict")
    return Selected(benchmark=benchmark, case_count=fitting[0].counts[benchmark], source_ids=ids)


def _preference(part: Dataset) -> tuple[int, int, str]:
    """Fewest benchmarks first, then fewest cases, then the lowest id."""
    return len(part.benchmarks), part.case_count, part.id
