"""The services behind the gateway: one channel each for the life of the process."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Any, TypeAlias, TypeVar

from google.protobuf.message import Message
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from srbench.v1 import accounting_service_pb2_grpc as accounting_rpc
from srbench.v1 import ledger_service_pb2_grpc as ledger_rpc
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import planner_service_pb2_grpc as planner_rpc
from srbench.v1 import recovery_service_pb2_grpc as recovery_rpc
from srbench_kit import auth, tracing, wire
from srbench_kit.errors import SrBenchError, Unreachable
from srbench_kit.settings import Addresses

READ_TIMEOUT_S = 15.0
HEALTH_TIMEOUT_S = 1.0
VISIBLE_S = 30.0
VISIBLE_ENTRIES = 4096
_Answer = TypeVar("_Answer", bound=Message)
Method: TypeAlias = aio.UnaryUnaryMultiCallable[Any, _Answer]
_log = logging.getLogger(__name__)


def peer_error(error: aio.AioRpcError, service: str) -> SrBenchError:
    """What a failed call to `service` means to our caller. Texts of the transport name addresses, so they stay here."""
    found = wire.to_error(error)
    if found.reason == "DEADLINE_EXCEEDED":
        return Unreachable("DEADLINE_EXCEEDED", f"the {service} did not answer in time", service=service)
    bare = found.reason == error.code().name
    if isinstance(found, Unreachable) and bare:
        _log.warning("%s is away: %s", service, error.details())
        return Unreachable("SERVICE_AWAY", f"the {service} does not answer; try again later", service=service)
    if bare:
        # A status without our details is the transport's or a bug's: its text was not written for callers.
        _log.error("%s failed: %s %s", service, error.code().name, error.details())
        return SrBenchError("INTERNAL", f"the {service} failed; its log has the details", service=service)
    return found


class Peer:
    """One service: its name in messages, its channel."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.channel = wire.channel(address, auth.service_metadata("gateway"))

    async def ask(
        self, method: Method[_Answer], request: Message, actor: auth.Actor, timeout_s: float = READ_TIMEOUT_S
    ) -> _Answer:
        """Makes one call on behalf of `actor`.

        Raises: the error of the taxonomy that the service answered; `Unreachable` (`SERVICE_AWAY`,
        `DEADLINE_EXCEEDED`); a plain `SrBenchError` when the service has a bug.
        """
        try:
            return await method(request, timeout=timeout_s, metadata=metadata_of(actor))
        except aio.AioRpcError as error:
            raise peer_error(error, self.name) from None

    async def stream(self, method: Any, request: Message, actor: auth.Actor) -> AsyncIterator[Any]:
        """The messages of one server stream; leaving the loop cancels the call. Raises: as `ask`."""
        call = method(request, metadata=metadata_of(actor))
        try:
            async for message in call:
                yield message
        except aio.AioRpcError as error:
            raise peer_error(error, self.name) from None
        finally:
            call.cancel()

    async def answers(self) -> bool:
        """Whether the service says that it serves."""
        try:
            answer = await health_pb2_grpc.HealthStub(self.channel).Check(
                health_pb2.HealthCheckRequest(service=""), timeout=HEALTH_TIMEOUT_S
            )
        except aio.AioRpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def metadata_of(actor: auth.Actor) -> aio.Metadata:
    """Who calls, and in which trace."""
    trace = tracing.current.get() if tracing.ON else ""
    return aio.Metadata(*auth.actor_metadata(actor).items(), *([(tracing.KEY, trace)] if trace else []))


class Backends:
    """Planner and accounting, and who may see which run.

    Attributes:
        planner, accounting: the peers, for streams and proxied bytes.
        plans, facts, recoveries, ledger: their stubs.
        stopping: set when the process is to end; open-ended answers watch it.
    """

    def __init__(self, addresses: Addresses) -> None:
        self.planner = Peer("planner", addresses.planner)
        self.accounting = Peer("accounting service", addresses.accounting)
        self.plans: planner_rpc.PlannerServiceAsyncStub = planner_rpc.PlannerServiceStub(self.planner.channel)
        self.facts: accounting_rpc.AccountingServiceAsyncStub = accounting_rpc.AccountingServiceStub(
            self.accounting.channel
        )
        self.recoveries: recovery_rpc.RecoveryServiceAsyncStub = recovery_rpc.RecoveryServiceStub(self.planner.channel)
        self.ledger: ledger_rpc.LedgerServiceAsyncStub = ledger_rpc.LedgerServiceStub(self.accounting.channel)
        self.stopping = asyncio.Event()
        self._visible: dict[tuple[str, str, str], float] = {}

    async def check_visible(self, run_id: str, actor: auth.Actor) -> None:
        """Asks the planner whether `actor` may see a run; accounting knows no owners.

        A yes is kept for a short time: a run's owner never changes.
        Raises: `NotFound` (`NO_SUCH_RUN`), also for runs of other owners.
        """
        key, now = (actor.id, actor.role, run_id), time.monotonic()
        if self._visible.get(key, 0.0) > now:
            return
        await self.planner.ask(self.plans.GetRun, planner_pb.GetRunRequest(id=run_id, summary=True), actor)
        if len(self._visible) >= VISIBLE_ENTRIES:
            self._visible.clear()
        self._visible[key] = now + VISIBLE_S

    async def health(self) -> dict[str, bool]:
        """Which services answer, by short name."""
        planner, accounting = await asyncio.gather(self.planner.answers(), self.accounting.answers())
        return {"planner": planner, "accounting": accounting}

    async def close(self) -> None:
        """Ends the channels."""
        self.stopping.set()
        await self.planner.channel.close()
        await self.accounting.channel.close()
