"""Which runners of harnesses there are: ours, and those that other packages add as entry points `srbench.runners`.

A runner is a script that an interpreter of its own runs, see `docs/harnesses.md`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from srbench_kit import tau3_worker, upstreams
from srbench_kit.errors import InvalidInput

GROUP = "srbench.runners"
SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """A runner of one benchmark's harness.

    Attributes:
        name: as a benchmark's `Harness` names it.
        script: the Python file that is run with two arguments: the input's path, the result's path.
        variable: `SR_BENCH_<variable>_PYTHON` and `_ROOT` say which interpreter runs it and where the upstream files lie.
        folder: where both lie in the home of harnesses without the variables: `<folder>/.venv/bin/python`, `<folder>`.
        modules: what the interpreter must be able to import.
        root_holds: paths below the root that must exist; empty when it needs no root.
        containers: whether it needs a Docker engine.
        roles: whom the script asks beside the subject, of `simulator` and `judge`: it gets no token for anybody else.
        own_python: whether, with no interpreter named or installed, the executor's own will do.
        install: the command that mends a missing interpreter or root.
    """

    name: str
    script: Path
    variable: str
    folder: str
    modules: tuple[str, ...] = ()
    root_holds: tuple[str, ...] = ()
    containers: bool = False
    roles: tuple[str, ...] = ("simulator", "judge")
    own_python: bool = False
    install: str = ""

    def root(self) -> Path:
        """Where the upstream files are looked for."""
        return upstreams.root(self.variable, self.folder)

    def python(self) -> Path:
        """The interpreter that runs the script."""
        found = upstreams.python(self.variable, self.folder)
        return (
            Path(sys.executable)
            if self.own_python and found == upstreams.installed(self.folder) and not found.exists()
            else found
        )


TERMINAL = Runner(
    name="terminal",
    script=SCRIPTS / "terminal.py",
    variable="TERMINAL",
    folder="terminal-bench-2.1",
    modules=("harbor",),
    root_holds=("tasks",),
    containers=True,
    roles=(),
    install="sr-bench setup --benchmark terminal-bench-2.1 --install",
)
TAU3 = Runner(
    name="tau3",
    script=Path(tau3_worker.__file__),
    variable="TAU3",
    folder="tau3",
    modules=("tau2",),
    # The judge is the grader's business: the conversation is rewarded apart from where it is played.
    roles=("simulator",),
    install="sr-bench setup --benchmark tau3 --install",
)
BUILT_IN: tuple[Runner, ...] = (TERMINAL, TAU3)


def load_runners(points: Iterable[EntryPoint] | None = None) -> Mapping[str, Runner]:
    """All runners by name. An entry point names a `Runner` or a function without arguments that gives one.

    Raises: `InvalidInput` (`BAD_RUNNER_PLUGIN`, `DUPLICATE_RUNNER`).
    """
    runners = {runner.name: runner for runner in BUILT_IN}
    for point in entry_points(group=GROUP) if points is None else points:
        runner = _load(point)
        if runner.name in runners:
            raise InvalidInput("DUPLICATE_RUNNER", f"the runner {runner.name!r} of {point.value} exists already")
        runners[runner.name] = runner
    return runners


def _load(point: EntryPoint) -> Runner:
    try:
        loaded = point.load()
        runner = loaded if isinstance(loaded, Runner) else loaded()
    except (ImportError, AttributeError, TypeError) as error:
        message = f"the runner plugin {point.name} cannot be loaded: {error}"
        raise InvalidInput("BAD_RUNNER_PLUGIN", message, value=point.value) from error
    if not isinstance(runner, Runner) or runner.name != point.name:
        message = f"{point.value} gives no Runner named {point.name!r}, the name of its entry point"
        raise InvalidInput("BAD_RUNNER_PLUGIN", message, value=point.value)
    return runner
