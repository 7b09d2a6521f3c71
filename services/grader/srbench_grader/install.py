"""`python -m srbench_grader.install --benchmark ID`: the environment and the data that grading needs, into the cache.

A Python with pinned libraries for the bubblewrap sandbox, and SciCode's targets. Idempotent; what is there and verified is
left alone. Writes whole files and folders or none, and says how to mend what fails.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import click
from srbench_kit.errors import EXIT_CODES, SrBenchError, Unreachable

from srbench_grader import step_targets
from srbench_grader.fetching import fetch
from srbench_grader.sandbox import bwrap, libraries, receipts
from srbench_grader.sandbox.selection import PREPARED, home

RECEIPT = "sr-bench-dependencies.txt"
BASE_VARIABLE = "SR_BENCH_SANDBOX_BASE_PYTHON"
INSTALL_S = 1500.0
# The byte-identical copy that inspect_evals uses, since the file at Google Drive keeps running out of its quota.
TEST_DATA = "datasets/xantheocracy/scicode-mirror/resolve/2f903a64a1c4eb62c7c649b0caf7ecb2c0217590/test_data.h5"


def environment(say: Callable[[str], None]) -> None:
    """A Python with the pinned libraries, where the user that programs run as can read it.

    Raises: `Unreachable` (`NO_PYTHON`, `INSTALL_FAILED`, `NOT_WRITABLE`), `Exhausted` (`NO_SPACE`).
    """
    folder = environment_folder()
    wanted = f"# {libraries.requirements_sha256()}\n"
    receipt = folder / RECEIPT
    if receipt.is_file() and receipt.read_text().startswith(wanted):
        say(f"{folder} has the pinned libraries already")
        return
    base = _base_python()
    fresh = folder.with_name(folder.name + ".new")
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.parent.mkdir(parents=True, exist_ok=True)
        _make(base, fresh)
        # Programs may be running there: it is replaced at one stroke, and only then removed.
        former = folder.with_name(folder.name + ".former")
        shutil.rmtree(former, ignore_errors=True)
        if folder.exists():
            folder.rename(former)
        fresh.rename(folder)
        shutil.rmtree(former, ignore_errors=True)
    except OSError as error:
        raise receipts.not_written(folder, error) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    bwrap.inspect.cache_clear()
    installed = "".join(f"{name}=={version}\n" for name, version in _installed(folder).items())
    receipts.write(receipt, wanted + installed)
    say(f"{folder} has the pinned libraries; dependencies_sha256 {hashlib.sha256(installed.encode()).hexdigest()}")


def test_data(say: Callable[[str], None]) -> None:
    """SciCode's targets, verified, in the cache; one that `SR_BENCH_SCICODE_TEST_DATA` names is only looked at.

    Raises: as `step_targets.verified` and `fetching.fetch`.
    """
    file = step_targets.path()
    if file.exists() or os.environ.get(step_targets.VARIABLE):
        step_targets.verified({})
        say(f"{file} is there and verified")
        return
    endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    mend = f"get test_data.h5 by hand and set {step_targets.VARIABLE} to it"
    fetch(f"{endpoint}/{TEST_DATA}", file, step_targets.SHA256, mend)
    say(f"{file} is there and verified")


Install = Callable[[Callable[[str], None]], None]
INSTALLS: Mapping[str, tuple[Install, ...]] = {"livecodebench": (environment,), "scicode": (environment, test_data)}


def environment_folder() -> Path:
    """Where the environment goes: the cache, else a place that everybody can read when only root can enter the cache."""
    folder = home() / "sandbox" / "venv"
    try:
        nearest = next(each for each in folder.parents if each.exists())
        bwrap.check_reachable(str(nearest))
    except SrBenchError:
        return Path(PREPARED).parents[1]
    return folder


def _base_python() -> str:
    named = os.environ.get(BASE_VARIABLE, "")
    problems: list[str] = []
    for path in (named,) if named else ("/usr/bin/python3", "/usr/local/bin/python3", os.path.realpath(sys.executable)):
        try:
            found = bwrap.inspect(path)
            for folder in found.folders:
                bwrap.check_reachable(folder)
        except SrBenchError as error:
            problems.append(error.message)
            continue
        release = tuple(map(int, found.version.split(".")[:2]))
        if libraries.PYTHONS[0] <= release <= libraries.PYTHONS[1]:
            return path
        problems.append(f"{path} is Python {found.version}")
    least, most = (".".join(map(str, each)) for each in libraries.PYTHONS)
    raise Unreachable(
        "NO_PYTHON",
        f"no Python from {least} to {most} that other users can read ({'; '.join(problems)}); "
        f"install python3 by your package manager, or set {BASE_VARIABLE}",
    )


def _make(base: str, folder: Path) -> None:
    """A virtual environment with the pinned libraries, by uv where it is installed, else by venv and pip."""
    listed = folder.with_name(folder.name + ".txt")
    receipts.write(listed, libraries.requirements())
    try:
        uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
        if uv:
            _run([uv, "venv", "--quiet", "--python", base, str(folder)], "uv")
            python = str(folder / "bin" / "python")
            install = [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", str(listed)]
        else:
            _run([base, "-m", "venv", str(folder)], "venv; pip install uv instead")
            python = str(folder / "bin" / "python")
            install = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(listed)]
        _run(install, "the package index; see its message, and set the index as for pip or uv")
        # Programs of others run here read-only: what is not compiled now is compiled each time.
        _run([python, "-m", "compileall", "-q", str(folder / "lib")], "compileall")
    finally:
        listed.unlink(missing_ok=True)


def _run(command: list[str], blame: str) -> None:
    settings = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")}
    settings |= {"UV_PYTHON_DOWNLOADS": "never", "UV_LINK_MODE": "copy"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, env=settings, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreachable("INSTALL_FAILED", f"{command[0]} cannot be run: {error}") from error
    # compileall ends with 1 for files that were never meant for this Python.
    if done.returncode and "compileall" not in command:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise Unreachable("INSTALL_FAILED", f"{' '.join(command[:3])} failed: {said[-1][:300]} (look at: {blame})")


def _installed(folder: Path) -> Mapping[str, str]:
    return libraries.listed(bwrap.Bwrap(str(folder / "bin" / "python")))


def install(benchmarks: Iterable[str], say: Callable[[str], None]) -> list[SrBenchError]:
    """Does all that `benchmarks` need; what failed. One failure keeps nothing else from being done."""
    wanted = dict.fromkeys(step for name in benchmarks for step in INSTALLS.get(name, ()))
    failed: list[SrBenchError] = []
    for step in wanted:
        try:
            step(say)
        except SrBenchError as error:
            failed.append(error)
    return failed


@click.command()
@click.option("--benchmark", "benchmarks", multiple=True, required=True, help="A benchmark; may be repeated.")
def main(benchmarks: tuple[str, ...]) -> None:
    """Installs what grading needs."""
    failed = install(benchmarks, print)
    for error in failed:
        print(f"{error.reason}: {error.message}", file=sys.stderr)
    if failed:
        sys.exit(EXIT_CODES.get(failed[0].kind, 1))


if __name__ == "__main__":
    main()
