"""Frozen plans in the tables, their inline cases in the blob store, and the cases in use in memory."""

from __future__ import annotations

import asyncio
import json
import logging
import weakref
from array import array
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench.v1 import plan_pb2
from srbench_kit.blobs import BlobStore
from srbench_kit.canonical import canonical_bytes
from srbench_kit.db import GroupWriter, Reader
from srbench_kit.errors import DataLoss, NotFound
from srbench_kit.values import Json, fill_value

from srbench_planner import convert, dataset_binding, store
from srbench_planner.case_set import CaseSet
from srbench_planner.cells import CellMatrix
from srbench_planner.freeze import FrozenPlan
from srbench_planner.journal import now_us
from srbench_planner.ports import Benchmarks, CaseFiles

# Case sets kept beyond the runs that use them, for graders and reports that ask a little later.
KEPT_CASE_SETS = 4
# Where inline cases lie among the objects.
BLOBS = "blobs"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """One row of `plans`."""

    number: int
    manifest: dict[str, Json]
    summary: plan_pb2.Plan
    cases_blob: str
    picked: bytes | None
    manifest_sha256: str

    @property
    def matrix(self) -> CellMatrix:
        """The planned cells."""
        picked = None if self.picked is None else array("q", self.picked)
        return CellMatrix(self.summary.case_count, len(self.summary.targets), picked)


