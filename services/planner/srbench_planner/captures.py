"""Recipes that are being captured. Only executors hold keys and open connections to routers, so one of them reads the
configuration while the start of the run waits here; nothing is stored before the run is."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field

from srbench.v1 import recipe_pb2 as pb
from srbench.v1 import target_pb2
from srbench_kit import ids
from srbench_kit.errors import Conflict, Unreachable

# An executor needs up to 15 s for one; the rest is for being taken.
CAPTURE_WAIT_S = 30.0
TAKE_WAIT_S = 20.0


@dataclass(slots=True)
class _Waiting:
    target: target_pb2.Target
    answer: asyncio.Future[pb.ReportRecipeCaptureRequest] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Captures:
    """Hands captures to executors and gives their answers to those who wait."""

    def __init__(self, wait_s: float = CAPTURE_WAIT_S) -> None:
        self._wait_s = wait_s
        self._waiting: dict[str, _Waiting] = {}
        self._queued: deque[str] = deque()
        self._woken = asyncio.Event()

    async def capture(self, targets: list[target_pb2.Target]) -> list[tuple[str, pb.Recipe]]:
        """(target id, recipe) of each of `targets`, read now.

        Raises: `Conflict` (`RECIPE_CAPTURE_FAILED`), `Unreachable` (`NO_EXECUTOR`). Either refuses the start.
        """
        return list(await asyncio.gather(*(self._one(target) for target in targets)))

    async def take(self, wait_s: float = TAKE_WAIT_S) -> list[pb.RecipeCapture]:
        """What is to be captured, each given out once; waits for the first, and comes back empty when there is none."""
        until = time.monotonic() + wait_s
        while not self._queued:
            left_s = until - time.monotonic()
            if left_s <= 0:
                return []
            woken = self._woken
            try:
                await asyncio.wait_for(woken.wait(), left_s)
            except TimeoutError:
                return []
        taken = [self._queued.popleft() for _ in range(len(self._queued))]
        return [pb.RecipeCapture(capture_id=name, target=self._waiting[name].target) for name in taken]

    def report(self, request: pb.ReportRecipeCaptureRequest) -> None:
        """Takes an answer; one that nobody waits for is dropped."""
        waiting = self._waiting.get(request.capture_id)
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_result(request)

    async def _one(self, target: target_pb2.Target) -> tuple[str, pb.Recipe]:
        name = ids.prefixed("capture")
        waiting = self._waiting[name] = _Waiting(target)
        self._queued.append(name)
        self._woken.set()
        self._woken = asyncio.Event()
        try:
            answer = await asyncio.wait_for(waiting.answer, self._wait_s)
        except TimeoutError:
            raise Unreachable(
                "NO_EXECUTOR",
                f"no executor captured the recipe of {target.id} in {self._wait_s:g} s; the run was not started",
                target_id=target.id,
            ) from None
        finally:
            del self._waiting[name]
            if name in self._queued:
                self._queued.remove(name)
        if not answer.HasField("recipe"):
            raise Conflict(
                "RECIPE_CAPTURE_FAILED",
                f"the recipe of {target.id} cannot be captured: {answer.message}; the run was not started",
                target_id=target.id,
                cause=answer.reason,
            )
        return target.id, answer.recipe
