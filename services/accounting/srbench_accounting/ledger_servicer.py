"""One RPC of `LedgerService` each: parse, call the core or the ledger, render."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, TypeAlias

from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench.v1 import ledger_service_pb2_grpc as rpc
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit import auth
from srbench_kit.errors import Forbidden

from srbench_accounting import views
from srbench_accounting.ledger_export import LedgerExport
from srbench_accounting.store import Store

if TYPE_CHECKING:
    from srbench_accounting.cell_ledgers import CellLedger

BATCH = 2000
Context: TypeAlias = "aio.ServicerContext[Any, Any]"


class LedgerServicer(rpc.LedgerServiceServicer):
    """The ledger for those who must see all of it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def StreamCellLedgers(
        self, request: ledger_pb.StreamCellLedgersRequest, context: Context
    ) -> AsyncIterator[ledger_pb.StreamCellLedgersResponse]:
        auth.require_role(context, "planner")
        store, run = self._store, await self._store.registry.run(request.run_id)
        outcomes, calls = await store.reader.run(lambda connection: store.loader.load(connection, run.run_no, 0.0))
        # Here and not above: it takes NumPy, which takes longer to import than the service may take to start.
        from srbench_accounting.cell_ledgers import cell_ledgers

        cells = [_cell(found) for found in cell_ledgers(outcomes, calls)]
        for start in range(0, len(cells), BATCH):
            yield ledger_pb.StreamCellLedgersResponse(cells=cells[start : start + BATCH])

    async def SettleCall(self, request: ledger_pb.SettleCallRequest, context: Context) -> pb.Call:
        actor = auth.actor(context)
        if not actor.sees_all:
            sentence = f"settling a call is for local callers and admins; the role here is {actor.role!r}"
            raise Forbidden("OPERATOR_ONLY", sentence)
        store, run = self._store, await self._store.registry.run(request.run_id)
        await store.writer.run(lambda connection: store.settling.settle(connection, run, request, actor.id))
        cases = await store.registry.cases(run)
        return await views.whole_call(store, run, cases, request.call_id)

    async def StreamLedger(
        self, request: ledger_pb.StreamLedgerRequest, context: Context
    ) -> AsyncIterator[ledger_pb.StreamLedgerResponse]:
        run = await self._store.registry.run(request.run_id)
        async for response in LedgerExport(self._store, run).stream(evidence=request.evidence):
            yield response


def _cell(found: CellLedger) -> ledger_pb.CellLedger:
    return ledger_pb.CellLedger(
        case_index=found.case,
        target_index=found.target,
        outcome=queue_pb.CellState.ValueType(found.outcome),
        reason=found.reason,
        call_count=found.call_count,
        open_count=found.open_count,
        ambiguous_count=found.ambiguous_count,
        unknown_cost_count=found.unknown_cost_count,
        known_spend_picodollars=found.known_spend,
        spend_upper_picodollars=found.spend_upper,
    )
