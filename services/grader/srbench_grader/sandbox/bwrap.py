"""Bubblewrap: namespaces, an empty root, a filter of system calls, and a control group where one can be made."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from srbench_kit.errors import InvalidInput, SrBenchError, Unreachable

from srbench_grader.sandbox import cgroup, seccomp
from srbench_grader.sandbox.cgroup import Cgroup
from srbench_grader.sandbox.limits import MIB, Limits
from srbench_grader.sandbox.session import Session
from srbench_grader.sandbox.values import Backend, Program

# An id that owns nothing.
NOBODY = 65533
_ASK = "import json, sys; print(json.dumps([sys.prefix, sys.base_prefix, sys.version.split()[0]]))"
_ASK_S = 60.0
# The kernel ends what a grader that died left running; a living one ends it itself, at its own deadline.
_UNWATCHED_S = 60
# Joins the control groups named before `--`, then becomes the rest.
_JOIN = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done; shift; exec "$@"'


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python on this machine and the folders that it needs."""

    path: str
    folders: tuple[str, ...]
    version: str


class Bwrap:
    """Runs programs under bubblewrap with the Python `interpreter`."""

    name: Backend = "bwrap"

    def __init__(self, interpreter: str) -> None:
        self._path = interpreter
        self._grouped = cgroup.usable()
        self._filter = seccomp.program()

    @property
    def identity(self) -> str:
        """See `Sandbox`."""
        found = inspect(self._path)
        bounds = "control group" if self._grouped else "resource limits"
        return f"bwrap, Python {found.version} at {found.path}, bounded by {bounds}"

    def problem(self) -> str:
        """See `Sandbox`."""
        missing = [tool for tool in ("bwrap", "prlimit", "setpriv") if shutil.which(tool) is None]
        if missing:
            return f"{' and '.join(missing)} not found; install the packages bubblewrap and util-linux"
        try:
            found = inspect(self._path)
            for folder in found.folders:
                check_reachable(folder)
            finished = self.start(Program(python=("-I", "-c", "print(1)")), Limits(wall_s=_ASK_S)).finish()
        except SrBenchError as error:
            return error.message
        if finished.stdout == b"1\n":
            return ""
        said = finished.stderr.decode("utf-8", "replace").strip()[-300:]
        return f"bwrap does not run here: {said or f'exit code {finished.exit_code}'}"

    def start(self, program: Program, limits: Limits) -> Session:
        """See `Sandbox`."""
        interpreter = inspect(self._path)
        group = Cgroup(limits) if self._grouped else None
        descriptor = _open_filter(self._filter)
        passed = () if descriptor is None else (descriptor,)
        command = [
            *(("/bin/sh", "-c", _JOIN, "sh", *group.procs, "--") if group else ()),
            *_restrictions(limits, grouped=group is not None),
            *_walls(interpreter, program, limits, descriptor),
            *("--", interpreter.path, *program.python),
        ]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=passed,
                env={"PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
            )
        except OSError as error:
            if group:
                group.remove()
            raise Unreachable("SANDBOX_FAILED", f"bwrap cannot be started: {error.strerror}") from error
        finally:
            if descriptor is not None:
                os.close(descriptor)

        def kill() -> None:
            # With the outer process dies the first one inside, and with that its whole namespace.
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            if group:
                group.kill()

        return Session(
            process,
            kill=kill,
            clean=group.remove if group else lambda: None,
            wall_s=limits.wall_s,
            output_bytes=limits.output_bytes,
        )


@functools.lru_cache(maxsize=8)
def inspect(path: str) -> Interpreter:
    """What the interpreter at `path` says of itself.

    Raises: `InvalidInput` (`BAD_INTERPRETER`).
    """
    try:
        asked = subprocess.run([path, "-I", "-c", _ASK], capture_output=True, timeout=_ASK_S, check=True)
        prefix, base, version = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise InvalidInput(
            "BAD_INTERPRETER", f"{path} is no Python that runs here: {type(error).__name__}", value=path
        ) from error
    folders = dict.fromkeys(str(Path(each).resolve()) for each in (prefix, base))
    outside = tuple(folder for folder in folders if not Path(folder).is_relative_to("/usr"))
    # The name of a virtual environment's interpreter tells Python which environment it is: it is not resolved.
    name = path if prefix != base else str(Path(path).resolve())
    return Interpreter(path=name, folders=outside, version=version)


def check_reachable(folder: str) -> None:
    """Raises `InvalidInput` (`NOT_REACHABLE`) when the user that programs run as could not enter `folder`."""
    if os.geteuid() != 0:
        return
    for each in (Path(folder), *Path(folder).parents):
        if not each.stat().st_mode & 0o001:
            raise InvalidInput(
                "NOT_REACHABLE",
                f"{folder} lies in {each}, which only its owner may enter; "
                "set SR_BENCH_SANDBOX_PYTHON to an interpreter elsewhere",
            )


def _restrictions(limits: Limits, *, grouped: bool) -> list[str]:
    """Who the program is, and what the kernel allows each of its processes."""
    found = []
    if os.geteuid() == 0:
        found = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
    found += [
        "prlimit",
        "--core=0",
        "--nofile=512",
        f"--fsize={limits.disk_bytes}",
        f"--cpu={int(limits.wall_s) + _UNWATCHED_S}",
    ]
    if not grouped:
        found += [f"--as={limits.memory_bytes}", f"--nproc={limits.process_count}"]
    return [*found, "--"]


def _walls(interpreter: Interpreter, program: Program, limits: Limits, filter_fd: int | None) -> list[str]:
    """What the program sees of this machine."""
    found = ["bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    found += ["--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "sandbox", "--cap-drop", "ALL", "--clearenv"]
    settings = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    settings |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    for name, value in settings.items():
        found += ["--setenv", name, value]
    found += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        folder = Path("/", name)
        if folder.is_symlink():
            found += ["--symlink", os.readlink(folder), str(folder)]
        elif folder.is_dir():
            found += ["--ro-bind", str(folder), str(folder)]
    for file in ("/etc/ld.so.cache", "/etc/alternatives"):
        found += ["--ro-bind-try", file, file]
    found += ["--proc", "/proc", "--dev", "/dev"]
    for place, size in (("/dev/shm", limits.disk_bytes // 4), ("/tmp", limits.disk_bytes)):
        found += ["--size", str(max(size, MIB)), "--tmpfs", place]
    # After /tmp, in which an interpreter may lie.
    for needed in interpreter.folders:
        found += ["--ro-bind", needed, needed]
    for place, source in program.mounts.items():
        found += ["--ro-bind", str(source), place]
    found += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]
    return found + (["--seccomp", str(filter_fd)] if filter_fd is not None else [])


def _open_filter(data: bytes) -> int | None:
    """A descriptor from which the filter is read once."""
    if not data:
        return None
    descriptor = os.memfd_create("filter", 0)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
