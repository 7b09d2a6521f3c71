"""Waiting for a run or a preparation, with the progress on stderr. The work goes on without the one who waits."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import TypeVar

from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit.errors import NotFound, Unreachable

from srbench_cli.front_door import FrontDoor
from srbench_cli.printing import notice
from srbench_cli.progress import Pace, Standing, progress_text

ENDED = frozenset({"completed", "failed", "cancelled", "interrupted"})
POLL_S = 0.25
LINE_S = 5.0
PATIENCE_S = 120.0
T = TypeVar("T")


def run_to_end(door: FrontDoor, run: planner_pb.Run) -> planner_pb.Run:
    """The run once it has ended. A service that goes away for a moment is waited for."""
    pace = Pace()
    with _minding_interrupts() as interrupts, _display() as say:
        while True:
            interrupts.check()
            standing = standing_of(run, _spend(door, run.id))
            pace.see(time.monotonic(), standing.done)
            say(progress_text(standing, pace), run.status in ENDED)
            if run.status in ENDED:
                return run
            interrupts.pause(POLL_S)
            run = _patiently(
                interrupts, partial(door.call, door.planner.GetRun, planner_pb.GetRunRequest(id=run.id, summary=True))
            )


def preparation_to_end(door: FrontDoor, job: planner_pb.DatasetPreparation) -> planner_pb.DatasetPreparation:
    """The preparation once it has ended."""
    with _minding_interrupts() as interrupts, _display() as say:
        while True:
            interrupts.check()
            say(preparation_text(job), job.status in ENDED)
            if job.status in ENDED:
                return job
            interrupts.pause(POLL_S)
            request = planner_pb.GetDatasetPreparationRequest(id=job.id)
            job = _patiently(interrupts, partial(door.call, door.planner.GetDatasetPreparation, request))


def standing_of(run: planner_pb.Run, spend: accounting_pb.Spend | None) -> Standing:
    """Where a run stands, from what the planner and accounting say."""
    progress = run.progress
    return Standing(
        status=run.status,
        total=progress.total,
        completed=progress.completed,
        failed=progress.failed,
        running=progress.running,
        known_pico=spend.known_cost_picodollars if spend else None,
        budget_pico=spend.max_cost_picodollars if spend and spend.HasField("max_cost_picodollars") else None,
        unknown_costs=spend.unknown_cost_count if spend else 0,
    )


def preparation_text(job: planner_pb.DatasetPreparation) -> str:
    """One line: which benchmark is in hand, how far it is."""
    text = f"{job.phase or job.status}: {job.done_count}/{job.total_count} benchmarks"
    if job.benchmark and job.status not in ENDED:
        text += f", {job.benchmark}"
    return text + (f", {job.byte_count / 1e6:.1f} MB read" if job.byte_count else "")


def _spend(door: FrontDoor, run_id: str) -> accounting_pb.Spend | None:
    """What the run has spent; `None` as long as accounting knows nothing of it or does not answer."""
    try:
        return door.call(door.accounting.GetSpend, accounting_pb.GetSpendRequest(run_id=run_id), timeout_s=5.0)
    except (NotFound, Unreachable):
        return None


def _patiently(interrupts: _Interrupts, ask: Callable[[], T]) -> T:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask()
        except Unreachable:
            if time.monotonic() > deadline:
                raise
            interrupts.pause(1.0)


class _Interrupts:
    """A first Ctrl-C ends a wait where nothing else is under way: within a call or the display it would get lost, or leave
    a lock taken for ever. A second one ends it at once."""

    def __init__(self) -> None:
        self._came = self._pausing = False

    def note(self, _number: int, _frame: FrameType | None) -> None:
        """The handler of the signal. Raises: `KeyboardInterrupt`."""
        at_once = self._pausing or self._came
        self._came = True
        if at_once:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raises: `KeyboardInterrupt` once Ctrl-C came."""
        if self._came:
            raise KeyboardInterrupt

    def pause(self, seconds: float) -> None:
        """Sleeps. Raises: `KeyboardInterrupt` as soon as Ctrl-C comes, or when it came before."""
        self._pausing = True
        try:
            self.check()
            time.sleep(seconds)
        finally:
            self._pausing = False


@contextlib.contextmanager
def _minding_interrupts() -> Iterator[_Interrupts]:
    """Has Ctrl-C end the wait inside. Where somebody else handles the signal, or in another thread, it stays theirs."""
    interrupts = _Interrupts()
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield interrupts
        return
    signal.signal(signal.SIGINT, interrupts.note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def _display() -> Iterator[Callable[[str, bool], None]]:
    """Shows the latest line in place on a terminal; elsewhere a line now and then, and the last one."""
    if not sys.stderr.isatty():
        yield _plain_lines()
        return
    from rich.console import Console
    from rich.spinner import Spinner
    from rich.text import Text

    spinner = Spinner("dots")
    console = Console(stderr=True, highlight=False)
    from rich.live import Live

    with Live(spinner, console=console, transient=True, refresh_per_second=8):
        yield lambda text, _last: spinner.update(text=Text(text))


def _plain_lines() -> Callable[[str, bool], None]:
    shown_s, shown = 0.0, ""

    def say(text: str, last: bool) -> None:
        nonlocal shown_s, shown
        due = last or time.monotonic() - shown_s >= LINE_S
        if due and text != shown:
            shown_s, shown = time.monotonic(), text
            notice(text)

    return say
