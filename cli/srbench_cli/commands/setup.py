"""`setup`: what benchmarks need before they can run, what of it is missing, and the command that mends it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1 import setup_pb2 as pb
from srbench_kit.errors import Unreachable
from srbench_kit.values import Json

from srbench_cli import printing, tables
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S

if TYPE_CHECKING:
    from rich.console import RenderableType

WORK_S = 3600.0
# What executors tell of themselves every few seconds; see `srbench_executor.harness.inspecting`.
REPORTED = ("interpreter", "harness_root")
SETTLE_S = 12.0
HARNESSES = "srbench_executor.harness.installing"
# Which module installs what a benchmark needs.
INSTALLERS = {
    "livecodebench": "srbench_grader.install",
    "scicode": "srbench_grader.install",
    "terminal-bench-2.1": HARNESSES,
    "tau3": HARNESSES,
}


@click.command()
@click.option("--benchmark", "benchmarks", multiple=True, required=True, help="A benchmark, or all; may be repeated.")
@click.option("--install", is_flag=True, help="First install pinned environments and fetch verified data, here.")
@click.option("--build-sandbox", is_flag=True, help="First build the offline image that programs are graded in, here.")
@shared_options
@pass_session
def setup(session: Session, benchmarks: tuple[str, ...], install: bool, build_sandbox: bool) -> None:
    """Shows what benchmarks need and what is missing. Makes no model call."""
    names = [] if "all" in benchmarks else list(dict.fromkeys(benchmarks))
    failed = []
    if build_sandbox:
        failed += _done("the sandbox was not built", ["srbench_grader.sandbox.build"])
    if install:
        failed += _installed(names)
    request = pb.InspectSetupRequest(benchmarks=names)
    found = _inspected(session, request, settle=install)
    missing = sum(not item.present for item in found)
    spared = _without_needs(session, names, found)
    shown: Json = {"items": [_json(item) for item in found], "missing": missing}
    printing.show(shown, lambda: _shown(found, spared), as_json=session.as_json)
    if missing:
        printing.notice(f"{missing} of {len(found)} things are missing")
    if failed:
        raise Unreachable("SETUP_FAILED", f"{' and '.join(failed)}; what is wrong stands above")


def _inspected(session: Session, request: pb.InspectSetupRequest, *, settle: bool) -> Sequence[pb.SetupItem]:
    """What there is. `settle`: something was installed just now, which executors see and tell only after a moment."""
    deadline = time.monotonic() + SETTLE_S * settle
    while True:
        found = session.door.call(session.door.planner.InspectSetup, request, SLOW_CALL_TIMEOUT_S).items
        if all(item.present for item in found if item.item in REPORTED) or time.monotonic() >= deadline:
            return found
        time.sleep(1)


def _installed(names: Sequence[str]) -> list[str]:
    """Installs what the benchmarks need, by the package that knows; what failed."""
    wanted = {name: module for name, module in INSTALLERS.items() if not names or name in names}
    failed: list[str] = []
    for module in dict.fromkeys(wanted.values()):
        chosen = [part for name, its in wanted.items() if its == module for part in ("--benchmark", name)]
        more = ("--tasks",) if module == HARNESSES else ()
        failed += _done(f"{module} did not install everything", [module, *chosen, *more])
    return failed


def _done(problem: str, module_and_arguments: list[str]) -> list[str]:
    """Runs a module of the package that knows how, in a process of its own; it writes to stderr."""
    try:
        code = subprocess.run(
            [sys.executable, "-m", *module_and_arguments], stdout=sys.stderr, timeout=WORK_S, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return [f"{problem} within {WORK_S:.0f} s"]
    return [problem] if code else []


def _json(item: pb.SetupItem) -> Json:
    found: dict[str, Json] = {"benchmark": item.benchmark, "item": item.item, "present": item.present}
    return found | {"detail": item.detail, "remedy": item.remedy}


def _without_needs(session: Session, names: Sequence[str], items: Sequence[pb.SetupItem]) -> list[str]:
    """Of the benchmarks asked for those that need nothing but their datasets and targets."""
    every = [item.id for item in session.door.call(session.door.planner.GetCatalog, planner.GetCatalogRequest()).benchmarks]
    with_needs = {item.benchmark for item in items}
    return [name for name in every if name not in with_needs and (not names or name in names)]


def _shown(items: Sequence[pb.SetupItem], spared: Sequence[str]) -> RenderableType:
    """What is needed as a table, and below it what mends what is missing, a line each so that commands can be copied."""
    from rich.console import Group
    from rich.text import Text

    rows = [
        (item.benchmark, item.item.replace("_", " "), "there" if item.present else Text("missing", "yellow"), item.detail)
        for item in items
    ]
    parts: list[RenderableType] = []
    if rows:
        parts.append(tables.table(("benchmark", "needs", "state", "detail"), rows))
    if spared:
        parts += [Text(), tables.cell(f"Nothing but datasets and targets is needed for {', '.join(spared)}.")]
    remedies: dict[str, list[str]] = {}
    for item in items:
        if not item.present:
            remedies.setdefault(item.remedy, []).append(f"{item.benchmark} {item.item.replace('_', ' ')}")
    if remedies:
        parts += [Text(), Text("What is missing, and what mends it:")]
    parts += [tables.cell(f"- {', '.join(wanted)}: {remedy}") for remedy, wanted in remedies.items()]
    return Group(*parts)
