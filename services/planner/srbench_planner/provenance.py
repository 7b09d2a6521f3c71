"""What a run was started with: program, interpreter, machine, installed packages. Captured once a process."""

from __future__ import annotations

import functools
import platform
import time
from importlib import metadata

from srbench_kit.canonical import digest
from srbench_kit.values import Json

DISTRIBUTION = "sr-bench"


@functools.cache
def _environment() -> dict[str, Json]:
    packages: dict[str, Json] = {}
    for found in metadata.distributions():
        name = found.metadata["Name"]
        if name:
            packages[name.lower()] = found.version
    facts: dict[str, Json] = {
        "program": DISTRIBUTION,
        "version": str(packages.get(DISTRIBUTION, "unknown")),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "packages": {name: packages[name] for name in sorted(packages)},
    }
    return facts | {"fingerprint": digest(facts)}


def capture() -> dict[str, Json]:
    """The facts about this process; `fingerprint` is the digest of all but the time."""
    return _environment() | {"captured_at": time.time()}
