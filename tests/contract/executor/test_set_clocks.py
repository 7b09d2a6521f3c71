"""The whole executor while somebody sets the wall clock of its machine."""

from __future__ import annotations

import asyncio
import sys
import time
import types
from typing import Any

import pytest

from tests.contract.executor.streams import whole
from tests.waiting import until_async


def set_later(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """By how many seconds the wall clock was set, to be changed: in our own modules, for gRPC asks it at each call and
    takes what it says for the kernel's."""
    jumped_s = [0]
    wall = types.SimpleNamespace(**vars(time))
    wall.time = lambda: time.time() + jumped_s[0]
    wall.time_ns = lambda: time.time_ns() + jumped_s[0] * 10**9
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("srbench_executor", "srbench_kit") and getattr(module, "time", None) is time:
            monkeypatch.setattr(module, "time", wall)
    return jumped_s


@pytest.mark.parametrize("jump_s", [3600, -3600])
async def test_a_wall_clock_that_is_set_takes_no_time_from_a_call_and_moves_no_stamp(
    rig: Any, answer_type: Any, monkeypatch: pytest.MonkeyPatch, jump_s: int
) -> None:
    """The planner's clock tells another hour, too: what is left of the run's time is what counts."""
    jumped_s = set_later(monkeypatch)
    rig.queue.context.deadline_time.FromSeconds(int(time.time()) - 7200)
    rig.queue.context.time_left.FromSeconds(600)
    gate = asyncio.Event()
    rig.upstream.answers = [answer_type(chunks=whole("B"), gate=gate)]
    rig.queue.add(rig.lease(0))
    await rig.start_executor()
    await until_async(lambda: len(rig.upstream.requests) == 1)
    jumped_s[0] = jump_s
    gate.set()
    rig.queue.add(rig.lease(1))
    await rig.finished(2)
    assert [outcome.correct for outcome in rig.ledger.outcomes] == [True, True]
    for outcome in rig.ledger.outcomes:
        assert 0 <= outcome.finish_time.ToNanoseconds() - outcome.start_time.ToNanoseconds() < 60 * 10**9
    for dispatch, settle in zip(
        rig.ledger.dispatches, sorted(rig.ledger.settles, key=lambda one: one.key.cell), strict=True
    ):
        receipt = settle.receipt
        stamps = [each.ToNanoseconds() for each in (dispatch.dispatch_time, receipt.start_time, receipt.finish_time)]
        assert stamps == sorted(stamps)
        assert stamps[-1] - stamps[0] < 60 * 10**9
        assert 0 < receipt.ttft_ns <= receipt.latency_ns < 60 * 10**9
