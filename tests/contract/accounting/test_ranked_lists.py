"""Lists in another order than that of recording, narrowed by what is not a column of the plan, and read from the middle."""

from __future__ import annotations

from typing import Any

import pytest
from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_accounting import outcome_texts
from srbench_kit import wire
from srbench_kit.values import to_value

RUN = "run-0123456789abcdef0123"
CELLS = range(12)


def cost_of(cell: int) -> int | None:
    """The cost of a cell's call; every fourth is unknown."""
    return None if cell % 4 == 0 else 1000 - 70 * cell


def model_of(cell: int) -> str:
    return ("small", "large", "huge")[cell % 3]


@pytest.fixture
async def twelve_cells(planner: Any, writer: Any, facts: Any) -> None:
    """Cells of three models with falling costs; every fifth failed."""
    planner.add_run(max_cost=10**9)
    for cell in CELLS:
        settled = facts.settle(
            cell,
            cost=cost_of(cell),
            selected_model=model_of(cell),
            decision=f"rule-{cell % 2}",
            latency_ns=(cell * 5 % 12 + 1) * 10**9,
            finish_reason="stop" if cell % 2 else "length",
        )
        await writer.send(facts.dispatch(cell), settled)
        changes: dict[str, Any] = {"answer": to_value(f"Antwort {cell}")}
        if cell % 5 == 0:
            failed = queue_pb.CELL_STATE_FAILED
            changes = {"state": failed, "reason": "stream_cut", "message": "Cut OFF", "correct": None, "score": None}
        await writer.send(facts.outcome(cell, **changes))


async def outcomes(service: Any, **asked: Any) -> tuple[list[int], int]:
    page = await service.gateway.ListOutcomes(pb.ListOutcomesRequest(run_id=RUN, **asked))
    return [row.cell for row in page.results], page.total


async def calls(service: Any, **asked: Any) -> list[int]:
    page = await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN, **asked))
    return [row.sequence - 1 for row in page.calls]


@pytest.mark.usefixtures("twelve_cells")
async def test_cost_orders_both_lists_both_ways_with_unknown_last(service: Any) -> None:
    known = [cell for cell in CELLS if cell % 4]
    unknown = [cell for cell in CELLS if not cell % 4]
    expected = known[::-1] + unknown, known + unknown
    for descending, cells in enumerate(expected):
        assert (await outcomes(service, order_by="cost", descending=bool(descending)))[0] == cells
        assert await calls(service, order_by="cost", descending=bool(descending)) == cells


@pytest.mark.usefixtures("twelve_cells")
async def test_latency_orders_and_pages_without_gap_or_repeat(service: Any) -> None:
    expected = sorted(CELLS, key=lambda cell: cell * 5 % 12)
    found: list[int] = []
    token = ""
    while True:
        request = pb.ListOutcomesRequest(run_id=RUN, order_by="latency", page_size=5, page_token=token)
        page = await service.gateway.ListOutcomes(request)
        found += [row.cell for row in page.results]
        token = page.next_page_token
        if not token:
            break
    assert found == expected


@pytest.mark.usefixtures("twelve_cells")
@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ({"model": "large"}, lambda cell: cell % 3 == 1),
        ({"decision": "rule-0"}, lambda cell: cell % 2 == 0),
        ({"model": "large", "decision": "rule-0"}, lambda cell: cell % 3 == 1 and cell % 2 == 0),
        ({"reason": "stream_cut"}, lambda cell: cell % 5 == 0),
        ({"query": "antwort 1"}, lambda cell: cell in (1, 11)),
        ({"query": "cut off"}, lambda cell: cell % 5 == 0),
        ({"query": "ANTWORT", "target_id": "slow"}, lambda cell: cell % 5 and cell % 2),
        ({"model": "nobody"}, lambda cell: False),
        ({"cell": 7}, lambda cell: cell == 7),
        ({"cell": 0}, lambda cell: cell == 0),
        ({"cell": 99}, lambda cell: False),
    ],
)
async def test_outcomes_are_narrowed_by_what_happened(service: Any, asked: dict[str, Any], fits: Any) -> None:
    expected = [cell for cell in CELLS if fits(cell)]
    assert await outcomes(service, **asked) == (expected, len(expected))


