"""What the planner asks of accounting: the facts about cells in doubt, and a stop to further dispatches."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import accounting_service_pb2_grpc as rpc
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench.v1 import ledger_service_pb2_grpc as ledger_rpc
from srbench_kit import auth, wire

from srbench_planner.cells import CellState

TIMEOUT_S = 10.0
LEDGER_TIMEOUT_S = 120.0
RECOVERED = "recovered"
READ_TIMEOUT_S = 60.0
# Outcomes of previews carry whole routing documents, of up to half a megabyte each.
OUTCOME_PAGE, CALL_PAGE = 100, 500
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """A cell and the lowest token that is valid from now on.

    Attributes:
        unresumable: whether the cell is over once it has called a model: nobody can go on from its calls.
    """

    cell: int
    token: int
    case_index: int
    target_index: int
    unresumable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What the ledger says of a fenced cell: its recorded end, or `None` when it may be worked on again."""

    cell: int
    state: CellState | None
    reason: str


class Facts(Protocol):
    """Accounting as the scheduler sees it."""

    async def fence(self, run_id: str, fences: list[Fence]) -> list[Fact]:
        """Raises the lowest valid tokens and says what is known of each cell."""

    async def halt(self, run_id: str, reason: str) -> None:
        """Refuses every later dispatch of a run."""


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """What the ledger says of a whole run: its money, and each cell that has any fact, by (case, target) position."""

    spend: pb.Spend
    cells: dict[tuple[int, int], ledger_pb.CellLedger]


class AccountingClient:
    """Accounting over gRPC."""

    def __init__(self, address: str) -> None:
        self._channel: aio.Channel = wire.channel(address, auth.service_metadata("planner"))
        self._stub: rpc.AccountingServiceAsyncStub = rpc.AccountingServiceStub(self._channel)
        self._ledger: ledger_rpc.LedgerServiceAsyncStub = ledger_rpc.LedgerServiceStub(self._channel)

    async def fence(self, run_id: str, fences: list[Fence]) -> list[Fact]:
        """See `Facts.fence`. Raises: `AioRpcError`."""
        request = pb.FenceCellsRequest(
            run_id=run_id,
            fences=[
                pb.CellFence(
                    cell=f.cell,
                    token=f.token,
                    case_index=f.case_index,
                    target_index=f.target_index,
                    unresumable=f.unresumable,
                )
                for f in fences
            ],
        )
        answer = await self._stub.FenceCells(request, timeout=TIMEOUT_S)
        return [_fact(cell) for cell in answer.cells]

    async def halt(self, run_id: str, reason: str) -> None:
        """See `Facts.halt`. Raises: `AioRpcError`."""
        await self._stub.HaltRun(pb.HaltRunRequest(run_id=run_id, reason=reason), timeout=TIMEOUT_S)

    async def seal(self, run_id: str) -> None:
        """Refuses every later dispatch of a run that is about to be recovered. Raises: `Unreachable`."""
        try:
            await self.halt(run_id, RECOVERED)
        except aio.AioRpcError as error:
            raise wire.to_error(error) from error

    async def ledger(self, run_id: str) -> LedgerFacts:
        """The facts of a whole run. Raises: `NotFound` (`NO_SUCH_RUN`), `Unreachable`."""
        cells: dict[tuple[int, int], ledger_pb.CellLedger] = {}
        try:
            spend = await self._stub.GetSpend(pb.GetSpendRequest(run_id=run_id), timeout=TIMEOUT_S)
            request = ledger_pb.StreamCellLedgersRequest(run_id=run_id)
            async for part in self._ledger.StreamCellLedgers(request, timeout=LEDGER_TIMEOUT_S):
                cells.update({(cell.case_index, cell.target_index): cell for cell in part.cells})
        except aio.AioRpcError as error:
            raise wire.to_error(error) from error
        return LedgerFacts(spend, cells)

    async def outcomes(self, run_id: str) -> list[pb.Outcome]:
        """See `SavedRuns.outcomes`. Raises: `SrBenchError` that accounting answered."""
        found: list[pb.Outcome] = []
        request = pb.ListOutcomesRequest(run_id=run_id, page_size=OUTCOME_PAGE)
        while True:
            answer = await _asked(self._stub.ListOutcomes(request, timeout=READ_TIMEOUT_S))
            found.extend(answer.results)
            if not answer.next_page_token:
                return found
            request.page_token = answer.next_page_token

    async def calls(self, run_id: str) -> list[pb.Call]:
        """See `SavedRuns.calls`. Raises: `SrBenchError` that accounting answered."""
        found: list[pb.Call] = []
        request = pb.ListCallsRequest(run_id=run_id, page_size=CALL_PAGE)
        while True:
            answer = await _asked(self._stub.ListCalls(request, timeout=READ_TIMEOUT_S))
            found.extend(answer.calls)
            if not answer.next_page_token:
                return found
            request.page_token = answer.next_page_token

    async def record_replay(self, request: pb.RecordReplayRequest) -> None:
        """See `SavedRuns.record_replay`. Raises: `SrBenchError` that accounting answered."""
        await _asked(self._stub.RecordReplay(request, timeout=READ_TIMEOUT_S))

    async def close(self) -> None:
        """Closes the channel."""
        await self._channel.close()


async def _asked(call: Awaitable[T]) -> T:
    try:
        return await call
    except aio.AioRpcError as error:
        raise wire.to_error(error) from error


def _fact(cell: pb.CellFacts) -> Fact:
    state = CellState(cell.outcome) if cell.outcome > CellState.LEASED else None
    if state is None and cell.open:
        # The ledger kept a dispatch open: its end is unknown, and nobody may dispatch the cell again.
        return Fact(cell=cell.cell, state=CellState.INTERRUPTED, reason="executor_lost")
    return Fact(cell=cell.cell, state=state, reason=cell.reason)
