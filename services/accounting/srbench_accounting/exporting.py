"""Exports a run over development cases with every answer: the matrix that a router is trained on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np
from sqlalchemy.engine import Connection
from srbench.v1 import comparison_pb2 as pb
from srbench.v1 import plan_pb2, target_pb2, usage_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json, fill_value

from srbench_accounting import corrections
from srbench_accounting.columns import CallColumns, CallEnd, Role, sum_if_known
from srbench_accounting.figures import Side
from srbench_accounting.rows import Stored
from srbench_accounting.run_facts import PlanCases
from srbench_accounting.saved_answers import SavedAnswer, check_completed, place_of
from srbench_accounting.schema import row_id
from srbench_accounting.store import Store

VERSION, KIND, SPLIT = "sr-bench-1.0", "training-matrix", "dev"
_BUCKETS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")


class Cases(Protocol):
    """What an export asks of the planner. Raises: `InvalidInput` (`HOLDOUT`), `Unreachable`."""

    def sealed_cases(self, case_sha256: str, *, digests_only: bool) -> AsyncIterator[list[plan_pb2.SealedCase]]:
        """The cases of that digest in full, in batches."""
        ...


def check(run: planner_pb.Run, cases: PlanCases) -> None:
    """Raises: `Conflict` (`NOT_COMPLETED`), `InvalidInput` (`NOT_LIVE`, `PARTIAL_MATRIX`, `HOLDOUT`)."""
    check_completed(run, "exported")
    if run.plan.total != run.plan.case_count * len(run.plan.targets):
        sentence = f"run {run.id} answers only part of its cases with each target; only whole matrices are exported"
        raise InvalidInput("PARTIAL_MATRIX", sentence, run_id=run.id)
    if run.plan.profile == "standard":
        raise InvalidInput("HOLDOUT", f"run {run.id} is a standard run; its cases are for testing and are never exported")
    for case in cases.cases:
        if case.split != SPLIT:
            sentence = f"case {case.case_id} has the split {case.split or 'unknown'!r}; only dev cases are ever exported"
            raise InvalidInput("HOLDOUT", sentence, case_id=case.case_id)


async def export(store: Store, side: Side, cases: Cases) -> AsyncIterator[pb.ExportPart]:
    """The header, then every case. Raises: as `check`, and `DataLoss` for damaged evidence."""
    check(side.run, side.cases)
    correction = await store.reader.run(lambda connection: _correction(store, connection, side))
    yield pb.ExportPart(header=_header(side, correction))
    matrix = _Matrix(store, side)
    async for batch in cases.sealed_cases(side.run.plan.case_sha256, digests_only=False):
        parts, places = await store.reader.run(partial(matrix.parts, cases=batch))
        texts = await store.reads.texts([stored for _, stored in places])
        for (target, _), text in zip(places, texts, strict=True):
            target.final = text
        for part in parts:
            yield part


def _correction(store: Store, connection: Connection, side: Side) -> Json:
    made = store.corrections.of_run(connection, side.known.run_no, calls=False)
    return corrections.shown(made[-1] if made else None)


def _header(side: Side, correction: Json) -> pb.ExportHeader:
    plan = side.run.plan
    header = pb.ExportHeader(
        version=VERSION,
        kind=KIND,
        split=SPLIT,
        source_run_id=side.run.id,
        source_plan_sha256=plan.plan_sha256,
        case_count=plan.case_count,
    )
    fill_value(header.accounting_correction, correction)
    return header


class _Matrix:
    """Where each cell's outcome and calls stand, so that cases can be put together one after the other."""

    def __init__(self, store: Store, side: Side) -> None:
        self._store = store
        self._side = side
        outcomes, calls = side.figures.outcomes, side.figures.calls
        assert calls is not None
        self._outcomes: Mapping[tuple[int, int], int] = {
            cell: place for place, cell in enumerate(zip(outcomes.case.tolist(), outcomes.target.tolist(), strict=True))
        }
        self._calls: dict[tuple[int, int], list[int]] = {}
        subject = np.flatnonzero((calls.role == Role.SUBJECT) & (calls.end != CallEnd.NOT_ACCEPTED)).tolist()
        for place in subject:
            self._calls.setdefault((int(calls.case[place]), int(calls.target[place])), []).append(place)

    def parts(
        self, connection: Connection, cases: Sequence[plan_pb2.SealedCase]
    ) -> tuple[list[pb.ExportPart], list[tuple[pb.ExportTarget, Stored]]]:
        """The parts of some cases, and where the answers lie that are still missing in them."""
        parts: list[pb.ExportPart] = []
        places: list[tuple[pb.ExportTarget, Stored]] = []
        for case in cases:
            part = pb.ExportPart(case=pb.ExportCase(content=case.content))
            for index, target in enumerate(self._side.run.plan.targets):
                message = part.case.targets.add(
                    id=target.id,
                    model=target.model,
                    kind="mom" if target.kind == target_pb2.TARGET_KIND_MOM else "single",
                    request_params=target.request_params,
                )
                stored = self._fill(message, connection, case.index, index)
                if stored is not None:
                    places.append((message, stored))
            parts.append(part)
        return parts, places

    def _fill(self, message: pb.ExportTarget, connection: Connection, case: int, index: int) -> Stored | None:
        """Fills in what one target made of a case; where its answer lies."""
        store, run_no = self._store, self._side.known.run_no
        outcome = self._outcomes.get((case, index))
        if outcome is not None:
            ((_, row),) = store.lists.outcomes(connection, [row_id(run_no, outcome + 1)])
            message.answer.CopyFrom(SavedAnswer(row, ()).answer)
            if row.correct is not None:
                message.correct = bool(row.correct)
            if row.score is not None:
                message.score = row.score
        places = self._calls.get((case, index), [])
        if places:
            _fill_sums(message, self._side.figures.calls, places)
            ((_, end),) = store.lists.calls(connection, [row_id(run_no, places[-1] + 1)])
            return place_of(store, connection, end)
        return None


def _fill_sums(message: pb.ExportTarget, calls: CallColumns | None, places: Iterable[int]) -> None:
    """Tokens, cost and time of a cell's calls; one unknown part makes a sum unknown."""
    assert calls is not None
    own = calls.take(np.array(list(places), dtype=np.int64))
    message.usage.CopyFrom(usage_pb2.TokenUsage(**{name: sum_if_known(getattr(own, name)) for name in _BUCKETS}))
    cost, seconds = sum_if_known(own.cost), float(own.latency_s.sum())
    if cost is not None:
        message.cost_picodollars = cost
    if not np.isnan(seconds):
        message.subject_latency_s = seconds
