"""Two accounting processes over one database: the run's row is the lock, so neither double spends, nor dispatches twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as pb

RUN = "run-0123456789abcdef0123"


async def test_the_budget_is_exact_over_both(both: Any, planner: Any, facts_of: Any) -> None:
    """Each call reserves 100 of 2000: 20 are let out, whoever asks, and the others find the budget reserved."""
    planner.add_run(max_cost=2000)
    one, other = both
    sets = [facts_of(number * 1000) for number in range(2)]

    async def ask(writer: Any, facts: Any, cells: range) -> list[str]:
        return [reason for cell in cells for reason in await writer.reasons(facts.dispatch(cell))]

    asked = await asyncio.gather(ask(one[1], sets[0], range(0, 40, 2)), ask(other[1], sets[1], range(1, 41, 2)))
    assert Counter(asked[0] + asked[1]) == {"": 20, "BUDGET_RESERVED": 20}
    spends = [await service.spend() for service, _ in both]
    assert [(spend.call_count, spend.reserved_picodollars) for spend in spends] == [(20, 2000)] * 2


async def test_a_cell_is_dispatched_once_whoever_is_asked(both: Any, planner: Any, facts_of: Any) -> None:
    planner.add_run(max_cost=10**9)
    sets = [facts_of(number * 1000) for number in range(2)]

    async def ask(writer: Any, facts: Any, token: int) -> list[str]:
        return [await_ for cell in range(50) for await_ in await writer.reasons(facts.dispatch(cell, token=token))]

    asked = await asyncio.gather(*[ask(both[n][1], sets[n], n + 1) for n in range(2)])
    assert all(sorted(pair) == ["", "ALREADY_DISPATCHED"] for pair in zip(*asked, strict=True))
    assert (await both[0][0].spend()).call_count == 50


async def test_words_and_runs_that_both_meet_first_are_shared(
    both: Any, planner: Any, facts_of: Any, evidence_of: Any
) -> None:
    """New runs and new words at the same time in both; and what one recorded, the other reports and reads."""
    sets = [facts_of(number * 1000) for number in range(2)]

    async def work(writer: Any, facts: Any, first: int) -> list[str]:
        found: list[str] = []
        for cell in range(first, first + 10):
            words = {"finish_reason": f"end-{cell % 10}", "selected_model": f"m{cell % 10}", "decision": f"d{cell % 10}"}
            settle = facts.settle(cell, evidence=evidence_of(str(cell)), **words)
            found += await writer.reasons(facts.dispatch(cell, max_output_tokens=1), settle, facts.outcome(cell))
        return found

    planner.add_run(max_cost=10**9)
    asked = await asyncio.gather(work(both[0][1], sets[0], 0), work(both[1][1], sets[1], 10))
    assert set(asked[0] + asked[1]) == {""}
    pages = [(await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN, page_size=100))).calls for service, _ in both]
    assert pages[0] == pages[1]
    assert {(call.finish_reason, call.selected_model) for call in pages[0]} == {(f"end-{n}", f"m{n}") for n in range(10)}
    whole = await both[0][0].gateway.GetCall(pb.GetCallRequest(run_id=RUN, call_id=pages[0][-1].id))
    assert whole.final


async def test_a_fence_of_one_stops_the_dispatch_of_the_other(both: Any, facts: Any, tmp_path: Path) -> None:
    (one, writer), (other, _) = both
    await other.fence(3, token=2)
    assert await writer.reasons(facts.dispatch(3, token=1)) == ["OUTRUN_TOKEN"]
    assert await writer.reasons(facts.dispatch(4)) == [""]
    assert (await other.fence(4, token=2)).open is True
    assert (await one.spend()).open_call_count == 0


@pytest.mark.postgres_only
async def test_what_calls_are_doing_is_known_whoever_is_asked(both: Any, planner: Any, facts_of: Any) -> None:
    """An executor reports to one process; when that is gone it reports to another, and the older report counts no more."""
    planner.add_run(max_cost=10**9)
    (one, to_one), (other, to_other) = both
    facts = facts_of(0)
    await to_one.send(facts.dispatch(0), facts.dispatch(1))

    async def tell(writer: Any, phase: str) -> None:
        calls = [pb.CallActivity(key=facts.key(cell), phase=phase) for cell in range(2)]
        await writer.send(pb.Fact(activity=pb.ActivityReport(executor_id="e1", calls=calls)))

    async def until_seen(phase: str) -> None:
        request = pb.ListCallsRequest(run_id=RUN, active=True)
        async with asyncio.timeout(30):
            for service in (one, other):
                while [  # noqa: ASYNC110 - another process says so
                    call.activity.phase for call in (await service.gateway.ListCalls(request)).calls
                ] != [phase] * 2:
                    await asyncio.sleep(0.02)

    await tell(to_one, "waiting")
    await until_seen("waiting")
    await tell(to_other, "streaming")
    await until_seen("streaming")
