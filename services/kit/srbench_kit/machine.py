"""What this machine, or this container, has to give. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

GIB = 1 << 30
# A harness with its container: most tasks ask for one processor and 2 GiB, the largest for two and 8 GiB.
HARNESS_BYTES = 4 * GIB
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


def memory_bytes(limits: Sequence[Path] = _LIMITS) -> int:
    """Memory of the machine, or what the control group of this process may have, whichever is less."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in limits:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        # Without a limit the file says `max`.
        if text.isdigit():
            found.append(int(text))
    return min(found)


def harness_cells(processor_count: int, memory: int) -> int:
    """How many harnesses may run at a time: one for each processor and each `HARNESS_BYTES` of memory, and always one."""
    return max(1, min(processor_count, memory // HARNESS_BYTES))


def usual_harness_cells() -> int:
    """`harness_cells` of this machine."""
    return harness_cells(processors(), memory_bytes())
