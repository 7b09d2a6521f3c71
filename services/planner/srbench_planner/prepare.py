"""Prepares the datasets of one request: fetch, read, select, freeze. Runs in a process of its own (`prepare_worker`)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from srbench_kit.errors import Exhausted, InvalidInput
from srbench_kit.values import Json

from srbench_planner import sources
from srbench_planner.benchmark import DEFAULT_SEED, BenchmarkSpec, Profile
from srbench_planner.catalog import Catalog
from srbench_planner.composition import compose
from srbench_planner.dataset import Dataset
from srbench_planner.datasets import DatasetStore
from srbench_planner.freezing import cases_of, select
from srbench_planner.hidden_parts import HiddenParts
from srbench_planner.selection import check_profile, check_seed

MIN_FREE_BYTES = 256 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationRequest:
    """What is to be prepared.

    Attributes:
        limit: only the first so many cases of each benchmark; `None` for all.
        source_path: absolute path on this machine, or `<package>:`; empty for the pinned source.
        revision: the revision of `source_path`.
    """

    benchmarks: tuple[str, ...]
    profile: Profile = "quick"
    seed: int = DEFAULT_SEED
    limit: int | None = None
    source_path: str = ""
    revision: str = ""

    def to_json(self) -> dict[str, Json]:
        """The request as a JSON object."""
        return {
            "benchmarks": list(self.benchmarks),
            "profile": self.profile,
            "seed": self.seed,
            "limit": self.limit,
            "source_path": self.source_path,
            "revision": self.revision,
        }


def check_request(
    catalog: Catalog,
    *,
    benchmarks: list[str],
    profile: str = "",
    seed: int | None = None,
    limit: int | None = None,
    source_path: str = "",
    revision: str = "",
) -> PreparationRequest:
    """The request with its defaults, checked as far as that is possible without reading anything.

    Raises: `InvalidInput` (`NO_BENCHMARK`, `DUPLICATE_BENCHMARK`, `NO_SUCH_BENCHMARK`, `NOT_AVAILABLE`, `BAD_PROFILE`,
    `BAD_SEED`, `BAD_LIMIT`, `BAD_SOURCE`, `BAD_REVISION`).
    """
    if not benchmarks:
        raise InvalidInput("NO_BENCHMARK", "benchmarks is empty; expected at least one", field="benchmarks")
    if len(set(benchmarks)) != len(benchmarks):
        raise InvalidInput("DUPLICATE_BENCHMARK", "benchmarks names one twice; expected each once", field="benchmarks")
    specs = [catalog.preparable(benchmark) for benchmark in benchmarks]
    checked = check_profile(profile or "quick")
    for spec in specs:
        count = spec.counts.of(checked)
        if limit is not None and not 1 <= limit <= count:
            raise InvalidInput(
                "BAD_LIMIT",
                f"limit is {limit}; expected 1 to {count}, the size of {spec.id}/{checked}",
                field="limit",
                value=limit,
            )
    if source_path:
        if len(specs) != 1:
            raise InvalidInput("BAD_SOURCE", "source_path fits one benchmark only", field="source_path")
        sources.check_local(source_path, revision, specs[0])
    elif revision:
        raise InvalidInput("BAD_REVISION", "revision needs a source_path; pinned sources have theirs", field="revision")
    return PreparationRequest(
        benchmarks=tuple(benchmarks),
        profile=checked,
        seed=DEFAULT_SEED if seed is None else check_seed(seed),
        limit=limit,
        source_path=source_path,
        revision=revision,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a preparation is: phase, the benchmark in hand, benchmarks done, bytes of the source in hand."""

    phase: str
    benchmark: str = ""
    done_count: int = 0
    byte_count: int = 0


Report = Callable[[Progress], None]


def prepare(catalog: Catalog, store: Path, request: PreparationRequest, report: Report) -> Dataset:
    """The dataset that `request` asks for; several benchmarks are prepared one after another and joined.

    Raises: what the sources, the readers, the selection and the store raise.
    """
    datasets = DatasetStore(store)
    parts: list[Dataset] = []
    for done, benchmark in enumerate(request.benchmarks):
        spec = catalog.preparable(benchmark)
        part = _reusable(datasets, spec, request)
        parts.append(part or _prepare_one(datasets, spec, store, request, _at(report, benchmark, done)))
    report(Progress(phase="freezing", done_count=len(parts)))
    return compose(datasets, catalog, [part.id for part in parts], list(request.benchmarks))


def _at(report: Report, benchmark: str, done: int) -> Callable[[str, int], None]:
    return lambda phase, count: report(Progress(phase=phase, benchmark=benchmark, done_count=done, byte_count=count))


def _reusable(datasets: DatasetStore, spec: BenchmarkSpec, request: PreparationRequest) -> Dataset | None:
    """A full dataset made of the pinned source already, by the code of today."""
    if request.source_path or _is_custom(spec, request):
        return None
    for dataset in datasets.list():
        record = dataset.sources.get(spec.id)
        if (
            record is not None
            and dataset.benchmarks == (spec.id,)
            and (dataset.profile, dataset.seed, dataset.custom_subset) == (request.profile, request.seed, False)
            and (record.revision, record.normalizer) == (spec.source.revision, spec.normalizer)
            and record.revision_verification != sources.DECLARED
        ):
            return dataset
    return None


def _is_custom(spec: BenchmarkSpec, request: PreparationRequest) -> bool:
    return request.limit is not None and request.limit < spec.counts.of(request.profile)


def _prepare_one(
    datasets: DatasetStore,
    spec: BenchmarkSpec,
    store: Path,
    request: PreparationRequest,
    report: Callable[[str, int], None],
) -> Dataset:
    _check_space(store)
    report("downloading", 0)
    if request.source_path:
        fetched = sources.local(spec, request.source_path, request.revision)
    else:
        fetched = sources.pinned(spec, store / "cache", lambda count: report("downloading", count))
    size = sum(path.stat().st_size for _, path in fetched.files)
    report("reading", size)
    record = fetched.record(spec.normalizer)
    cases = cases_of(spec, fetched.rows(), seed=request.seed, revision=fetched.revision, name=fetched.name)
    if fetched.record(spec.normalizer) != record:
        raise InvalidInput("FILE_CHANGED", f"{fetched.name} changed while it was read; ask again when it is at rest")
    chosen = select(spec, cases, profile=request.profile, seed=request.seed, limit=request.limit)
    if spec.hidden is not None:
        report("reading", size)
        HiddenParts(store).keep(spec, fetched.rows(), chosen)
    report("freezing", size)
    return datasets.publish(
        chosen,
        profile=request.profile,
        seed=request.seed,
        sources={spec.id: record},
        custom_subset=_is_custom(spec, request),
        planned={spec.id: spec.counts.of(request.profile)},
    )


def _check_space(store: Path) -> None:
    free = shutil.disk_usage(store).free
    if free < MIN_FREE_BYTES:
        raise Exhausted(
            "NO_SPACE", f"the store has {free} bytes free; preparing needs at least {MIN_FREE_BYTES}", value=free
        )
