"""What a session says of a program that ended, without a sandbox around it."""

from __future__ import annotations

import selectors
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from srbench_grader.sandbox import session as session_module
from srbench_grader.sandbox.session import SandboxEnded, Session


def session_of(text: str) -> Session:
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    return Session(process, kill=process.kill, clean=lambda: None, wall_s=60.0, output_bytes=1024)


def test_streams_that_close_before_the_program_ends_do_not_hide_how_it_ended() -> None:
    session = session_of("import os, time\nos.close(1)\nos.close(2)\ntime.sleep(0.2)\nos._exit(3)")
    try:
        assert session.last_words() == "exit code 3: no message"
    finally:
        session.close()


@dataclass
class Clock:
    """Stands still but for what a test adds."""

    now_s: float = 0.0

    def monotonic(self) -> float:
        return self.now_s


class Looks:
    """A selector by which the clock moves: the first look takes `first_s`, each further one in vain what it may.

    What is looked for is waited for `patience_s` of real time.
    """

    def __init__(self, real: selectors.BaseSelector, clock: Clock, first_s: float, patience_s: float) -> None:
        self._real, self._clock, self._first_s, self._patience_s = real, clock, first_s, patience_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def select(self, wait_s: float) -> list[tuple[selectors.SelectorKey, int]]:
        if self._first_s:
            self._clock.now_s += self._first_s
            self._first_s = 0.0
            return []
        found = self._real.select(self._patience_s)
        self._clock.now_s += 0.0 if found else wait_s
        return found


def looking(monkeypatch: pytest.MonkeyPatch, text: str, first_s: float, patience_s: float) -> Session:
    clock = Clock()
    monkeypatch.setattr(session_module, "time", clock)
    session = session_of(text)
    monkeypatch.setattr(session, "_selector", Looks(session._selector, clock, first_s, patience_s))
    return session


ANSWERS = "input(); print('0 fine', flush=True); input()"


def test_an_answer_that_came_while_everything_stood_still_came_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    session = looking(monkeypatch, ANSWERS, first_s=100.0, patience_s=60.0)
    try:
        assert session.exchange(b"go\n", header_bytes=100, most_bytes=0, timeout_s=5.0) == (b"0 fine", b"")
        assert session.alive, "its life was not shortened either"
    finally:
        session.close()


def test_silence_ends_a_program_at_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    session = looking(monkeypatch, "input(); input()", first_s=0.0, patience_s=0.0)
    try:
        with pytest.raises(SandboxEnded) as caught:
            session.exchange(b"go\n", header_bytes=100, most_bytes=0, timeout_s=5.0)
        assert caught.value.end == "timeout"
    finally:
        session.close()
