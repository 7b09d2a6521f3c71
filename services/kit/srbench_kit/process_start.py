"""Which process an id meant when it was noted: ids are given again, starts are not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def process_start(pid: int) -> str:
    """When process `pid` started, as text that no other process shares; empty when there is none or it has ended."""
    if sys.platform != "linux":
        found = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return found.stdout.strip()
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    # One that has ended stays in the table until its parent asks for it.
    return "" if fields[0] in ("Z", "X") else f"{boot}:{fields[19]}"
