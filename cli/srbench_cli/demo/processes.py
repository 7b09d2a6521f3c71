"""The processes that the demo starts beside the stack: makers of source files, and the testbed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from srbench_kit.errors import Unreachable

from srbench_cli.child_process import die_with_parent
from srbench_cli.supervisor import last_words

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0
POLL_S = 0.02


@dataclass(slots=True)
class Started:
    """A process with its log.

    Attributes:
        begin: where in the log its own output begins.
    """

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    begin: int

    def finish(self) -> str:
        """What it printed, once it has ended. Raises: `Unreachable` (`DEMO_STEP_FAILED`) when it failed."""
        code = self.process.wait()
        if code:
            raise Unreachable("DEMO_STEP_FAILED", f"{self.name} failed{last_words(self.log)}; see {self.log}", log=self.log)
        return self.said()

    def said(self) -> str:
        """What it printed so far."""
        with self.log.open("rb") as file:
            file.seek(self.begin)
            return file.read().decode("utf-8", "replace")

    def wait_until_listening(self) -> None:
        """Returns when it has said where it listens. Raises: `Unreachable` (`DEMO_STEP_FAILED`)."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if any(line.startswith("listening ") for line in self.said().split("\n")[:-1]):
                return
            if self.process.poll() is not None:
                break
            time.sleep(POLL_S)
        raise Unreachable(
            "DEMO_STEP_FAILED", f"{self.name} did not start{last_words(self.log)}; see {self.log}", log=self.log
        )

    def stop(self) -> None:
        """Ends it: asks first, then insists."""
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start(name: str, module: str, arguments: Sequence[str], log: Path, *, with_parent: bool = True) -> Started:
    """Starts `python -m module arguments…`; it ends with this process unless `with_parent` is off."""
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
        begin = output.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGKILL) if with_parent else None,
        )
    return Started(name, process, log, begin)
