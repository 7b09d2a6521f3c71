"""The command `docker` as a grader calls it: in bounded time, with no more of the environment than it needs."""

from __future__ import annotations

import contextlib
import os
import subprocess

_COMMAND_S = 30.0


def environment() -> dict[str, str]:
    """The variables that the command may see."""
    return {key: os.environ[key] for key in ("PATH", "HOME", "DOCKER_HOST") if key in os.environ}


def docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end; exit code 124 and a message when it does not end in 30 s."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return subprocess.run(
            ["docker", *arguments], capture_output=True, text=True, timeout=_COMMAND_S, env=environment(), check=False
        )
    return subprocess.CompletedProcess(arguments, 124, "", f"docker {arguments[0]} did not end in {_COMMAND_S:.0f} s")
