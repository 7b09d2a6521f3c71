"""The task folder of a Git repository at a fixed commit. Git itself checks that the objects match the commit's name."""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from srbench_kit.errors import InvalidInput, NotFound, Unreachable

from srbench_planner.benchmark import GitSource
from srbench_planner.files import MAX_FILE_BYTES, MAX_ROW_BYTES, make_private, write_private

DEFAULT_BASE = "https://github.com"
TIMEOUT_S = 1800.0


def export(source: GitSource, cache: Path) -> Path:
    """A folder below `cache` with the files of the source's folder at its commit; fetched unless the cache has it.

    `SR_BENCH_GIT_BASE` replaces `https://github.com`, for mirrors; a path works, too.
    Raises: `Unreachable` (`SOURCE_UNREACHABLE`), `NotFound` (`GIT_MISSING`), `InvalidInput` (`BAD_SOURCE`).
    """
    if shutil.which("git") is None:
        raise NotFound("GIT_MISSING", f"git is not installed; it is needed to fetch {source.url}")
    root = cache / source.repository.replace("/", "--")
    make_private(root)
    with _locked(root / "lock"):
        _fetch(source, root / "objects.git")
        wanted = [f"{source.folder}/{name}" for name in source.files] or [source.folder]
        archive = _git(root / "objects.git", "archive", "--format=tar", source.revision, "--", *wanted)
        target = root / source.revision
        shutil.rmtree(target, ignore_errors=True)
        make_private(target)
        _unpack(archive, source, target)
    return target


def _fetch(source: GitSource, bare: Path) -> None:
    if not bare.is_dir():
        _git(bare.parent, "init", "--quiet", "--bare", str(bare))
    if _has(bare, source.revision):
        return
    base = (os.environ.get("SR_BENCH_GIT_BASE") or DEFAULT_BASE).rstrip("/")
    _git(bare, "fetch", "--quiet", "--depth=1", "--no-tags", f"{base}/{source.repository}", source.revision)
    if not _has(bare, source.revision):
        raise Unreachable("SOURCE_UNREACHABLE", f"{base}/{source.repository} did not give commit {source.revision}")


def _has(bare: Path, commit: str) -> bool:
    return (
        subprocess.run(
            ["git", "-C", str(bare), "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True, check=False
        ).returncode
        == 0
    )


def _git(directory: Path, *arguments: str) -> bytes:
    command = [
        "git",
        "-C",
        str(directory),
        "-c",
        "protocol.ext.allow=never",
        "-c",
        "http.lowSpeedLimit=1000",
        "-c",
        "http.lowSpeedTime=60",
        *arguments,
    ]
    quiet = os.environ | {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true"}
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=TIMEOUT_S, env=quiet, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise Unreachable("SOURCE_UNREACHABLE", f"git {arguments[0]} took longer than {TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        said = lines[-1][:300] if lines else f"exit {done.returncode}"
        raise Unreachable("SOURCE_UNREACHABLE", f"git {arguments[0]} failed: {said}")
    return done.stdout


def _unpack(archive: bytes, source: GitSource, target: Path) -> None:
    """Writes the files that the source names, or all below its folder where tasks are folders, else those directly in it;
    regular ones, nothing else."""
    if len(archive) > MAX_FILE_BYTES:
        raise InvalidInput("FILE_TOO_LARGE", f"the folder {source.folder} of {source.url} has {len(archive)} bytes")
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for member in opened:
            inner = member.name.removeprefix(f"{source.folder}/")
            if not member.isreg() or inner == member.name or member.size > MAX_ROW_BYTES or not _wanted(inner, source):
                continue
            content = opened.extractfile(member)
            if content is not None:
                make_private((target / inner).parent)
                write_private(target / inner, content.read())


def _wanted(inner: str, source: GitSource) -> bool:
    if source.files:
        return inner in source.files
    return "/" not in inner or (bool(source.task_file) and ".." not in Path(inner).parts)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds a lock that other processes on this machine respect."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
