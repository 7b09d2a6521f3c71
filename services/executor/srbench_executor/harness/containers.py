"""Removes containers, networks and images that an attempt left, told by their labels."""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess

EXECUTOR_LABEL = "org.sr-bench.executor"
ATTEMPT_LABEL = "org.sr-bench.attempt"
TIMEOUT_S = 60.0
_log = logging.getLogger(__name__)


async def remove(label: str, value: str) -> None:
    """Removes all containers with their volumes, networks and images whose `label` is `value`. What stays is logged."""
    docker = shutil.which("docker")
    if docker is None:
        return
    chosen = ("--filter", f"label={label}={value}")
    for listing, removing in (
        (("ps", "-aq", "--no-trunc", *chosen), ("rm", "-f", "-v")),
        (("network", "ls", "-q", "--no-trunc", *chosen), ("network", "rm")),
        (("image", "ls", "-q", "--no-trunc", *chosen), ("image", "rm", "-f")),
    ):
        found = (await _run(docker, *listing)).split()
        if found:
            _log.info("removing %d left over: docker %s", len(found), removing[0])
            await _run(docker, *removing, *found)


async def _run(*command: str) -> str:
    return await asyncio.to_thread(_run_now, command)


def _run_now(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.error("docker %s failed: %s", command[1], error)
        return ""
    if done.returncode:
        _log.error("docker %s failed: %s", command[1], done.stderr.strip()[-300:])
    return done.stdout
