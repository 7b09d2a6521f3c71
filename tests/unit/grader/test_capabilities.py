"""What a grader says it has: looked for once in a while, by one look at a time."""

from __future__ import annotations

import asyncio

import pytest
from srbench_grader import capabilities
from srbench_grader.capabilities import KEPT_S, Capabilities


async def test_a_look_serves_all_who_ask_for_a_while() -> None:
    now, looks = 0.0, []

    def look() -> list[str]:
        looks.append(now)
        return ["sandbox"]

    kept = Capabilities(look, lambda: now)
    assert [list(found) for found in await asyncio.gather(*[kept.names() for _ in range(5)])] == [["sandbox"]] * 5
    now = KEPT_S
    await kept.names()
    assert looks == [0.0, KEPT_S]


def test_a_machine_that_has_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert capabilities.look() == []
