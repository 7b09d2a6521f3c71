"""One RPC of `RecoveryService` each."""

from __future__ import annotations

from typing import Any, TypeAlias

from grpc import aio
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import recovery_service_pb2 as recovery_pb
from srbench.v1 import recovery_service_pb2_grpc as rpc
from srbench_kit import auth

from srbench_planner.freeze import Registry
from srbench_planner.recoveries import Recoveries
from srbench_planner.target_registry import TargetRegistry

Context: TypeAlias = "aio.ServicerContext[Any, Any]"


class RecoveryServicer(rpc.RecoveryServiceServicer):
    """Plans and starts recoveries."""

    def __init__(self, recoveries: Recoveries, registry: TargetRegistry) -> None:
        self._recoveries = recoveries
        self._registry = registry

    async def PlanRecovery(self, request: recovery_pb.PlanRecoveryRequest, context: Context) -> recovery_pb.RecoveryPlan:
        return await self._recoveries.plan(auth.actor(context), request.run_id, request.mode)

    async def RecoverRun(self, request: recovery_pb.RecoverRunRequest, context: Context) -> pb.Run:
        actor = auth.actor(context)
        registered = None if actor.role == auth.LOCAL else self._registered
        return await self._recoveries.recover(actor, request, registered)

    async def GetLineage(self, request: recovery_pb.GetLineageRequest, context: Context) -> recovery_pb.Lineage:
        return await self._recoveries.lineage(auth.actor(context), request.run_id)

    def _registered(self) -> Registry:
        return Registry(targets=self._registry.load(), options=self._registry.benchmark_options(), binding=True)
