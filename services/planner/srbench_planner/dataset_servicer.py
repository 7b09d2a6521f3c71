"""The RPCs of `PlannerService` about the catalog and datasets. The planner's servicer inherits them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

from grpc import aio
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import planner_service_pb2_grpc as rpc
from srbench_kit import auth, pages
from srbench_kit.errors import Forbidden, SrBenchError

from srbench_planner import composition, dataset_convert
from srbench_planner.catalog import Catalog
from srbench_planner.dataset import Dataset
from srbench_planner.datasets import DatasetStore
from srbench_planner.preparation import PreparationJobs
from srbench_planner.preparation_records import Job
from srbench_planner.selection import check_profile

Context: TypeAlias = "aio.ServicerContext[Any, Any]"
T = TypeVar("T")


class DatasetServicer(rpc.PlannerServiceServicer):
    """Catalog, preparations and datasets. Reads of the disk run in threads."""

    def __init__(self, catalog: Catalog, datasets: DatasetStore, jobs: PreparationJobs) -> None:
        self._catalog, self._datasets, self._jobs = catalog, datasets, jobs

    async def GetCatalog(self, request: pb.GetCatalogRequest, context: Context) -> pb.Catalog:
        return dataset_convert.catalog(self._catalog)

    async def CreateDatasetPreparation(
        self, request: pb.CreateDatasetPreparationRequest, context: Context
    ) -> pb.DatasetPreparation:
        # `<package>:` names what is installed; anything else reads this machine's files.
        is_file = request.source_path != "" and not request.source_path.endswith(":")
        if is_file and not auth.actor(context).sees_all:
            raise Forbidden(
                "LOCAL_PATH_FORBIDDEN", "only administrators and local callers may name a file on the planner's machine"
            )
        return await self._shown(await self._jobs.create(dataset_convert.request(self._catalog, request)))

    async def GetDatasetPreparation(
        self, request: pb.GetDatasetPreparationRequest, context: Context
    ) -> pb.DatasetPreparation:
        return await self._shown(self._jobs.get(request.id))

    async def ListDatasetPreparations(
        self, request: pb.ListDatasetPreparationsRequest, context: Context
    ) -> pb.ListDatasetPreparationsResponse:
        size = pages.page_size(request.page_size, 100, 100)
        jobs, token = _page(self._jobs.list(), request.page_token, size)
        return pb.ListDatasetPreparationsResponse(
            preparations=[await self._shown(job) for job in jobs], next_page_token=token
        )

    async def ListDatasets(self, request: pb.ListDatasetsRequest, context: Context) -> pb.ListDatasetsResponse:
        size = pages.page_size(request.page_size, 100, 500)
        return dataset_convert.datasets(*_page(await asyncio.to_thread(self._datasets.list), request.page_token, size))

    async def GetDataset(self, request: pb.GetDatasetRequest, context: Context) -> pb.Dataset:
        return dataset_convert.dataset(await asyncio.to_thread(self._datasets.get, request.id))

    async def ListDatasetCases(self, request: pb.ListDatasetCasesRequest, context: Context) -> pb.ListDatasetCasesResponse:
        return await asyncio.to_thread(self._case_page, request)

    async def ComposeDatasets(self, request: pb.ComposeDatasetsRequest, context: Context) -> pb.Dataset:
        ids, wanted = list(request.dataset_ids), list(request.benchmarks)
        found = await asyncio.to_thread(composition.compose, self._datasets, self._catalog, ids, wanted)
        return dataset_convert.dataset(found)

    async def GetDatasetSelection(self, request: pb.GetDatasetSelectionRequest, context: Context) -> pb.DatasetSelection:
        profile = check_profile(request.profile)
        found = await asyncio.to_thread(composition.select_by_profile, self._datasets, self._catalog, profile)
        return dataset_convert.selection(found)

    def _case_page(self, request: pb.ListDatasetCasesRequest) -> pb.ListDatasetCasesResponse:
        found = self._datasets.public_cases(
            self._datasets.get(request.dataset_id),
            cursor=request.cursor,
            limit=request.page_size,
            benchmark=request.benchmark,
            category=request.category,
            query=request.query,
            case_id=request.case_id,
        )
        return dataset_convert.page(found)

    async def _shown(self, job: Job) -> pb.DatasetPreparation:
        prepared = await asyncio.to_thread(self._prepared, job) if job.dataset_id else None
        return dataset_convert.preparation(job, prepared)

    def _prepared(self, job: Job) -> Dataset | None:
        """The job's dataset; `None` when it was taken away since, which does not undo that the job was done."""
        try:
            return self._datasets.get(job.dataset_id)
        except SrBenchError:
            return None


def _page(items: Sequence[T], token: str, size: int) -> tuple[Sequence[T], str]:
    start = pages.decode(token)
    first = start if isinstance(start, int) and start >= 0 else 0
    following = first + size
    return items[first:following], pages.encode(following) if following < len(items) else ""
