"""Which executors live and what they can take, as they said a moment ago; and what runs wait for that none of them has.

In memory: it is about now, and executors ask again within seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from srbench_planner.ports import HARNESS_PREFIX
from srbench_planner.run_cells import RunCells

# An executor with its hands full renews leases every second; one that was not heard of for longer is gone.
FRESH_S = 8.0
# What a grader may have, as executors tell of theirs: programs run, programs run in an image that the plan names.
SANDBOX, ENGINE = "sandbox", "sandbox_image"
_NEEDS = {SANDBOX: "a grader with a sandbox", ENGINE: "a grader with a Docker engine for sandbox_image"}


@dataclass(slots=True)
class _Known:
    offers: frozenset[str]
    heard: float
    asking: int = 0


class Presence:
    """The executors of one fleet. An executor may ask for cells of some drivers apart from those of others."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[tuple[str, frozenset[str]], _Known] = {}

    @contextmanager
    def asking(self, executor_id: str, drivers: Iterable[str], capabilities: Iterable[str] = ()) -> Iterator[None]:
        """While an executor asks for cells of `drivers`, which may take long; its grader has `capabilities`."""
        asked = frozenset(drivers)
        offers = asked.union(capabilities)
        known = self._known.setdefault((executor_id, asked), _Known(offers, 0.0))
        known.offers = offers
        known.asking += 1
        try:
            yield
        finally:
            known.asking -= 1
            known.heard = self._clock()

    def heard(self, executor_id: str) -> None:
        """An executor that has asked before is still there."""
        for (name, _), known in self._known.items():
            if name == executor_id:
                known.heard = self._clock()

    def count(self) -> int:
        """How many executors live."""
        self._forget()
        return len({name for name, _ in self._known})

    def offers(self) -> list[frozenset[str]]:
        """What the executors that live can take."""
        self._forget()
        return [known.offers for known in self._known.values()]

    def _forget(self) -> None:
        since = self._clock() - FRESH_S
        self._known = {key: known for key, known in self._known.items() if known.asking or known.heard >= since}

    def waiting_for(self, run: RunCells) -> list[str]:
        """What cells of a run need that no executor has, one sentence part each; nothing while it is stopped or paused."""
        if run.stop_status or run.paused:
            return []
        offers = self.offers()
        return sorted({lacking(wanted, offers) for wanted in run.wanted()} - {""})


def lacking(wanted: tuple[str, str], offers: Sequence[frozenset[str]]) -> str:
    """What cells with a driver and a need wait for; empty when an executor could take them."""
    driver, need = wanted
    if any({driver, need or driver} <= each for each in offers):
        return ""
    if not offers:
        return "an executor"
    if any(driver in each for each in offers):
        return _NEEDS.get(need, need)
    runner = driver.removeprefix(HARNESS_PREFIX)
    return f"an executor with the harness {runner}" if runner != driver else f"an executor that knows {driver}"
