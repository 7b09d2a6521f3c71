"""What a sandbox is given and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from srbench_grader.sandbox.limits import Limits
from srbench_grader.sandbox.session import Session

Backend: TypeAlias = Literal["docker", "bwrap"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run.

    Attributes:
        python: arguments for the sandbox's own Python interpreter.
        mounts: files or folders of the host by their place in the sandbox, read-only.
    """

    python: tuple[str, ...]
    mounts: Mapping[str, Path] = field(default_factory=dict)


class Sandbox(Protocol):
    """A way to run programs with no network, no secrets, a read-only root and hard limits. Called from threads."""

    @property
    def name(self) -> Backend:
        """Which backend it is."""

    @property
    def identity(self) -> str:
        """What the programs run in, for receipts: an image's digest, or the interpreter's path and version."""

    def start(self, program: Program, limits: Limits) -> Session:
        """Starts `program`. Raises: `Unreachable` (`SANDBOX_FAILED`) when it cannot be started."""

    def problem(self) -> str:
        """Why this backend cannot be used on this machine, in one sentence; empty when it can."""
