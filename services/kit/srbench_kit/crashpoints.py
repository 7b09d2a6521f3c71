"""Named places at which a process can be told to die, so that tests can prove what a crash leaves behind.

`SR_BENCH_CRASH=name@3` kills this process by SIGKILL the third time it passes `name`, once: the file that
`SR_BENCH_CRASH_MARK` names is made first, and a process that finds it passes and does not count. Without the variable a
place costs one comparison.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

_NAME, _, _COUNT = os.environ.get("SR_BENCH_CRASH", "").partition("@")
_left = int(_COUNT or 1)
# For places where even the name costs something to make.
ARMED = bool(_NAME)


def crashpoint(name: str) -> None:
    """Dies here when the environment says so."""
    global _left
    if not ARMED or name != _NAME:
        return
    mark = Path(os.environ["SR_BENCH_CRASH_MARK"])
    if mark.exists():
        return
    _left -= 1
    if _left <= 0:
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
