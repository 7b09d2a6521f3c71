"""Ports for processes that must be told where to listen, long before they do.

The kernel hands out any port of its own range meanwhile, to whoever connects; these lie below it, and no two tests of this
machine get the same one: the next is kept in a file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
from pathlib import Path

FIRST, END = 20_000, 32_000
_NEXT = Path(tempfile.gettempdir()) / f"sr-bench-test-ports-{os.getuid()}"


def free_ports(count: int) -> list[int]:
    """So many free ports in a row."""
    with _NEXT.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        at = int(file.read() or FIRST)
        while True:
            at = at if at + count <= END else FIRST
            found = list(range(at, at + count))
            at += count
            if _are_free(found):
                break
        file.truncate(0)
        file.write(str(at))
        return found


def free_port() -> int:
    return free_ports(1)[0]


def _are_free(ports: list[int]) -> bool:
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        for port in ports:
            stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
        return True
    return False
