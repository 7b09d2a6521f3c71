"""The two backends on this machine. One that is missing fails the tests: a sandbox that is not tried is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from srbench_grader.sandbox import cgroup
from srbench_grader.sandbox.bwrap import Bwrap
from srbench_grader.sandbox.docker import LEFT_BEHIND, Docker
from srbench_grader.sandbox.leftovers import LABEL, owner
from srbench_grader.sandbox.values import Sandbox

PYTHON = os.environ.get("SR_BENCH_SANDBOX_PYTHON") or "/usr/bin/python3"
IMAGE = "python:3.11-slim-bookworm"
HOW = "run tools/prepare-sandbox as root"


def docker_image() -> str:
    """The image to test with, by its digest."""
    named = os.environ.get("SR_BENCH_SANDBOX_IMAGE", "")
    if named:
        return named
    if shutil.which("docker") is None:
        pytest.fail(f"the command docker is missing; {HOW}")
    asked = subprocess.run(
        ["docker", "image", "inspect", "--format", "{{.Id}}", IMAGE], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        pytest.fail(f"the image {IMAGE} cannot be used: {asked.stderr.strip()}; {HOW}")
    return asked.stdout.strip()


def make(name: str) -> Sandbox:
    sandbox: Sandbox = Bwrap(PYTHON) if name == "bwrap" else Docker(docker_image())
    problem = sandbox.problem()
    if problem:
        pytest.fail(f"the sandbox {name} cannot be used: {problem}; {HOW}")
    return sandbox


@pytest.fixture(scope="module", params=["bwrap", "docker"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Each backend in turn."""
    return make(request.param)


@pytest.fixture(scope="module")
def bwrap() -> Sandbox:
    """The quick backend, for what does not depend on it."""
    return make("bwrap")


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After each test: no control group, container or temporary file of a sandbox of ours is left.

    A container that a busy engine makes for a client that is gone already goes when the next one is wanted.
    """
    before = leftovers()
    yield
    until_gone(before)


def until_gone(before: set[str]) -> None:
    """Waits until nothing is left but what was there `before`: kernel and engine take their time to forget."""
    deadline = time.monotonic() + 60
    while left := leftovers() - before:
        assert time.monotonic() < deadline, f"left behind: {left}"
        LEFT_BEHIND.remove()
        time.sleep(0.2)


def leftovers() -> set[str]:
    # Of this process alone: others on this machine may be grading, too.
    name = f"{cgroup.PREFIX}{os.getpid()}-*"
    groups = {str(folder) for root in cgroup.ROOT.glob("*") for folder in root.glob(name)}
    groups |= {str(folder) for folder in cgroup.ROOT.glob(name)}
    ours = ["ps", "--all", "--quiet", "--filter", f"label={LABEL}={owner()}"]
    listed = subprocess.run(["docker", *ours], capture_output=True, text=True, check=False) if _docker() else None
    containers = set(listed.stdout.split()) if listed else set()
    return groups | containers | {str(path) for path in Path("/tmp").glob("srbench-*")}


def _docker() -> bool:
    return shutil.which("docker") is not None
