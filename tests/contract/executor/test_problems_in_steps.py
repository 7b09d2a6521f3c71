"""The whole executor between fake services: a problem in steps is one call a step, in one conversation."""

from __future__ import annotations

import json
from typing import Any

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.values import to_value

from tests.contract.executor.streams import whole


def in_steps(rig: Any, count: int, **changes: Any) -> Any:
    lease = rig.lease(driver="scicode", grader="scicode", **changes)
    del lease.public_case.messages[:]
    lease.public_case.messages.add(role="system", content=to_value("rules"))
    for number in range(count):
        lease.public_case.messages.add(role="user", content=to_value(f"step {number}"))
    return lease


async def test_steps_are_calls_of_their_own_in_one_conversation(rig: Any, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=whole(text)) for text in ("one", "two", "B")]
    rig.queue.add(in_steps(rig, 3))
    await rig.start_executor()
    await rig.finished(1)
    asked = [[message["content"] for message in json.loads(body)["messages"]] for _, body in rig.upstream.requests]
    assert asked == [
        ["rules", "step 0"],
        ["rules", "step 0", "one", "step 1"],
        ["rules", "step 0", "one", "step 1", "two", "step 2"],
    ]
    assert [(one.key.ordinal, one.role) for one in rig.ledger.dispatches] == [(n, pb.CALL_ROLE_SUBJECT) for n in range(3)]
    (answer,) = rig.grader.answers
    assert (list(answer.parts), answer.text) == (["one", "two", "B"], "B")
    assert rig.ledger.outcomes[0].correct


async def test_steps_that_were_answered_before_are_gone_on_from_and_never_asked_again(rig: Any, answer_type: Any) -> None:
    """As after a kill between steps: accounting knows the first two."""
    for ordinal, text in enumerate(("one", "two")):
        known = pb.KnownCall(status=2, receipt=pb.Receipt(output_complete=True), final_text=text)
        rig.ledger.known[ordinal] = pb.FactAck(reason="ALREADY_DISPATCHED", known_call=known)
    rig.upstream.answers = [answer_type(chunks=whole("B"))]
    rig.queue.add(in_steps(rig, 3, token=7))
    await rig.start_executor()
    await rig.finished(1)
    ((_, body),) = rig.upstream.requests
    assert [message["content"] for message in json.loads(body)["messages"]] == [
        *("rules", "step 0", "one", "step 1", "two", "step 2")
    ]
    assert [settle.key.ordinal for settle in rig.ledger.settles] == [2]
    assert list(rig.grader.answers[0].parts) == ["one", "two", "B"]


async def test_a_step_with_an_unknown_end_ends_the_cell_and_asks_no_more(rig: Any) -> None:
    known = pb.KnownCall(status=2, receipt=pb.Receipt(output_complete=True), final_text="one")
    rig.ledger.known[0] = pb.FactAck(reason="ALREADY_DISPATCHED", known_call=known)
    rig.ledger.known[1] = pb.FactAck(reason="ALREADY_DISPATCHED", known_call=pb.KnownCall(status=1))
    rig.queue.add(in_steps(rig, 3, token=7))
    await rig.start_executor()
    (completion,) = await rig.finished(1)
    assert (completion.state, rig.upstream.requests) == (queue_pb.CELL_STATE_INTERRUPTED, [])
    assert rig.grader.answers == []


async def test_a_step_that_is_cut_makes_the_problem_wrong_and_asks_no_more(rig: Any, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=whole("half", "length"))]
    rig.queue.add(in_steps(rig, 3))
    await rig.start_executor()
    await rig.finished(1)
    assert len(rig.upstream.requests) == 1
    assert (rig.ledger.outcomes[0].correct, rig.ledger.outcomes[0].output_limit) == (False, True)
