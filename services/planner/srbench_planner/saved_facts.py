"""What accounting has saved of runs that ended, as a replay needs it. Such facts are final, so a few runs are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.values import Json, object_of

from srbench_planner.replay_rules import SavedAnswer, SavedCall

KEPT = 8
T = TypeVar("T")
_STATUS = {
    pb.CALL_STATUS_COMPLETED: "completed",
    pb.CALL_STATUS_FAILED: "failed",
    pb.CALL_STATUS_CANCELLED: "cancelled",
    pb.CALL_STATUS_SENT_UNKNOWN: "sent_unknown",
}


class SavedRuns(Protocol):
    """Accounting as a replay sees it."""

    async def outcomes(self, run_id: str) -> list[pb.Outcome]:
        """All outcomes of a run."""

    async def calls(self, run_id: str) -> list[pb.Call]:
        """All calls of a run."""

    async def record_replay(self, request: pb.RecordReplayRequest) -> None:
        """Writes the facts of some cells of a replay."""


class SavedFacts:
    """Saved answers and previews by cell."""

    def __init__(self, runs: SavedRuns) -> None:
        self._runs = runs
        self._answers: OrderedDict[str, dict[int, SavedAnswer]] = OrderedDict()
        self._routed: OrderedDict[str, dict[int, Json]] = OrderedDict()

    async def answers(self, run_id: str, cell_of: Callable[[str, str], int]) -> dict[int, SavedAnswer]:
        """The saved answers of a live run by cell; `cell_of` gives the cell of a case's and a target's id."""
        return await _kept(self._answers, run_id, lambda: self._read_answers(run_id, cell_of))

    async def routed(self, run_id: str) -> dict[int, Json]:
        """The routing documents of a preview by cell."""
        return await _kept(self._routed, run_id, lambda: self._read_routed(run_id))

    async def _read_answers(self, run_id: str, cell_of: Callable[[str, str], int]) -> dict[int, SavedAnswer]:
        outcomes = await self._runs.outcomes(run_id)
        calls: dict[int, list[SavedCall]] = {}
        for call in await self._runs.calls(run_id):
            if call.role == pb.CALL_ROLE_SUBJECT and call.status != pb.CALL_STATUS_NOT_ACCEPTED:
                found = SavedCall(
                    status=_STATUS.get(call.status, "sent"), model=call.model, request_sha256=call.request_sha256
                )
                calls.setdefault(cell_of(call.case_id, call.target_id), []).append(found)
        return {
            outcome.cell: SavedAnswer(
                status=outcome.status,
                correct=outcome.correct if outcome.HasField("correct") else None,
                calls=tuple(calls.get(outcome.cell, ())),
            )
            for outcome in outcomes
        }

    async def _read_routed(self, run_id: str) -> dict[int, Json]:
        return {
            outcome.cell: object_of(outcome.details).get("routing")
            for outcome in await self._runs.outcomes(run_id)
            if outcome.status == "completed"
        }


async def _kept(kept: OrderedDict[str, T], run_id: str, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
    if run_id not in kept:
        kept[run_id] = await read()
        while len(kept) > KEPT:
            kept.popitem(last=False)
    kept.move_to_end(run_id)
    return kept[run_id]
