"""Fetches a folder of a Git repository at a fixed commit, whole or not at all; Git checks the files against its name."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from srbench_kit.errors import Unreachable

DEFAULT_BASE = "https://github.com"
FETCH_S = 1500.0


def fetch(repository: str, commit: str, folder: str, into: Path) -> Path:
    """Puts `folder` of the commit at `into/folder`, unless something is there. `SR_BENCH_GIT_BASE` names a mirror.

    Raises: `Unreachable` (`SOURCE_UNREACHABLE`, `NOT_WRITABLE`).
    """
    target = into / folder
    if target.exists():
        return target
    url = f"{(os.environ.get('SR_BENCH_GIT_BASE') or DEFAULT_BASE).rstrip('/')}/{repository}"
    try:
        into.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".fetching-", dir=into))
    except OSError as error:
        raise Unreachable("NOT_WRITABLE", f"{into} cannot be written: {error.strerror}") from error
    try:
        _git(work, url, "init", "--quiet")
        _git(work, url, "fetch", "--quiet", "--depth=1", "--no-tags", url, commit)
        _git(work, url, "checkout", "--quiet", "--detach", commit)
        (work / folder).rename(target)
    except OSError as error:
        raise Unreachable("SOURCE_UNREACHABLE", f"{url} has no {folder} at {commit}: {error.strerror}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _git(work: Path, url: str, *arguments: str) -> None:
    git = shutil.which("git")
    if git is None:
        raise Unreachable("SOURCE_UNREACHABLE", f"git is not installed; it is needed to fetch {url}")
    settings = ("core.autocrlf=false", "protocol.ext.allow=never", "http.lowSpeedLimit=1000", "http.lowSpeedTime=60")
    command = [git, "-C", str(work), *(part for setting in settings for part in ("-c", setting)), *arguments]
    quiet = os.environ | {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_S, env=quiet)
    except subprocess.TimeoutExpired:
        raise Unreachable("SOURCE_UNREACHABLE", f"{url} took longer than {FETCH_S:.0f} s") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:300]
        raise Unreachable("SOURCE_UNREACHABLE", f"{url} could not be fetched: {said}")
