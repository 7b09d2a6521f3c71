"""The grader's RPCs over a real channel, with a planner that counts how often it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from grpc import aio
from srbench.v1 import grader_service_pb2 as pb
from srbench.v1 import grader_service_pb2_grpc as rpc
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import planner_service_pb2_grpc as planner_rpc
from srbench_grader.grading import Case, Grader, Grading, JudgeCall, JudgeReply
from srbench_grader.references import ReferenceCache, hidden_fetch, planner_fetch
from srbench_grader.registry import load_graders
from srbench_grader.servicer import GraderServicer
from srbench_grader.workshop import Workshop
from srbench_kit import auth, wire
from srbench_kit.errors import NotFound
from srbench_kit.serving import Server
from srbench_kit.values import Json, fill_value, from_value

KNOWN = "a" * 64


def reference(index: int, answer: Json, choice_count: int = 0, **metadata: Json) -> pb.Reference:
    message = pb.Reference(case_index=index, case_id=f"mmlu-pro/{index}", benchmark="mmlu-pro", choice_count=choice_count)
    fill_value(message.answer, answer)
    fill_value(message.metadata, dict(metadata))
    return message


REFERENCES = [
    reference(0, "B", 4),
    reference(1, [[[1, 0], [0, 1]]], output_format="grids"),
    reference(2, 7, 4),
]


class CountingPlanner(planner_rpc.PlannerServiceServicer):
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def StreamReferences(
        self, request: planner_pb.StreamReferencesRequest, context: aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[planner_pb.StreamReferencesResponse]:
        auth.require_role(context, "grader")
        self.asked.append(request.case_sha256)
        if request.case_sha256 != KNOWN:
            raise NotFound("NO_SUCH_PLAN", "no plan has these cases")
        for one in REFERENCES:
            yield planner_pb.StreamReferencesResponse(references=[one])


def judged(text: str, case: Case, replies: tuple[JudgeReply, ...]) -> Grading:
    if not replies:
        return Grading(correct=None, status="unparsed", judge_call=JudgeCall(messages=(("user", f"Is {text} right?"),)))
    return Grading(correct=replies[0].text == "yes", status="parsed", extracted=text)


def broken(text: str, case: Case, replies: tuple[JudgeReply, ...]) -> Grading:
    raise ZeroDivisionError(text)


GRADERS = dict(load_graders([])) | {
    "asking": Grader(name="asking", version="asking-v1", judge=judged),
    "broken": Grader(name="broken", version="broken-v1", judge=broken),
}


class Stack:
    def __init__(self, planner: CountingPlanner, stub: Any, planner_server: Server, address: str) -> None:
        self.planner, self.stub, self.planner_server, self.address = planner, stub, planner_server, address

    async def grade(self, *answers: pb.Answer) -> dict[int, pb.Grade]:
        call = self.stub.Grade(iter([pb.GradeRequest(answers=answers)]))
        return {grade.sequence: grade async for response in call for grade in response.grades}


@pytest.fixture
async def stack() -> AsyncIterator[Stack]:
    planner = CountingPlanner()
    planner_server = Server("127.0.0.1:0")
    planner_server.add(planner, planner_rpc.add_PlannerServiceServicer_to_server, "srbench.v1.PlannerService")
    await planner_server.start()
    server = Server("127.0.0.1:0")
    to_planner = wire.channel(f"127.0.0.1:{planner_server.port}", auth.service_metadata("grader"))
    workshop = Workshop(hidden_fetch(to_planner))
    servicer = GraderServicer(GRADERS, ReferenceCache(planner_fetch(to_planner)), workshop)
    server.add(servicer, rpc.add_GraderServiceServicer_to_server, "srbench.v1.GraderService")
    await server.start()
    async with wire.channel(f"127.0.0.1:{server.port}", auth.service_metadata("executor")) as channel:
        yield Stack(planner, rpc.GraderServiceStub(channel), planner_server, f"127.0.0.1:{server.port}")
    await server.drain(0)
    workshop.close()
    await to_planner.close()
    await planner_server.drain(0)


def answer(sequence: int, index: int, text: str, grader: str = "choice", cases: str = KNOWN) -> pb.Answer:
    return pb.Answer(sequence=sequence, case_sha256=cases, case_index=index, grader=grader, text=text)


async def test_a_batch_is_graded_item_by_item(stack: Stack) -> None:
    grades = await stack.grade(
        answer(1, 0, "B"),
        answer(2, 0, "The answer is **A**."),
        answer(3, 0, "Answer: B or C"),
        answer(4, 1, "```json\n[[1,0],[0,1]]\n```", "grid"),
        answer(5, 1, "no idea", "grid"),
    )
    assert {number: (grade.correct, grade.score, grade.answer_status) for number, grade in grades.items()} == {
        1: (True, 1.0, "parsed"),
        2: (False, 0.0, "parsed"),
        3: (False, 0.0, "ambiguous"),
        4: (True, 1.0, "parsed"),
        5: (False, 0.0, "unparsed"),
    }
    assert grades[1].strict_format
    assert not grades[2].strict_format
    assert from_value(grades[2].extracted) == "A"
    assert from_value(grades[3].extracted) is None
    assert from_value(grades[4].extracted) == [[[1, 0], [0, 1]]]
    assert from_value(grades[4].details) == {"pairs_correct": 1, "pairs_total": 1}
    assert grades[1].grader_version == "sr-bench-choice-v2"
    assert grades[4].grader_version == "sr-bench-grid-v2"
    assert not any(grade.failure_reason for grade in grades.values())


async def test_what_cannot_be_graded_has_a_reason_and_no_verdict(stack: Stack) -> None:
    grades = await stack.grade(
        answer(1, 9, "B"),
        answer(2, 0, "B", cases="b" * 64),
        answer(3, 0, "B", grader="oracle"),
        answer(4, 2, "B"),
        answer(5, 0, "B", grader="broken"),
        answer(6, 0, "B"),
    )
    reasons = {number: grade.failure_reason for number, grade in grades.items()}
    assert reasons == {
        1: "NO_REFERENCE",
        2: "NO_SUCH_PLAN",
        3: "NO_SUCH_GRADER",
        4: "BAD_REFERENCE",
        5: "GRADER_BUG",
        6: "",
    }
    assert all(grade.failure_message for number, grade in grades.items() if number != 6)
    assert not any(grade.HasField("correct") or grade.HasField("score") for number, grade in grades.items() if number != 6)
    assert "ZeroDivisionError" not in grades[5].failure_message


async def test_references_are_fetched_once_for_many_streams(stack: Stack) -> None:
    await asyncio.gather(*(stack.grade(answer(number, 0, "B")) for number in range(8)))
    assert stack.planner.asked == [KNOWN]


async def test_a_failed_fetch_is_asked_again(stack: Stack) -> None:
    for _ in range(2):
        await stack.grade(answer(1, 0, "B", cases="b" * 64))
    assert stack.planner.asked == ["b" * 64] * 2


async def test_a_judge_is_asked_before_the_verdict(stack: Stack) -> None:
    first = (await stack.grade(answer(1, 0, "42", "asking")))[1]
    assert not first.HasField("correct")
    assert first.judge_request.messages[0].content.string_value == "Is 42 right?"
    second = answer(1, 0, "42", "asking")
    second.judge_replies.add(text="yes", finish_reason="stop")
    assert (await stack.grade(second))[1].correct


async def test_a_batch_brings_its_own_references(stack: Stack) -> None:
    request = pb.GradeBatchRequest(answers=[answer(1, 0, "D"), answer(2, 1, "D")], references=[reference(0, "D", 4)])
    grades = (await stack.stub.GradeBatch(request)).grades
    assert [(grade.sequence, grade.correct, grade.failure_reason) for grade in grades] == [
        (1, True, ""),
        (2, False, "NO_REFERENCE"),
    ]
    assert stack.planner.asked == []


async def test_a_planner_out_of_reach_ends_the_stream(stack: Stack) -> None:
    await stack.planner_server.drain(0)
    with pytest.raises(aio.AioRpcError) as caught:
        await stack.grade(answer(1, 0, "B"))
    assert wire.to_error(caught.value).kind == "unreachable"


async def test_others_than_services_are_refused(stack: Stack) -> None:
    async with wire.channel(stack.address, {auth.ROLE_KEY: "visitor"}) as channel:
        with pytest.raises(aio.AioRpcError) as caught:
            await rpc.GraderServiceStub(channel).GradeBatch(pb.GradeBatchRequest())
    assert wire.reason(caught.value) == "WRONG_ROLE"


async def test_the_set_used_longest_ago_is_dropped_first() -> None:
    fetched: list[str] = []

    async def fetch(name: str) -> dict[int, Case]:
        fetched.append(name)
        return {0: Case(answer="A")}

    cache = ReferenceCache(fetch, kept_sets=2)
    for name in ("one", "two", "one", "three", "one", "two"):
        await cache.case_set(name)
    assert fetched == ["one", "two", "three", "two"]


async def test_an_asker_that_goes_away_does_not_take_the_fetch_along() -> None:
    ready = asyncio.Event()

    async def fetch(name: str) -> dict[int, Case]:
        await ready.wait()
        return {0: Case(answer="A")}

    cache = ReferenceCache(fetch)
    first = asyncio.ensure_future(cache.case_set("one"))
    second = asyncio.ensure_future(cache.case_set("one"))
    await asyncio.sleep(0)
    first.cancel()
    ready.set()
    assert (await second)[0].answer == "A"
