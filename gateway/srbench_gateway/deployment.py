"""Looking after the whole deployment: every process is asked, one that does not answer is part of the answer."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from grpc import aio
from srbench.v1 import deployment_service_pb2 as deployment
from srbench.v1 import deployment_service_pb2_grpc as deployment_rpc
from srbench.v1 import operations_service_pb2 as pb
from srbench.v1 import operations_service_pb2_grpc as rpc
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit import auth, operations, wire
from srbench_kit.auth import Actor
from srbench_kit.errors import SrBenchError, Unreachable
from srbench_kit.operations import failed, ok, warning
from srbench_kit.settings import Addresses
from srbench_kit.times import fill_time

from srbench_gateway.auth import Gate, check_operator
from srbench_gateway.backends import Backends, peer_error

INSPECT_S = 25.0
COLLECT_S = 600.0
SKEW_S, BAD_SKEW_S = 1.0, 5.0
Context: TypeAlias = "aio.ServicerContext[Any, Any]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A process that was asked, and how far its clock was ahead of ours; `None` when it did not say."""

    process: pb.ProcessInspection
    ahead_s: float | None = None
    uncertain_s: float = 0.0


class Deployment(deployment_rpc.DeploymentServiceServicer):
    """Serves `DeploymentService`, for local callers and admins."""

    def __init__(self, backends: Backends, addresses: Addresses, gate: Gate) -> None:
        self._backends = backends
        self._addresses = addresses
        self._gate = gate

    async def InspectDeployment(
        self, request: deployment.InspectDeploymentRequest, context: Context
    ) -> deployment.DeploymentInspection:
        self._admit(context, "InspectDeployment")
        asked = pb.InspectProcessRequest(connect=request.connect_targets)
        answer = deployment.DeploymentInspection()
        try:
            asked.targets.extend(await self._targets())
        except SrBenchError as error:
            answer.checks.append(failed("targets", f"they are not known: {error.message}", "mend the planner first"))
        seen = await asyncio.gather(*(_ask(name, at, asked) for name, at in await self._places()))
        answer.processes.append(_myself())
        answer.processes.extend(one.process for one in seen)
        answer.checks.extend([_versions(answer.processes), *_clocks(seen)])
        if not any(one.process.service == "executor" for one in seen):
            told = "no executor is known to the gateway"
            answer.checks.append(warning("executors", told, "set SR_BENCH_EXECUTOR_ADDRESSES for the gateway"))
        return answer

    async def CollectGarbage(self, request: pb.CollectGarbageRequest, context: Context) -> pb.CollectGarbageResponse:
        actor = self._admit(context, "CollectGarbage")
        whole = pb.CollectGarbageResponse(deleted=request.delete)
        for peer in (self._backends.planner, self._backends.accounting):
            method = rpc.OperationsServiceStub(peer.channel).CollectGarbage
            part: pb.CollectGarbageResponse = await peer.ask(method, request, actor, COLLECT_S)
            whole.objects.extend(part.objects)
            whole.object_count += part.object_count
            whole.byte_count += part.byte_count
            whole.kept_count += part.kept_count
        return whole

    def _admit(self, context: Context, what: str) -> Actor:
        found = ((key, value) for key, value in context.invocation_metadata() or () if isinstance(value, str))
        actor = self._gate.actor(found)
        check_operator(actor, what)
        return actor

    async def _targets(self) -> list[pb.TargetProbe]:
        request = planner_pb.ListTargetsRequest()
        found = await self._backends.planner.ask(self._backends.plans.ListTargets, request, auth.LOCAL_ACTOR)
        return [
            pb.TargetProbe(target_id=target.id, base_url=target.base_url, api_key_env=target.api_key_env)
            for target in found.targets
        ]

    async def _places(self) -> list[tuple[str, str]]:
        """Each process and its address; a name that stands for several machines is taken apart."""
        given = self._addresses
        named = [("planner", given.planner), ("accounting", given.accounting), ("grader", given.grader)]
        named += [("executor", address) for address in given.executors]
        found = await asyncio.gather(*(_resolved(address) for _, address in named))
        return [(name, at) for (name, _), places in zip(named, found, strict=True) for at in places]


async def _resolved(address: str) -> list[str]:
    """The addresses that `address` stands for; itself when that cannot be found out."""
    host, _, port = address.rpartition(":")
    if address.startswith("unix:") or not port.isdigit():
        return [address]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError:
        return [address]
    hosts = sorted({str(entry[4][0]) for entry in found})
    return [f"[{each}]:{port}" if ":" in each else f"{each}:{port}" for each in hosts]


async def _ask(service: str, address: str, request: pb.InspectProcessRequest) -> _Seen:
    sent = time.time()
    async with wire.channel(address, auth.service_metadata("gateway")) as channel:
        try:
            found = await rpc.OperationsServiceStub(channel).InspectProcess(request, timeout=INSPECT_S)
        except aio.AioRpcError as error:
            return _Seen(process=_absent(service, address, peer_error(error, service)))
    found.address = address
    middle, half = (sent + time.time()) / 2, (time.time() - sent) / 2
    told = found.time.seconds + found.time.nanos / 1e9
    return _Seen(process=found, ahead_s=told - middle, uncertain_s=half)


def _absent(service: str, address: str, error: SrBenchError) -> pb.ProcessInspection:
    remedy = "start it, and see its log"
    if error.reason == "BAD_TOKEN":
        remedy = "give all processes the same SR_BENCH_INTERNAL_TOKEN"
    elif not isinstance(error, Unreachable):
        remedy = "run the same version everywhere, and see its log"
    return pb.ProcessInspection(service=service, address=address, checks=[failed("health", error.message, remedy)])


def _myself() -> pb.ProcessInspection:
    found = pb.ProcessInspection(service="gateway", version=operations.version())
    fill_time(found.time, time.time_ns())
    found.checks.append(ok("health", f"it answers, as process {os.getpid()}"))
    return found


def _versions(processes: Sequence[pb.ProcessInspection]) -> pb.InspectionCheck:
    found: dict[str, list[str]] = {}
    for process in processes:
        if process.version:
            found.setdefault(process.version, []).append(process.service)
    if len(found) == 1:
        return ok("versions", f"all that answer run {next(iter(found))}")
    told = "; ".join(f"{version}: {', '.join(sorted(set(names)))}" for version, names in sorted(found.items()))
    return failed("versions", f"several versions run: {told}", "run the same version everywhere")


def _clocks(seen: Sequence[_Seen]) -> list[pb.InspectionCheck]:
    known = [one for one in seen if one.ahead_s is not None]
    if not known:
        return []
    worst = max(known, key=lambda one: abs(one.ahead_s or 0.0) - one.uncertain_s)
    off = max(0.0, abs(worst.ahead_s or 0.0) - worst.uncertain_s)
    if off <= SKEW_S:
        return [ok("clocks", "all clocks agree within a second")]
    told = f"the clock of {worst.process.service} at {worst.process.address} is off by {off:.1f} s"
    remedy = "run a time service (NTP) on all machines"
    return [(failed if off > BAD_SKEW_S else warning)("clocks", told, remedy)]
