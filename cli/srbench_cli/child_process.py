"""Starting a process that cannot outlive the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> Callable[[], None] | None:
    """What a child runs between fork and exec so that the kernel sends it `number` when its parent dies.

    Linux only; elsewhere `None`, and a killed parent leaves children that end when their work does.
    """
    if sys.platform != "linux":
        return None
    # Loaded here, not after the fork, where locks may be held for ever.
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:
            # The parent died before the kernel knew of the wish.
            os.kill(os.getpid(), number)

    return bind
