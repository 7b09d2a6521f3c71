"""The gRPC front door: passes the bytes of allowed methods on, for callers with the same credentials as over HTTP."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc
from google.protobuf.message import DecodeError, Message
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import comparison_pb2 as comparison
from srbench.v1 import deployment_service_pb2_grpc as deployment_rpc
from srbench.v1 import judging_pb2, price_estimate_pb2, routing_flow_pb2, run_times_pb2
from srbench.v1 import ledger_service_pb2 as ledger
from srbench.v1 import planner_service_pb2 as planner
from srbench_kit import auth as kit_auth
from srbench_kit import tracing, wire
from srbench_kit.auth import Actor
from srbench_kit.errors import Forbidden, InvalidInput, SrBenchError

from srbench_gateway.auth import Gate, check_operator
from srbench_gateway.backends import Backends, Peer, metadata_of, peer_error
from srbench_gateway.deployment import Deployment

UNARY_TIMEOUT_S = 120.0
# Where every saved answer of a run is read again.
LONG_TIMEOUT_S = 600.0
MAX_CALLS = 1000
_DETAILS = "grpc-status-details-bin"
_log = logging.getLogger(__name__)

_PLANNER = "/srbench.v1.PlannerService/"
_ACCOUNTING = "/srbench.v1.AccountingService/"
_RECOVERY = "/srbench.v1.RecoveryService/"
_LEDGER = "/srbench.v1.LedgerService/"


@dataclass(frozen=True, slots=True)
class Door:
    """One method that callers from outside may call.

    Attributes:
        writes: whether it changes anything, which read-only actors may not.
        streams: whether it answers with a stream.
        request: the request message, where the gateway must look into it.
        operator: whether only local callers and admins may call it.
        timeout_s: longest a single answer may take.
    """

    writes: bool = False
    streams: bool = False
    request: type[Message] | None = None
    operator: bool = False
    timeout_s: float = UNARY_TIMEOUT_S


# Everything else does not exist for callers from outside: the work queue, facts, fences, references.
DOORS: dict[str, Door] = {
    _PLANNER + "GetCatalog": Door(),
    _PLANNER + "ListTargets": Door(),
    _PLANNER + "RegisterTargets": Door(writes=True, operator=True),
    _PLANNER + "GetBenchmarkOptions": Door(),
    _PLANNER + "RegisterBenchmarkOptions": Door(writes=True, operator=True),
    _PLANNER + "CreateDatasetPreparation": Door(writes=True, request=planner.CreateDatasetPreparationRequest),
    _PLANNER + "GetDatasetPreparation": Door(),
    _PLANNER + "ListDatasetPreparations": Door(),
    _PLANNER + "ListDatasets": Door(),
    _PLANNER + "GetDataset": Door(),
    _PLANNER + "ListDatasetCases": Door(),
    _PLANNER + "ComposeDatasets": Door(writes=True),
    _PLANNER + "GetDatasetSelection": Door(),
    _PLANNER + "FreezePlan": Door(writes=True),
    _PLANNER + "GetPlan": Door(),
    _PLANNER + "StreamPlanCases": Door(streams=True),
    _PLANNER + "CreateRun": Door(writes=True),
    _PLANNER + "GetRun": Door(),
    _PLANNER + "ListRuns": Door(),
    _PLANNER + "WatchRun": Door(streams=True),
    _PLANNER + "CancelRun": Door(writes=True),
    **{_PLANNER + name: Door(writes=True) for name in ("PauseRun", "ResumeRun", "SetRunConcurrency")},
    _PLANNER + "ListRunEvents": Door(),
    _PLANNER + "ListCells": Door(),
    _PLANNER + "InspectSetup": Door(),
    _PLANNER + "CreateReplay": Door(writes=True),
    _PLANNER + "CheckReplay": Door(),
    _PLANNER + "ListReplayOptions": Door(),
    _PLANNER + "CreateCandidatePlan": Door(writes=True),
    _PLANNER + "CreateExperiment": Door(writes=True),
    _PLANNER + "GetExperiment": Door(),
    _PLANNER + "ListExperiments": Door(),
    _PLANNER + "DeleteExperiment": Door(writes=True),
    _PLANNER + "ListExperimentRuns": Door(),
    _PLANNER + "AttachExperimentRun": Door(writes=True),
    _PLANNER + "ListRunRecipes": Door(),
    _PLANNER + "GetRunRecipe": Door(),
    _PLANNER + "GetRunCase": Door(),
    _ACCOUNTING + "GetSpend": Door(request=accounting.GetSpendRequest),
    _ACCOUNTING + "GetReport": Door(request=accounting.GetReportRequest),
    _ACCOUNTING + "ListOutcomes": Door(request=accounting.ListOutcomesRequest),
    _ACCOUNTING + "ListCalls": Door(request=accounting.ListCallsRequest),
    _ACCOUNTING + "GetCall": Door(request=accounting.GetCallRequest),
    _ACCOUNTING + "ReadEvidence": Door(request=accounting.ReadEvidenceRequest, streams=True),
    _ACCOUNTING + "GetRoutingFlow": Door(request=routing_flow_pb2.GetRoutingFlowRequest),
    _ACCOUNTING + "GetRunTimes": Door(request=run_times_pb2.GetRunTimesRequest),
    _ACCOUNTING + "EstimatePrices": Door(request=price_estimate_pb2.EstimatePricesRequest),
    _PLANNER + "EstimatePower": Door(writes=True),
    _ACCOUNTING + "CompareRuns": Door(request=comparison.CompareRunsRequest),
    _ACCOUNTING + "ComparePairs": Door(request=comparison.ComparePairsRequest),
    _ACCOUNTING + "ListComparisonOptions": Door(request=comparison.ListComparisonOptionsRequest),
    _ACCOUNTING + "RegradeRun": Door(writes=True, request=comparison.RegradeRunRequest, timeout_s=LONG_TIMEOUT_S),
    _ACCOUNTING + "ExportRun": Door(writes=True, request=comparison.ExportRunRequest, streams=True),
    _ACCOUNTING + "ReconcileUsage": Door(writes=True, request=comparison.ReconcileUsageRequest, timeout_s=LONG_TIMEOUT_S),
    _ACCOUNTING + "ListCorrections": Door(request=comparison.ListCorrectionsRequest),
    _ACCOUNTING + "GetJudging": Door(request=judging_pb2.GetJudgingRequest),
    _ACCOUNTING + "ImportAudit": Door(writes=True, request=judging_pb2.ImportAuditRequest),
    _RECOVERY + "PlanRecovery": Door(writes=True),
    _RECOVERY + "RecoverRun": Door(writes=True),
    _RECOVERY + "GetLineage": Door(),
    _LEDGER + "SettleCall": Door(writes=True, operator=True, request=ledger.SettleCallRequest),
    _LEDGER + "StreamLedger": Door(request=ledger.StreamLedgerRequest, streams=True),
}


class FrontDoor(grpc.GenericRpcHandler):
    """Handles every method in `DOORS`; all others are unimplemented."""

    def __init__(self, backends: Backends, gate: Gate) -> None:
        self._backends = backends
        self._gate = gate

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        method = handler_call_details.method
        door = DOORS.get(method)
        if door is None:
            return None
        try:
            actor = self._admit(method, door, handler_call_details)
        except SrBenchError as error:
            return kit_auth.refusal(error)
        peer = self._backends.planner if method.startswith((_PLANNER, _RECOVERY)) else self._backends.accounting
        # Without serializers, requests and answers are the bytes that came over the wire.
        if door.streams:
            return grpc.unary_stream_rpc_method_handler(self._stream(method, door, peer, actor))
        return grpc.unary_unary_rpc_method_handler(self._unary(method, door, peer, actor))

    def _admit(self, method: str, door: Door, details: grpc.HandlerCallDetails) -> Actor:
        found = ((key, value) for key, value in details.invocation_metadata or () if isinstance(value, str))
        actor = self._gate.actor(found)
        if door.writes and actor.role == "read":
            raise Forbidden("READ_ONLY", f"the actor {actor.id!r} may only read", value=actor.role)
        if door.operator:
            check_operator(actor, method.rpartition("/")[2])
        return actor

    async def _look(self, door: Door, actor: Actor, data: bytes) -> None:
        """What must be known of a request before it is passed on."""
        if door.request is None:
            return
        try:
            request: Any = door.request.FromString(data)
        except DecodeError:
            name = door.request.DESCRIPTOR.name
            raise InvalidInput("BAD_MESSAGE", f"the request is not a {name}", field=name) from None
        if isinstance(request, planner.CreateDatasetPreparationRequest):
            if request.source_path:
                check_operator(actor, "source_path")
            return
        for run_id in _runs_of(request):
            await self._backends.check_visible(run_id, actor)

    def _unary(self, method: str, door: Door, peer: Peer, actor: Actor) -> Callable[[bytes, Any], Awaitable[bytes]]:
        call: aio.UnaryUnaryMultiCallable[bytes, bytes] = peer.channel.unary_unary(method)

        async def passed(data: bytes, context: aio.ServicerContext[bytes, bytes]) -> bytes:
            span = tracing.begin("grpc", "", {"rpc.method": method})
            if span is not None:
                tracing.current.set(tracing.header(span))
            try:
                await self._look(door, actor, data)
                answer: bytes = await call(data, timeout=_remaining(context, door.timeout_s), metadata=metadata_of(actor))
            except SrBenchError as error:
                await wire.refuse(context, error)
            except aio.AioRpcError as error:
                await _pass_on(context, error, peer)
            finally:
                tracing.end(span)
            return answer

        return passed

    def _stream(self, method: str, door: Door, peer: Peer, actor: Actor) -> Callable[[bytes, Any], AsyncIterator[bytes]]:
        call: aio.UnaryStreamMultiCallable[bytes, bytes] = peer.channel.unary_stream(method)

        async def passed(data: bytes, context: aio.ServicerContext[bytes, bytes]) -> AsyncIterator[bytes]:
            try:
                await self._look(door, actor, data)
            except SrBenchError as error:
                await wire.refuse(context, error)
            answers = call(data, timeout=_remaining(context, None), metadata=metadata_of(actor))
            try:
                async for answer in answers:
                    yield answer
            except aio.AioRpcError as error:
                await _pass_on(context, error, peer)
            finally:
                answers.cancel()

        return passed


def _runs_of(request: Any) -> list[str]:
    """Every run that a request names. An empty name of a comparison's side is the service's to refuse."""
    fields = request.DESCRIPTOR.fields_by_name
    if "run_id" in fields:
        return [request.run_id]
    sides = [getattr(request, name) for name in ("baseline_run_id", "candidate_run_id") if name in fields]
    listed = request.candidate_run_ids if "candidate_run_ids" in fields else ()
    return [run_id for run_id in (*sides, *listed) if run_id]


def _remaining(context: aio.ServicerContext[bytes, bytes], most_s: float | None) -> float | None:
    """What is left of the caller's deadline, at most `most_s`."""
    left = context.time_remaining()
    return most_s if left is None else left if most_s is None else min(left, most_s)


