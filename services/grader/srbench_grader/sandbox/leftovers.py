"""Containers that stay behind: of graders that were killed, and those that a busy engine made for a client that was gone.

What runs in them ends by itself (see `Docker.start`); here what is left of them is removed, by the next grader of the same
machine and before the next container is started.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time

from srbench_kit.process_start import process_start

from srbench_grader.sandbox.engine import docker

LABEL = "srbench.sandbox"
_SHOWN = '{{.Names}} {{.Label "' + LABEL + '"}}'
# How long a container may take to appear after its client was ended.
_DOUBT_S = 300.0
_log = logging.getLogger(__name__)


def owner() -> str:
    """This process, as the label of its containers names it: where its id counts, id, and start."""
    return f"{_where()}/{os.getpid()}/{process_start(os.getpid())}"


class Leftovers:
    """What one grader process knows of containers that were not seen to go. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._doubted: dict[str, float] = {}
        self._looked = False

    def doubt(self, name: str) -> None:
        """Notes a container of this process that may appear, or stay, although its program was ended."""
        with self._lock:
            self._doubted[name] = time.monotonic() + _DOUBT_S

    def remove(self) -> None:
        """Removes those in doubt and, the first time, those of graders that are no more."""
        with self._lock:
            now = time.monotonic()
            self._doubted = {name: until for name, until in self._doubted.items() if now < until}
            if self._looked and not self._doubted:
                return
            listed = docker("ps", "--all", "--filter", f"label={LABEL}", "--format", _SHOWN)
            if listed.returncode:
                return
            for name, label in (line.split(" ", 1) for line in listed.stdout.splitlines() if " " in line):
                if (name in self._doubted or _gone(label)) and not docker("rm", "--force", "--volumes", name).returncode:
                    _log.info("removed the container %s, which was left behind", name)
                    self._doubted.pop(name, None)
            self._looked = True


def _where() -> str:
    """The machine and, on Linux, its table of processes: in another one, the same id is another process."""
    try:
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _gone(label: str) -> bool:
    """Whether the owner that a label names was a process here and is none any more."""
    where, _, process = label.partition("/")
    pid, _, start = process.partition("/")
    return where == _where() and pid.isdigit() and process_start(int(pid)) != start
