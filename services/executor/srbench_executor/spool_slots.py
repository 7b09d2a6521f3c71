"""Spool folders for executors that come and go: each takes one that nobody has, first those with something left in them."""

from __future__ import annotations

from pathlib import Path

from srbench_kit.errors import Conflict

from srbench_executor.spool import Spool

MAX_SLOTS = 10_000


def take(root: Path) -> Spool:
    """The spool in the first free folder below `root`: `0`, `1` and so on.

    What a killed executor left is taken before empty folders, so that its receipts are settled by whoever starts next.
    Raises: `Conflict` (`SPOOL_IN_USE`) when ten thousand are taken.
    """
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    there = {int(path.name) for path in root.iterdir() if path.name.isdigit()}
    left = sorted(number for number in there if any((root / str(number)).glob("*.seg")))
    for number in [*left, *(number for number in range(MAX_SLOTS) if number not in left)]:
        try:
            return Spool(root / str(number))
        except Conflict:
            continue
    raise Conflict("SPOOL_IN_USE", f"all {MAX_SLOTS} spool folders in {root.name} are in use")
