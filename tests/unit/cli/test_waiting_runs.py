"""A run that waits for an executor nobody has looks like it, in lists and by itself."""

from __future__ import annotations

import io

from rich.console import Console
from srbench.v1 import planner_service_pb2 as pb
from srbench_cli import tables


def shown(found: object) -> str:
    console = Console(width=200, file=io.StringIO())
    with console.capture() as capture:
        console.print(found)
    return " ".join(capture.get().split())


def test_a_waiting_run_says_what_for() -> None:
    run = pb.Run(id="run-1", status="queued", waiting_for=["a grader with a sandbox", "an executor with the harness tau3"])
    assert "waiting for a grader with a sandbox; an executor with the harness tau3" in shown(tables.run(run))
    assert "waiting" in shown(tables.runs([run]))
    run.ClearField("waiting_for")
    assert "waiting" not in shown(tables.run(run)) + shown(tables.runs([run]))
