"""The repetition guard sees every period, and nothing else."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_executor.guards import RepetitionGuard


def fires(text: str, window: int = 128, limit: int = 5, piece: int = 7) -> bool:
    guard = RepetitionGuard(window, limit)
    pushed = [guard.push(text[at : at + piece]) for at in range(0, len(text), piece)]
    return any(pushed) or guard.finish()


@pytest.mark.parametrize("period", [1, 2, 3, 5, 7, 31, 64, 100, 127, 128])
def test_every_period_up_to_the_window_is_seen(period: int) -> None:
    word = "".join(chr(0x4E00 + position) for position in range(period))
    assert fires("An answer begins. " + word * (900 // period + 1))


def test_a_longer_period_is_not_seen() -> None:
    word = "".join(chr(0x4E00 + position) for position in range(129))
    assert not fires(word * 20)


def test_a_ruled_line_of_640_dashes_is_no_loop_and_an_endless_one_is() -> None:
    assert not fires("table\n" + "-" * 640)
    assert not fires("table\n" + "-" * 640 + "\n| a | b |\n" + "-" * 640)
    assert fires("table\n" + "-" * 641)


def test_what_ended_repeating_is_no_loop() -> None:
    assert not fires("ab" * 310 + "and so it ended, as it had to, without any more of the same words as before")


@given(st.integers(1, 6), st.integers(1, 4), st.text(alphabet="ab", max_size=60))
def test_it_agrees_with_the_definition(window: int, limit: int, text: str) -> None:
    span = window * limit
    tail = text[-(span + window) :]

    def periodic(period: int) -> bool:
        return len(tail) >= span + period and all(tail[-n] == tail[-n - period] for n in range(1, span + 1))

    guard = RepetitionGuard(window, limit)
    guard.push(text)
    assert guard.finish() == any(periodic(period) for period in range(1, window + 1))


def test_its_cost_per_character_does_not_grow() -> None:
    chance = random.Random(3)
    pieces = ["".join(chance.choices("abcdefgh \n", k=8)) for _ in range(50_000)]

    def seconds(count: int) -> float:
        guard = RepetitionGuard(128, 5)
        began = time.process_time()
        assert not any([guard.push(piece) for piece in pieces[:count]])
        return time.process_time() - began

    assert min(seconds(50_000) for _ in range(3)) < 30 * min(seconds(5_000) for _ in range(3)) + 0.05
