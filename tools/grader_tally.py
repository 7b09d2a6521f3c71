"""What tools that compare our graders with upstream's share: one verdict of each side, counted and written down."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO


@dataclass(frozen=True, slots=True)
class Pair:
    """Both sides' word on one program or conversation; `None` of a side that came to no verdict in its time."""

    case: str
    variant: str
    upstream: bool | None
    ours: bool | None
    said: str = ""

    @property
    def compared(self) -> bool:
        """Whether both sides came to a verdict."""
        return self.upstream is not None and self.ours is not None


class Tally:
    """Counts pairs, prints every disagreement, and writes each pair to `output` as a line of JSON.

    With `resume` the pairs that `output` holds already count, and `known` names them.
    """

    def __init__(self, output: Path | None, *, resume: bool = False) -> None:
        self._began = time.monotonic()
        self.total = self.passes = self.open = self.differ = 0
        self.known: dict[tuple[str, str], Pair] = {}
        self._file: TextIO | None = None
        if output and resume and output.exists():
            for line in output.read_text().splitlines():
                self.add(pair := Pair(**json.loads(line)))
                self.known[pair.case, pair.variant] = pair
        if output:
            self._file = output.open("a" if resume else "w")

    def add(self, pair: Pair) -> None:
        """Takes one pair."""
        self.total += 1
        self.passes += bool(pair.upstream)
        self.open += not pair.compared
        if pair.compared and pair.upstream != pair.ours:
            self.differ += 1
            print(f"DIFFERS {pair.case} {pair.variant}: upstream {pair.upstream}, ours {pair.ours} {pair.said}", flush=True)
        if self._file:
            self._file.write(json.dumps(asdict(pair)) + "\n")
            self._file.flush()

    def told(self) -> str:
        """The counts so far, as one line."""
        counts = f"{self.total} verdicts, {self.passes} of upstream's are passes"
        return f"{counts}, {self.open} not compared for want of time, {self.differ} differ; {self._took():.0f} s"

    def end(self) -> int:
        """Prints the counts; the exit code: 1 when anything differs, 2 when nothing was compared."""
        print(self.told(), flush=True)
        if self._file:
            self._file.close()
        if self.total == self.open:
            return 2
        return int(self.differ > 0)

    def _took(self) -> float:
        return time.monotonic() - self._began
