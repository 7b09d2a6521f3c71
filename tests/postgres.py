"""A real PostgreSQL for tests: a container where a Docker engine has or gets the image, else a server of this machine.

A machine with neither fails the tests that need it; nothing is skipped.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg

IMAGE = os.environ.get("SR_BENCH_TEST_POSTGRES_IMAGE", "postgres:15-bookworm")
START_TIMEOUT_S = 60.0
SETTINGS = {"max_connections": "200"}
# The tests ask how a commit is ordered and fenced, not whether this machine's disk keeps its word.
QUICK = {"fsync": "off"}


class Database:
    """A running server; `new` makes databases on it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def new(self) -> str:
        """The address of a new, empty database."""
        name = f"t_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"{self.url.rpartition('/')[0]}/{name}"


@contextlib.contextmanager
def server(*, durable: bool = False) -> Iterator[Database]:
    """A server for the length of the block; with `durable` its commits reach the disk."""
    settings = SETTINGS | ({} if durable else QUICK)
    with contextlib.ExitStack() as stack:
        wanted = os.environ.get("SR_BENCH_TEST_POSTGRES", "")
        if wanted != "local" and (wanted == "docker" or _docker_has_image()):
            yield Database(stack.enter_context(_container(settings, in_memory=not durable)))
        else:
            yield Database(stack.enter_context(_local(settings, in_memory=not durable)))


def _docker_has_image() -> bool:
    """Whether an engine answers and has the image, or can pull it."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    for command, timeout_s in ((["image", "inspect", IMAGE], 15), (["pull", "-q", IMAGE], 120)):
        try:
            if subprocess.run([docker, *command], capture_output=True, timeout=timeout_s, check=False).returncode == 0:
                return True
        except subprocess.TimeoutExpired:
            return False
    return False


@contextlib.contextmanager
def _container(settings: dict[str, str], *, in_memory: bool) -> Iterator[str]:
    # Without these it waits for an image of its own, and gives the bridge's address in place of this machine's.
    os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
    os.environ.setdefault("TESTCONTAINERS_CONNECTION_MODE", "docker_host")
    os.environ.setdefault("TC_HOST", "127.0.0.1")
    try:
        from testcontainers.community.postgres import PostgresContainer
    except ImportError:
        from testcontainers.postgres import PostgresContainer

    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    made = PostgresContainer(IMAGE, driver=None, docker_client_kw={"timeout": 300})
    container = made.with_command(f"postgres {options}")
    if in_memory:
        container.with_tmpfs_mount("/var/lib/postgresql/data")
    container.start()
    try:
        yield container.get_connection_url()
    finally:
        # Not waited for: an engine that is busy with other work takes a minute over it.
        docker, name = str(shutil.which("docker")), container.get_wrapped_container().id
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.Popen([docker, "rm", "-f", "-v", name], start_new_session=True, **quiet)


def _binaries() -> Path:
    found = os.environ.get("PG_BIN")
    if found:
        return Path(found)
    installed = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: int(path.split("/")[-3]))
    beside = shutil.which("initdb")
    if not installed and beside is None:
        raise RuntimeError("no PostgreSQL for the tests: start Docker, install postgresql-15, or set PG_BIN")
    return Path(installed[-1] if installed else str(beside)).parent


def _as_user(folder: str) -> list[str]:
    """What to put before a command so that the server does not run as root."""
    if os.getuid() != 0:
        return []
    apart = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode == 0:
        return apart
    user = pwd.getpwnam("postgres")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


@contextlib.contextmanager
def _local(settings: dict[str, str], *, in_memory: bool) -> Iterator[str]:
    roomy = in_memory and os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 1 << 30
    folder = tempfile.mkdtemp(prefix="srb-pg-", dir="/dev/shm" if roomy else None)
    process: subprocess.Popen[bytes] | None = None
    try:
        process, port = _start(folder, settings)
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: str, settings: dict[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    bin_folder, prefix, data = _binaries(), _as_user(folder), f"{folder}/data"
    env = {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C.UTF-8"}
    initdb = [str(bin_folder / "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run([*prefix, *initdb], env=env, cwd=folder, check=True, capture_output=True)
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        listen = ["-p", str(port), "-k", folder, "-c", "listen_addresses=127.0.0.1"]
        with open(f"{folder}/log", "ab") as log:
            process = subprocess.Popen(
                [*prefix, str(bin_folder / "postgres"), "-D", data, *listen, *options],
                env=env,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres", connect_timeout=2).close()
                return process, port
            time.sleep(0.05)
    raise RuntimeError(f"postgres did not start: {Path(folder, 'log').read_text()[-2000:]}")