class Plans:
    """Stores plans, and loads their cases once."""

    def __init__(
        self, writer: GroupWriter, reader: Reader, objects_url: str, benchmarks: Benchmarks, files: CaseFiles
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._objects_url = objects_url
        self._blobs: BlobStore | None = None
        self._benchmarks = benchmarks
        self._files = files
        self._sets: weakref.WeakValueDictionary[str, CaseSet] = weakref.WeakValueDictionary()
        self._recent: OrderedDict[str, CaseSet] = OrderedDict()
        self._loading: dict[str, asyncio.Task[CaseSet]] = {}

    async def save(self, frozen: FrozenPlan) -> StoredPlan:
        """Stores a frozen plan; the same manifest again is the same row."""
        blob = ""
        if "dataset" not in frozen.manifest:
            blob = await asyncio.to_thread(self._put_cases, frozen.cases)
        values = {
            "manifest_sha256": frozen.manifest_sha256,
            "plan_sha256": frozen.plan_sha256,
            "case_sha256": frozen.case_sha256,
            "cases_blob": blob,
            "manifest": json.dumps({k: v for k, v in frozen.manifest.items() if k != "cases"}, ensure_ascii=False),
            "picked": None if frozen.matrix.picked is None else frozen.matrix.picked.tobytes(),
            "summary": convert.plan(frozen).SerializeToString(),
            "create_us": now_us(),
        }

        def work(connection: Connection) -> StoredPlan:
            found = connection.execute(
                sa.select(store.plans).where(store.plans.c.manifest_sha256 == frozen.manifest_sha256)
            ).first()
            if found is None:
                connection.execute(store.plans.insert(), values)
                return _stored(_one(connection, store.plans.c.manifest_sha256 == frozen.manifest_sha256))
            if found.manifest != values["manifest"]:
                # Only places may differ under one name: the newest place is where the dataset was seen last.
                moved = store.plans.update().where(store.plans.c.number == found.number)
                connection.execute(moved.values(manifest=values["manifest"]))
                return _stored(_one(connection, store.plans.c.number == found.number))
            return _stored(found)

        stored = await self._writer.run(work)
        if blob and not await asyncio.to_thread(self._blob_store().has, blob):
            # Garbage collection took it before the row named it; from now on it does not.
            await asyncio.to_thread(self._put_cases, frozen.cases)
        if frozen.case_sha256 not in self._sets:
            self._keep(CaseSet(frozen.case_sha256, frozen.cases, self._benchmarks.specs))
        return stored

    async def get(self, plan_sha256: str) -> StoredPlan:
        """The newest plan of that name. Raises: `NotFound` (`NO_SUCH_PLAN`)."""
        found = await self._newest(store.plans.c.plan_sha256 == plan_sha256)
        if found is None:
            raise NotFound("NO_SUCH_PLAN", f"there is no plan {plan_sha256!r}", plan_sha256=plan_sha256)
        return found

    async def by_number(self, number: int) -> StoredPlan:
        """The plan in row `number`, which exists."""
        return await self._reader.run(lambda connection: _stored(_one(connection, store.plans.c.number == number)))

    async def cases(self, case_sha256: str) -> CaseSet:
        """The cases with that digest.

        Raises: `NotFound` (`NO_SUCH_PLAN`), and what reading a dataset or a blob raises.
        """
        kept = self._sets.get(case_sha256)
        if kept is not None:
            return kept
        task = self._loading.get(case_sha256)
        if task is None:
            task = self._loading[case_sha256] = asyncio.ensure_future(self._load(case_sha256))
            task.add_done_callback(lambda _: self._loading.pop(case_sha256, None))
        return await asyncio.shield(task)

    async def show(self, stored: StoredPlan, *, whole: bool, with_cases: bool = True) -> plan_pb2.Plan:
        """The plan with its manifest; inline cases as a reader may see them, or `whole` for the one who sent them."""
        manifest = dict(stored.manifest)
        if stored.cases_blob and with_cases:
            manifest["cases"] = await self._shown_cases(stored, whole=whole)
        message = plan_pb2.Plan()
        message.CopyFrom(stored.summary)
        fill_value(message.manifest, manifest)
        return message

    async def _shown_cases(self, stored: StoredPlan, *, whole: bool) -> Json:
        try:
            cases = (await self.cases(stored.summary.case_sha256)).cases
        except DataLoss as error:
            if whole:
                raise
            # Everything else that is known of a run is there to be seen.
            _log.error("a plan is shown without its cases: %s", error.message)
            return None
        return list(cases) if whole else convert.readable_cases(cases)

    async def _load(self, case_sha256: str) -> CaseSet:
        stored = await self._newest(store.plans.c.case_sha256 == case_sha256)
        if stored is None:
            raise NotFound("NO_SUCH_PLAN", f"there is no plan with the cases {case_sha256!r}", case_sha256=case_sha256)
        cases = await asyncio.to_thread(self._read_cases, stored)
        return self._keep(CaseSet(case_sha256, cases, self._benchmarks.specs))

    def _read_cases(self, stored: StoredPlan) -> list[dict[str, Json]]:
        if stored.cases_blob:
            try:
                found: list[dict[str, Json]] = json.loads(self._blob_store().get(stored.cases_blob))
            except DataLoss as error:
                sentence = f"the cases of the plan are damaged: {error.message}; plan the same manifest again to mend them"
                raise DataLoss(error.reason, sentence, **error.facts) from error
            return found
        dataset = stored.manifest["dataset"]
        assert isinstance(dataset, dict)
        bound = self._files.read(dataset_binding.location(dataset, self._files), str(dataset["sha256"]))
        return [case for case in bound.cases if isinstance(case, dict)]

    async def _newest(self, condition: sa.ColumnElement[bool]) -> StoredPlan | None:
        query = sa.select(store.plans).where(condition).order_by(store.plans.c.number.desc()).limit(1)

        def work(connection: Connection) -> StoredPlan | None:
            row = connection.execute(query).first()
            return None if row is None else _stored(row)

        return await self._reader.run(work)

    def _keep(self, cases: CaseSet) -> CaseSet:
        self._sets[cases.case_sha256] = cases
        self._recent[cases.case_sha256] = cases
        while len(self._recent) > KEPT_CASE_SETS:
            self._recent.popitem(last=False)
        return cases

    def _put_cases(self, cases: list[dict[str, Json]]) -> str:
        return self._blob_store().put(canonical_bytes(list(cases)))

    def _blob_store(self) -> BlobStore:
        if self._blobs is None:
            self._blobs = BlobStore(self._objects_url, BLOBS)
        return self._blobs


def _one(connection: Connection, condition: sa.ColumnElement[bool]) -> sa.Row[Any]:
    return connection.execute(sa.select(store.plans).where(condition)).one()


def _stored(row: sa.Row[Any]) -> StoredPlan:
    return StoredPlan(
        number=row.number,
        manifest=json.loads(row.manifest),
        summary=plan_pb2.Plan.FromString(row.summary),
        cases_blob=row.cases_blob,
        picked=row.picked,
        manifest_sha256=row.manifest_sha256,
    )
