"""Waiting for a run."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_cli import watch


class Door:
    """A front door in whose third call Ctrl-C comes, `interrupts` times; it must not break into what holds locks."""

    planner = accounting = type("Stub", (), {"GetRun": "GetRun", "GetSpend": "GetSpend"})

    def __init__(self, interrupts: int) -> None:
        self.asked, self.finished = 0, 0
        self._interrupts = interrupts

    def call(self, method: str, request: Any, *_: Any, **__: Any) -> Any:
        self.asked += 1
        if self.asked > 20:
            pytest.fail("Ctrl-C was lost")
        if self.asked == 3:
            for _ in range(self._interrupts):
                os.kill(os.getpid(), signal.SIGINT)
        self.finished += 1
        return planner_pb.Run(id="r", status="running") if method == "GetRun" else accounting_pb.Spend()


@pytest.mark.parametrize(("interrupts", "unfinished"), [(1, 0), (2, 1)])
def test_a_first_interrupt_lets_the_call_under_way_finish_and_a_second_does_not(
    monkeypatch: pytest.MonkeyPatch, interrupts: int, unfinished: int
) -> None:
    monkeypatch.setattr(watch, "POLL_S", 0.001)
    door: Any = Door(interrupts)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            watch.run_to_end(door, planner_pb.Run(id="r", status="running"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert door.asked - door.finished == unfinished
    assert door.asked <= 4


def test_an_interrupt_in_a_pause_ends_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "POLL_S", 3600.0)
    door: Any = Door(0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    alarm = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    alarm.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            watch.run_to_end(door, planner_pb.Run(id="r", status="running"))
    finally:
        signal.signal(signal.SIGINT, before)
        alarm.join()
