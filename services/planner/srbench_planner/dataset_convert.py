"""Catalog, datasets and preparations as messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.timestamp_pb2 import Timestamp
from srbench.v1 import plan_pb2
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit.values import to_value

from srbench_planner.benchmark import PROFILE_PURPOSE, PROFILES, PROTOCOL, BenchmarkSpec, split_of
from srbench_planner.catalog import MODES, Catalog
from srbench_planner.composition import ProfileSelection
from srbench_planner.dataset import Dataset, SourceRecord
from srbench_planner.datasets import CasePage
from srbench_planner.preparation_records import Job
from srbench_planner.prepare import PreparationRequest, check_request
from srbench_planner.public_view import PublicView


def timestamp(seconds: float) -> Timestamp:
    """Seconds since 1970 as a message, to the microsecond."""
    microseconds = round(seconds * 1_000_000)
    return Timestamp(seconds=microseconds // 1_000_000, nanos=microseconds % 1_000_000 * 1000)


def catalog(known: Catalog) -> pb.Catalog:
    """The catalog with its profiles and modes."""
    totals = known.totals()
    return pb.Catalog(
        version=PROTOCOL,
        benchmarks=[benchmark(spec) for spec in known.benchmarks],
        profiles=[
            pb.Profile(id=name, description=PROFILE_PURPOSE[name], split=split_of(name), total=totals[name])
            for name in PROFILES
        ],
        modes=MODES,
    )


def benchmark(spec: BenchmarkSpec) -> pb.Benchmark:
    """One benchmark."""
    return pb.Benchmark(
        id=spec.id,
        title=spec.title,
        kind=spec.kind,
        source_url=spec.source_url,
        adapter_version=spec.adapter_version,
        weight=spec.weight,
        revision=spec.source.revision,
        smoke_count=spec.counts.smoke,
        quick_count=spec.counts.quick,
        standard_count=spec.counts.standard,
        available=spec.available,
    )


def dataset(found: Dataset) -> pb.Dataset:
    """One stored dataset."""
    return pb.Dataset(
        id=found.id,
        name=found.name,
        version=found.version,
        sha256=found.sha256,
        case_count=found.case_count,
        profile=found.profile,
        split=found.split,
        custom_subset=found.custom_subset,
        benchmarks=found.benchmarks,
        sources=[_source(name, record) for name, record in sorted(found.sources.items())],
        seed=found.seed,
        selection=found.selection,
        counts=found.counts,
        path=found.path,
        manifest_path=found.manifest_path,
        create_time=timestamp(found.create_time_s),
    )


def _source(name: str, record: SourceRecord) -> pb.DatasetSource:
    return pb.DatasetSource(
        benchmark=name,
        url=record.url,
        revision=record.revision,
        files=[pb.SourceFile(name=file.name, sha256=file.sha256) for file in record.files],
        revision_verification=record.revision_verification,
        license_url=record.license_url,
        access_note=record.access_note,
        normalizer=record.normalizer,
    )


def request(known: Catalog, message: pb.CreateDatasetPreparationRequest) -> PreparationRequest:
    """The checked request in a message. Raises as `prepare.check_request`."""
    return check_request(
        known,
        benchmarks=list(message.benchmarks),
        profile=message.profile,
        seed=message.seed if message.HasField("seed") else None,
        limit=message.limit if message.HasField("limit") else None,
        source_path=message.source_path,
        revision=message.revision,
    )


def preparation(job: Job, prepared: Dataset | None) -> pb.DatasetPreparation:
    """One job; `prepared` is its dataset, when it has one that still exists."""
    asked = job.request
    return pb.DatasetPreparation(
        id=job.id,
        request=pb.CreateDatasetPreparationRequest(
            benchmarks=asked.benchmarks,
            profile=asked.profile,
            seed=asked.seed,
            limit=asked.limit,
            source_path=asked.source_path,
            revision=asked.revision,
        ),
        status=job.status,
        phase=job.phase,
        benchmark=job.benchmark,
        done_count=job.done_count,
        total_count=job.total_count,
        byte_count=job.byte_count,
        dataset=dataset(prepared) if prepared is not None else None,
        reason=job.reason,
        error=job.error,
        create_time=timestamp(job.create_time_s),
        update_time=timestamp(job.update_time_s),
    )


def page(found: CasePage) -> pb.ListDatasetCasesResponse:
    """A page of cases."""
    return pb.ListDatasetCasesResponse(
        cases=[case(view) for view in found.cases],
        total=found.total,
        dataset_total=found.dataset_total,
        next_cursor=found.next_cursor,
        limit=found.limit,
        categories={_utf8(name): count for name, count in found.categories.items()},
    )


def case(view: PublicView) -> pb.DatasetCase:
    """A case without its answer."""
    return pb.DatasetCase(
        id=view.id,
        benchmark=view.benchmark,
        category=view.category,
        question=_utf8(view.question),
        messages=[plan_pb2.ChatMessage(role=role, content=to_value(text)) for role, text in view.messages],
        choices=[_utf8(choice) for choice in view.choices],
        input=to_value(view.input) if view.input is not None else None,
    )


def _utf8(text: str) -> str:
    """`text` without half surrogates, which a message cannot carry."""
    return text.encode("utf-8", "replace").decode()


def selection(found: ProfileSelection) -> pb.DatasetSelection:
    """Which dataset of a profile would be used, by benchmark."""
    return pb.DatasetSelection(
        profile=found.profile,
        split=split_of(found.profile),
        seed=found.seed,
        benchmarks=[
            pb.SelectedBenchmark(
                benchmark=each.benchmark,
                eligible=each.eligible,
                case_count=each.case_count,
                source_ids=each.source_ids,
                reason=each.reason,
            )
            for each in found.benchmarks
        ],
    )


def datasets(found: Iterable[Dataset], next_page_token: str) -> pb.ListDatasetsResponse:
    """A page of datasets."""
    return pb.ListDatasetsResponse(datasets=[dataset(each) for each in found], next_page_token=next_page_token)
