"""Where upstream harnesses lie on this machine: their interpreters and their files."""

from __future__ import annotations

import os
from pathlib import Path

# The tasks of Terminal-Bench: planners freeze them, executors run them.
TERMINAL_TASKS = ("harbor-framework/terminal-bench-2-1", "7131e4375048a0e408a8fb404b5f499d726b695b", "tasks")
PYTHON = Path(".venv") / "bin" / "python"


def harness_home() -> Path:
    """Where `setup --install` puts harnesses: below `SR_BENCH_HOME`, as the released service has it."""
    home = os.environ.get("SR_BENCH_HOME", "") or "~/.cache/vllm-sr/sr-bench-1.0"
    return Path(home).expanduser().absolute() / "harnesses"


def root(variable: str, folder: str) -> Path:
    """The upstream files of a harness: `SR_BENCH_<variable>_ROOT`, else `folder` in the home of harnesses."""
    named = os.environ.get(f"SR_BENCH_{variable}_ROOT", "")
    return Path(named).expanduser().absolute() if named else harness_home() / folder


def python(variable: str, folder: str) -> Path:
    """The interpreter of a harness: `SR_BENCH_<variable>_PYTHON`, else that of the environment in `folder`.

    Not resolved: what a link in an environment points to is not the environment's.
    """
    named = os.environ.get(f"SR_BENCH_{variable}_PYTHON", "")
    return Path(named).expanduser().absolute() if named else installed(folder)


def installed(folder: str) -> Path:
    """The interpreter of the environment in `folder`."""
    return harness_home() / folder / PYTHON