@pytest.mark.usefixtures("twelve_cells")
@pytest.mark.parametrize("room", [0, 30])
async def test_texts_that_find_no_room_in_memory_are_found_all_the_same(
    service: Any, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(outcome_texts, "MAX_CHARS", room)
    monkeypatch.setattr(outcome_texts, "_AT_ONCE", 5)
    for _ in range(2):
        assert (await outcomes(service, query="antwort"))[0] == [cell for cell in CELLS if cell % 5]
        assert (await outcomes(service, query="antwort 1"))[0] == [1, 11]
        assert (await outcomes(service, query="cut off", target_id="slow"))[0] == [5]
    (kept,) = service.store.ranks.outcomes._texts._runs.values()
    assert sum(len(text) for text in kept.texts) == kept.chars <= room


@pytest.mark.usefixtures("twelve_cells")
async def test_calls_are_narrowed_by_how_they_ended(service: Any) -> None:
    assert await calls(service, finish_reason="length") == [cell for cell in CELLS if cell % 2 == 0]
    assert await calls(service, model="huge", role=pb.CALL_ROLE_SUBJECT) == [2, 5, 8, 11]
    assert await calls(service, status=pb.CALL_STATUS_FAILED) == []
    assert await calls(service, role=pb.CALL_ROLE_JUDGE) == []


@pytest.mark.usefixtures("twelve_cells")
async def test_calls_of_unknown_cost_are_those_that_ended_without_one(service: Any, writer: Any, facts: Any) -> None:
    # A call in flight has no cost yet, and nothing to be settled.
    await writer.send(facts.dispatch(len(CELLS)))
    assert await calls(service, unknown_cost=True) == [cell for cell in CELLS if not cell % 4]
    assert await calls(service, unknown_cost=True, model=model_of(4)) == [4]


@pytest.mark.usefixtures("twelve_cells")
async def test_a_reader_may_jump_into_any_list(service: Any) -> None:
    assert (await outcomes(service, offset=10))[0] == [10, 11]
    assert (await outcomes(service, offset=2, page_size=2, target_id="slow"))[0] == [5, 7]
    assert (await outcomes(service, offset=3, page_size=2, order_by="cost", descending=True))[0] == [5, 6]
    assert (await outcomes(service, offset=50))[0] == []
    assert await calls(service, offset=9, page_size=2) == [9, 10]


@pytest.mark.usefixtures("twelve_cells")
async def test_a_ranked_list_sees_what_came_after_it_was_first_read(service: Any, writer: Any, facts: Any) -> None:
    assert (await outcomes(service, query="new answer"))[0] == []
    assert (await outcomes(service, order_by="cost"))[1] == 12
    changed = facts.outcome(13, answer=to_value("a NEW answer"))
    await writer.send(facts.dispatch(13), facts.settle(13, cost=1), changed)
    assert (await outcomes(service, query="new answer"))[0] == [13]
    assert (await outcomes(service, order_by="cost"))[0][0] == 13


@pytest.mark.usefixtures("twelve_cells")
async def test_an_outcome_names_model_and_decision_of_its_last_call(service: Any) -> None:
    page = await service.gateway.ListOutcomes(pb.ListOutcomesRequest(run_id=RUN, cell=4))
    assert (page.results[0].model, page.results[0].decision) == ("large", "rule-0")


@pytest.mark.usefixtures("twelve_cells")
@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"order_by": "beauty"}, "BAD_ORDER"),
        ({"query": "x" * 201}, "BAD_QUERY"),
        ({"offset": -1}, "BAD_OFFSET"),
    ],
)
async def test_bad_rankings_are_refused_with_the_field(service: Any, asked: dict[str, Any], reason: str) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await outcomes(service, **asked)
    assert wire.reason(caught.value) == reason


@pytest.mark.usefixtures("twelve_cells")
async def test_a_token_belongs_to_its_order(service: Any) -> None:
    page = await service.gateway.ListOutcomes(pb.ListOutcomesRequest(run_id=RUN, order_by="cost", page_size=2))
    for asked in ({"order_by": "latency"}, {"order_by": "cost", "descending": True}, {}, {"order_by": "cost", "offset": 2}):
        with pytest.raises(aio.AioRpcError) as caught:
            await outcomes(service, page_token=page.next_page_token, **asked)
        assert wire.reason(caught.value) in ("BAD_PAGE_TOKEN", "BAD_OFFSET")
