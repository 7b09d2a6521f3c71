"""`setup`: what benchmarks need before they can run, what of it is missing, and the command that mends it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from srbench.v1 import setup_pb2 as pb
from srbench_kit.errors import Unreachable
from srbench_kit.values import Json

from srbench_cli import printing, tables
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S

if TYPE_CHECKING:
    from rich.console import RenderableType

BUILD_S = 1800.0


@click.command()
@click.option("--benchmark", "benchmarks", multiple=True, required=True, help="A benchmark, or all; may be repeated.")
@click.option("--build-sandbox", is_flag=True, help="First build the offline image that programs are graded in, here.")
@shared_options
@pass_session
def setup(session: Session, benchmarks: tuple[str, ...], build_sandbox: bool) -> None:
    """Shows what benchmarks need and what is missing. Makes no model call."""
    if build_sandbox:
        _build_sandbox()
    names = [] if "all" in benchmarks else list(benchmarks)
    request = pb.InspectSetupRequest(benchmarks=names)
    found = session.door.call(session.door.planner.InspectSetup, request, SLOW_CALL_TIMEOUT_S).items
    missing = sum(not item.present for item in found)
    shown: Json = {"items": [_json(item) for item in found], "missing": missing}
    printing.show(shown, lambda: _table(found), as_json=session.as_json)
    if missing:
        printing.notice(f"{missing} of {len(found)} things are missing")


def _build_sandbox() -> None:
    """Builds the image in a process of the grader's own package; what it says goes to stderr."""
    command = [sys.executable, "-m", "srbench_grader.sandbox.build"]
    try:
        code = subprocess.run(command, stdout=sys.stderr, timeout=BUILD_S, check=False).returncode
    except subprocess.TimeoutExpired:
        raise Unreachable("BUILD_FAILED", f"the sandbox was not built within {BUILD_S:.0f} s") from None
    if code:
        raise Unreachable("BUILD_FAILED", f"the sandbox was not built: its builder ended with {code}")


def _json(item: pb.SetupItem) -> Json:
    found: dict[str, Json] = {"benchmark": item.benchmark, "item": item.item, "present": item.present}
    return found | {"detail": item.detail, "remedy": item.remedy}


def _table(items: Sequence[pb.SetupItem]) -> RenderableType:
    rows = [(item.benchmark, item.item, "there" if item.present else "missing", item.detail, item.remedy) for item in items]
    return tables.table(("benchmark", "needs", "state", "detail", "mend it with"), rows)
