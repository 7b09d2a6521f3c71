"""Large texts are judged in another process: the loop goes on, and a judgement without end is ended."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from srbench_grader import choice
from srbench_grader.apart import LARGE_CHARS, Apart, is_large
from srbench_grader.grading import Case
from srbench_kit.errors import InvalidInput, SrBenchError

CASE = Case(case_id="c", answer="B", choice_count=4)
HOSTILE = "the answer is " * 30_000


@pytest.fixture
def apart() -> Iterator[Apart]:
    made = Apart(most_s=60)
    yield made
    made.close()


async def test_a_large_text_is_judged_as_it_would_be_here_while_the_loop_goes_on(apart: Apart) -> None:
    assert is_large(HOSTILE)
    assert not is_large("B" * LARGE_CHARS)
    await apart.call(choice.judge, "Answer: B", CASE, ())
    longest, judging = 0.0, asyncio.ensure_future(apart.judge(choice.judge, HOSTILE + "Answer: B", CASE, ()))
    while not judging.done():
        began = time.thread_time()
        await asyncio.sleep(0)
        longest = max(longest, time.thread_time() - began)
    began = time.thread_time()
    assert judging.result() == choice.judge(HOSTILE + "Answer: B", CASE)
    # In time of this thread's own processor, beside what judging here takes of it.
    assert longest < (time.thread_time() - began) / 4


async def test_what_a_grader_refuses_is_refused_from_there_too(apart: Apart) -> None:
    with pytest.raises(InvalidInput) as caught:
        await apart.judge(choice.judge, HOSTILE, Case(case_id="c", answer="?"), ())
    assert caught.value.reason == "BAD_REFERENCE"


@pytest.mark.parametrize(
    ("body", "reason"), [("while True: pass", "JUDGING_TIMEOUT"), ("import os; os._exit(3)", "JUDGING_FAILED")]
)
async def test_a_judgement_that_comes_to_no_end_is_ended_and_the_next_one_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, reason: str
) -> None:
    name = f"judges_{reason.lower()}"
    (tmp_path / f"{name}.py").write_text(f"def judge(text, case, replies):\n    {body}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    # Long enough for a process to start and to die on a busy machine.
    apart = Apart(most_s=3 if reason == "JUDGING_TIMEOUT" else 60)
    try:
        with pytest.raises(SrBenchError) as caught:
            await apart.judge(importlib.import_module(name).judge, HOSTILE, CASE, ())
        assert caught.value.reason == reason
        apart._most_s = 60
        assert (await apart.call(choice.judge, "Answer: B", CASE, ())).correct
    finally:
        apart.close()
