"""The watch that is kept over a graded program inside of a sandbox, by a clock that a test moves."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from srbench_grader.sandbox import runner


@dataclass
class Clock:
    """Goes on a little at each look; at look number `at` it has stood still for 100 s, and `meanwhile` happened."""

    at: int
    meanwhile: Callable[[], None]
    looks: int = 0
    now_s: float = 0.0

    def monotonic(self) -> float:
        self.looks += 1
        if self.looks == self.at:
            self.now_s += 100.0
            self.meanwhile()
        self.now_s += 1e-6
        return self.now_s

    def sleep(self, _seconds: float) -> None:
        """No time passes."""


def test_a_program_does_not_pay_for_a_machine_that_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    (in_read, in_write), (out_read, out_write), (err_read, err_write) = os.pipe(), os.pipe(), os.pipe()
    places = [(os.POSIX_SPAWN_DUP2, end, target) for target, end in enumerate((in_read, out_write, err_write))]
    places += [(os.POSIX_SPAWN_CLOSE, in_write)]  # type: ignore[list-item]
    child = os.posix_spawn("/bin/sh", ["sh", "-c", "read line; echo done; exit 0"], {}, file_actions=places)
    runner.close(in_read, out_write, err_write)
    monkeypatch.setattr(runner, "time", Clock(at=10, meanwhile=lambda: os.close(in_write)))
    assert runner.watch(child, out_read, err_read, timeout_s=5.0, most=100) == ("ok", b"done\n", b"")
    runner.close(out_read, err_read)


def test_nor_does_a_call_of_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    (asks_read, asks), (told, told_write), (errors, errors_write) = os.pipe(), os.pipe(), os.pipe()
    server = object.__new__(runner.Server)
    server.asks, server.told, server.errors = asks, told, errors
    # Looks at the clock: the deadline, what is left, and before and after the first wait, in which all stands still.
    monkeypatch.setattr(runner, "time", Clock(at=4, meanwhile=lambda: runner.write_all(told_write, b"ok 9\n")))
    assert server.ask({"timeout_s": 5.0, "output_bytes": 100, "input": ""}) == ("ok", b"9", b"")
    runner.close(asks_read, told_write, errors_write)
    server.close()


def test_a_program_that_goes_on_for_ever_is_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    (out_read, out_write), (err_read, err_write) = os.pipe(), os.pipe()
    child = os.posix_spawn("/bin/sleep", ["sleep", "600"], {})
    clock = Clock(at=0, meanwhile=lambda: None)
    monkeypatch.setattr(runner, "time", clock)
    try:
        assert runner.watch(child, out_read, err_read, timeout_s=1e-4, most=100) == ("timeout", b"", b"")
        assert clock.now_s < 1
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        runner.close(out_read, out_write, err_read, err_write)
