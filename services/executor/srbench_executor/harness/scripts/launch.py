"""Starts a runner, and leaves nothing of it behind: `launch.py PARENT MAX_FILE_BYTES GRACE_S PYTHON SCRIPT INPUT RESULT`.

Run by the executor with its own interpreter, standard library only. It adopts every orphan among the runner's descendants
(a subreaper, on Linux), passes SIGTERM on, gives the runner `GRACE_S` seconds to clean up, and then kills all that is left.
It dies with the executor: a runner must not outlive the one who meters its calls.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class _Reins:
    """What the signal handlers know. They raise nothing: an end that is asked for during an end must not break it off."""

    def __init__(self, grace_s: float) -> None:
        self.stopped = False
        self.child: subprocess.Popen[bytes] | None = None
        self._grace_s = grace_s

    def stop(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """The executor wants an end, or is gone: the runner is told, and killed when its grace is over."""
        if not self.stopped:
            self.stopped = True
            signal.setitimer(signal.ITIMER_REAL, self._grace_s)
        self._send(signal.SIGTERM)

    def kill(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Ends the runner's process group at once."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if self.child is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.child.pid, number)


def _adopt() -> None:
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


def _children() -> list[int]:
    """The processes whose parent is this one; what they leave behind becomes this one's, too."""
    mine = str(os.getpid())
    found = []
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "stat").read_text().rpartition(")")[2].split()[1] == mine:
                    found.append(int(entry.name))
    return found


def _kill_orphans() -> None:
    until = time.monotonic() + 5
    while time.monotonic() < until:
        for pid in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.02)


def main() -> int:
    """The runner's exit code, 128 and the signal's number for one that a signal ended."""
    parent, most, grace_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    reins = _Reins(grace_s)
    signal.signal(signal.SIGTERM, reins.stop)
    signal.signal(signal.SIGALRM, reins.kill)
    _adopt()
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if reins.stopped or os.getppid() != parent:
        return 128 + signal.SIGTERM
    reins.child = subprocess.Popen(sys.argv[4:], stdin=subprocess.DEVNULL, process_group=0)
    if reins.stopped:
        reins.stop()
    code = reins.child.wait()
    reins.kill()
    _kill_orphans()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