async def _pass_on(context: aio.ServicerContext[bytes, bytes], error: aio.AioRpcError, peer: Peer) -> NoReturn:
    """Ends a call as the service ended it. A status without details is the transport's, and is told in our words."""
    details = tuple((key, value) for key, value in error.trailing_metadata() or () if key == _DETAILS)
    if details or error.code() in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED):
        await context.abort(error.code(), error.details() or "", details)
    await wire.refuse(context, peer_error(error, peer.name))


class FrontDoorServer:
    """The front door's gRPC server; health answers without a token."""

    def __init__(self, backends: Backends, gate: Gate, deployment: Deployment) -> None:
        self._health = health.aio.HealthServicer()
        self._server = aio.server(
            options=wire.SERVER_OPTIONS, maximum_concurrent_rpcs=MAX_CALLS, interceptors=[wire.ErrorInterceptor()]
        )
        self._server.add_generic_rpc_handlers((FrontDoor(backends, gate),))
        deployment_rpc.add_DeploymentServiceServicer_to_server(deployment, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    async def start(self, host: str, port: int) -> int:
        """Listens and gives the port. Raises: `RuntimeError` when the port is taken."""
        bound = self._server.add_insecure_port(f"{host}:{port}")
        await self._server.start()
        await self._health.set("", health_pb2.HealthCheckResponse.SERVING)
        return bound

    async def stop(self, grace_s: float) -> None:
        """Turns unhealthy, refuses new calls, and ends those in hand after `grace_s`."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_s)
