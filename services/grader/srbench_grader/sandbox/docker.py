"""Docker: a container from a digest-pinned image, without network, privileges or a writable root."""

from __future__ import annotations

import re
import shutil
import subprocess
import time

from srbench_kit.errors import InvalidInput, Unreachable
from srbench_kit.ids import uuid7_hex

from srbench_grader.sandbox.engine import docker, environment
from srbench_grader.sandbox.leftovers import LABEL, Leftovers, owner
from srbench_grader.sandbox.limits import Limits
from srbench_grader.sandbox.session import Session
from srbench_grader.sandbox.values import Backend, Program

NOBODY = "65533:65533"
_PINNED = re.compile(r"(?:[^@\s]+@)?sha256:[0-9a-f]{64}\Z")
_MAKING_S = 10.0
# How long what a grader that died left running goes on; a living one ends it itself, at its own deadline.
_UNWATCHED_S = 60
LEFT_BEHIND = Leftovers()


def check_image(image: str) -> str:
    """`image`, when it names its content. Raises: `InvalidInput` (`BAD_IMAGE`)."""
    if not _PINNED.match(image):
        raise InvalidInput(
            "BAD_IMAGE", f"the sandbox image is {image!r}; expected sha256:<64 hex digits> or name@sha256:<64 hex digits>"
        )
    return image


class Docker:
    """Runs programs in containers of `image`, which must be on this machine already."""

    name: Backend = "docker"

    def __init__(self, image: str) -> None:
        self._image = check_image(image)
        self._env = environment()

    @property
    def identity(self) -> str:
        """See `Sandbox`."""
        return f"docker, image {self._image}"

    def problem(self) -> str:
        """See `Sandbox`."""
        missing = engine_problem()
        if missing:
            return missing
        if docker("image", "inspect", self._image).returncode:
            return f"the image {self._image} is not on this machine"
        return ""

    def start(self, program: Program, limits: Limits) -> Session:
        """See `Sandbox`."""
        LEFT_BEHIND.remove()
        name = f"srbench-{uuid7_hex()}"
        command = ["docker", "run", "--interactive", "--rm", "--name", name, *self._walls(limits)]
        for place, source in program.mounts.items():
            command += ["--mount", f"type=bind,source={source},target={place},readonly"]
        # Ended from inside, too: a client that dies takes no container with it.
        inside = ["timeout", "--signal=KILL", str(int(limits.wall_s) + _UNWATCHED_S), "python3", *program.python]
        try:
            process = subprocess.Popen(
                [*command, "--entrypoint", inside[0], self._image, *inside[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._env,
                start_new_session=True,
            )
        except OSError as error:
            raise Unreachable("SANDBOX_FAILED", f"docker cannot be started: {error.strerror}") from error

        def kill() -> None:
            if process.poll() is None:
                # The client first: the engine waits for readers of a container's output before it ends it. Then the
                # container, which does not end with its client.
                process.kill()
                self._end(name)

        return Session(
            process,
            kill=kill,
            clean=lambda: self._remove(name),
            wall_s=limits.wall_s,
            output_bytes=limits.output_bytes,
        )

    def _walls(self, limits: Limits) -> list[str]:
        disk = f"size={limits.disk_bytes},mode=1777,nosuid,nodev,noexec"
        found = ["--label", f"{LABEL}={owner()}", "--pull", "never", "--init", "--network", "none", "--read-only"]
        found += ["--tmpfs", f"/tmp:{disk}", "--workdir", "/tmp", "--shm-size", str(max(1, limits.disk_bytes // 4))]
        found += ["--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes)]
        found += ["--cpus", str(limits.cpus), "--pids-limit", str(limits.process_count), "--user", NOBODY]
        found += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--log-driver", "none", "--ipc", "private"]
        found += ["--ulimit", f"fsize={limits.disk_bytes}", "--ulimit", "nofile=512", "--ulimit", "core=0"]
        settings = {"HOME": "/tmp", "LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        settings |= {"MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1"}
        for key, value in settings.items():
            found += ["--env", f"{key}={value}"]
        return found

    def _end(self, name: str) -> None:
        """Ends a container, also one that a busy engine is still making for a client that is no more."""
        deadline = time.monotonic() + _MAKING_S
        while "No such container" in docker("kill", name).stderr:
            if time.monotonic() > deadline:
                LEFT_BEHIND.doubt(name)
                return
            time.sleep(0.2)

    def _remove(self, name: str) -> None:
        removed = docker("rm", "--force", "--volumes", name)
        if removed.returncode and "No such container" not in removed.stderr:
            LEFT_BEHIND.doubt(name)


def engine_problem() -> str:
    """Why no container engine can be used here; empty when one answers."""
    if shutil.which("docker") is None:
        return "the command docker is not found"
    version = docker("version", "--format", "{{.Server.Version}}")
    return f"no Docker engine answers: {version.stderr.strip()[:200]}" if version.returncode else ""
