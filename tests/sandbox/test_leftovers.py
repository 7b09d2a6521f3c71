"""Containers of graders that were killed, or that an engine made too late, are removed; those of others stay."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from srbench_grader.sandbox.engine import docker
from srbench_grader.sandbox.leftovers import LABEL, Leftovers, owner
from srbench_kit.ids import uuid7_hex

from tests.sandbox.conftest import docker_image


@pytest.fixture
def made() -> Iterator[list[str]]:
    """Names of containers that this test makes; what is still there after it is removed."""
    names: list[str] = []
    yield names
    for name in names:
        docker("rm", "--force", name)


def make(made: list[str], label: str) -> str:
    name = f"srbench-{uuid7_hex()}"
    created = docker("create", "--name", name, "--label", f"{LABEL}={label}", docker_image(), "true")
    assert created.returncode == 0, created.stderr
    made.append(name)
    return name


def there(name: str) -> bool:
    return docker("container", "inspect", name).returncode == 0


def owner_that_is_gone() -> str:
    code = "from srbench_grader.sandbox.leftovers import owner; print(owner())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_those_of_a_grader_that_is_gone_are_removed_and_no_others(made: list[str]) -> None:
    gone = owner_that_is_gone()
    where, _, process = gone.partition("/")
    dead, mine = make(made, gone), make(made, owner())
    again = make(made, f"{where}/{os.getpid()}/another-start")
    elsewhere = make(made, f"another-machine pid:[1]/{process}")
    Leftovers().remove()
    assert [there(name) for name in (dead, again, mine, elsewhere)] == [False, False, True, True]


def test_one_that_appears_after_it_was_ended_is_removed_before_the_next(made: list[str]) -> None:
    left = Leftovers()
    left.remove()
    name = f"srbench-{uuid7_hex()}"
    left.doubt(name)
    left.remove()
    made.append(name)
    assert docker("create", "--name", name, "--label", f"{LABEL}={owner()}", docker_image(), "true").returncode == 0
    left.remove()
    assert not there(name)
