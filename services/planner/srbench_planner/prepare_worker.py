"""The process that prepares one request: `python -m srbench_planner.prepare_worker`, started by `preparation`.

A process of its own keeps Parquet, downloads and hostile files away from the planner's loop and memory. It reads one
line of JSON, writes one line of JSON for each step and one for the end, and ends when its standard input closes.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TextIO

from srbench_kit.errors import SrBenchError
from srbench_kit.values import Json

from srbench_planner import catalog
from srbench_planner.prepare import Progress, check_request, prepare

_REPORT_EVERY_S = 0.25


class _Reporter:
    """Writes progress lines: each new phase at once, bytes of the same phase four times a second."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._last, self._time = out, Progress(phase=""), 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        same = (progress.phase, progress.benchmark) == (self._last.phase, self._last.benchmark)
        if same and now - self._time < _REPORT_EVERY_S:
            return
        self._last, self._time = progress, now
        self.write(
            {
                "phase": progress.phase,
                "benchmark": progress.benchmark,
                "done_count": progress.done_count,
                "byte_count": progress.byte_count,
            }
        )

    def write(self, line: dict[str, Json]) -> None:
        print(json.dumps(line), file=self._out, flush=True)


def _end_with_parent() -> None:
    """Ends this process once the planner that holds the other end of standard input is gone."""
    while sys.stdin.readline():
        pass
    os._exit(3)


def _run(line: str, reporter: _Reporter) -> None:
    asked = json.loads(line)
    known = catalog.load()
    request = check_request(known, **asked["request"])
    dataset = prepare(known, Path(asked["store"]), request, reporter)
    reporter.write({"dataset_id": dataset.id})


def main() -> int:
    """Prepares what the first line of standard input asks for. Returns the exit code."""
    # Standard output carries the protocol; whatever a library prints goes to the log.
    reporter = _Reporter(os.fdopen(os.dup(sys.stdout.fileno()), "w"))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    os.umask(0o077)
    # Plain range requests: a dropped transfer goes on where it stopped.
    os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    line = sys.stdin.readline()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _run(line, reporter)
    except SrBenchError as error:
        reporter.write({"reason": error.reason, "error": error.message})
        return 1
    except Exception:
        traceback.print_exc()
        reporter.write({"reason": "INTERNAL", "error": "the preparation met a bug; the planner's log has the details"})
        return 70
    return 0


if __name__ == "__main__":
    sys.exit(main())
