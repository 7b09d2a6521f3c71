"""Runs the processes of a local stack: starts them together, restarts one that dies, stops them in order.

The supervisor holds the store's lock and gives it to its children, so the lock is free only when none of them lives. When
the supervisor itself is killed, the kernel kills its children: a second stack never meets the rest of a first one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from srbench_kit.errors import Conflict, InvalidInput, Unreachable
from srbench_kit.hosts import is_loopback
from srbench_kit.process_start import process_start

from srbench_cli import service_files
from srbench_cli.child_process import die_with_parent
from srbench_cli.health import probe
from srbench_cli.stack import Child, StackOptions, children, socket_folder

READY_TIMEOUT_S = 60.0
QUICK_DEATH_S = 10.0
MAX_QUICK_DEATHS = 5
BACKOFF_S = (0.1, 0.5, 1.0, 2.0, 5.0)
MAX_LOG_BYTES = 10 * 1024 * 1024
POLL_S = 0.02
_START_BYTES = 1 << 20


@dataclass(slots=True)
class _Kept:
    """A child and its present process."""

    child: Child
    log: Path
    process: asyncio.subprocess.Process | None = None
    listening: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    deaths: int = 0


class Supervisor:
    """Keeps `wanted` running until a signal comes or one of them cannot be kept."""

    def __init__(self, wanted: tuple[Child, ...], logs: Path, lock: int, drain_s: float) -> None:
        self._wanted = wanted
        self._logs = logs
        self._lock = lock
        self._drain_s = drain_s
        self._kept: list[_Kept] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._hurry = asyncio.Event()
        self._ended: asyncio.Future[None] | None = None

    async def run(self, when_listening: Callable[[dict[str, str]], asyncio.Future[None]]) -> None:
        """Starts all; calls `when_listening` with their addresses by name; returns after an orderly stop.

        Raises: `Unreachable` (`CHILD_FAILED`, `NOT_READY`) after having stopped all, when the stack cannot be kept up.
        """
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._signalled)
        self._kept = [_Kept(child, self._logs / f"{child.name}.log") for child in self._wanted]
        try:
            self._tasks = [asyncio.create_task(self._keep(kept)) for kept in self._kept]
            for task in self._tasks:
                task.add_done_callback(self._task_ended)
            ready = asyncio.create_task(self._become_ready(when_listening))
            await asyncio.wait([ready, self._ended], return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                ready.result()
            else:
                ready.cancel()
            await self._ended
        finally:
            await self._stop()

    def _signalled(self) -> None:
        if self._stopping:
            self._hurry.set()
        if self._ended and not self._ended.done():
            self._ended.set_result(None)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error and self._ended and not self._ended.done():
            self._ended.set_exception(error)

    async def _become_ready(self, when_listening: Callable[[dict[str, str]], asyncio.Future[None]]) -> None:
        await asyncio.wait([kept.listening for kept in self._kept], timeout=READY_TIMEOUT_S)
        late = [kept for kept in self._kept if not kept.listening.done()]
        if late:
            raise Unreachable(
                "NOT_READY", f"the {late[0].child.name} did not start within {READY_TIMEOUT_S:.0f} s; see {late[0].log}"
            )
        addresses = [kept.listening.result() for kept in self._kept]
        await when_listening(dict(zip((kept.child.name for kept in self._kept), addresses, strict=True)))

    async def _keep(self, kept: _Kept) -> None:
        while not self._stopping:
            began = time.monotonic()
            code = await self._live(kept)
            if self._stopping:
                return
            lived = time.monotonic() - began
            kept.deaths = kept.deaths + 1 if lived < QUICK_DEATH_S else 1
            how = f"was killed by signal {-code}" if code < 0 else f"exited with {code}"
            if not kept.listening.done() or kept.deaths >= MAX_QUICK_DEATHS:
                times = "while starting" if not kept.listening.done() else f"{kept.deaths} times within seconds"
                raise Unreachable(
                    "CHILD_FAILED",
                    f"the {kept.child.name} {how} {times}{last_words(kept.log)}; see {kept.log}",
                    log=kept.log,
                )
            note(f"the {kept.child.name} {how} after {lived:.1f} s; starting it again")
            await asyncio.sleep(BACKOFF_S[min(kept.deaths, len(BACKOFF_S)) - 1])

    async def _live(self, kept: _Kept) -> int:
        """One life of a child; its exit code, negative for a signal."""
        child = kept.child
        with _open_log(child, kept.log) as log:
            begin = log.tell()
            process = await asyncio.create_subprocess_exec(
                *child.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(child.environment),
                # A session of its own: Ctrl-C in the terminal reaches the supervisor alone, which stops them in order.
                start_new_session=True,
                preexec_fn=die_with_parent(),
                pass_fds=(self._lock,),
            )
        kept.process = process
        reader = asyncio.create_task(self._read_address(kept, begin))
        try:
            if self._stopping:
                _signal_group(process, signal.SIGKILL)
            return await process.wait()
        finally:
            reader.cancel()
            if process.returncode is not None:
                # What it left in its session (sandboxes, for example) goes with it.
                _signal_group(process, signal.SIGKILL)

    async def _read_address(self, kept: _Kept, begin: int) -> None:
        while not kept.listening.done():
            with kept.log.open("rb") as log:
                log.seek(begin)
                for line in log.read(_START_BYTES).decode("utf-8", "replace").split("\n")[:-1]:
                    word, _, address = line.partition(" ")
                    if word == "listening" and not kept.listening.done():
                        kept.listening.set_result(address.strip())
            await asyncio.sleep(POLL_S)

    async def _stop(self) -> None:
        self._stopping = True
        for order in sorted({kept.child.stop_order for kept in self._kept}):
            group = [kept.process for kept in self._kept if kept.child.stop_order == order and kept.process]
            await asyncio.gather(*(self._end(process) for process in group))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        waits = [asyncio.create_task(process.wait()), asyncio.create_task(self._hurry.wait())]
        await asyncio.wait(waits, timeout=self._drain_s, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        if process.returncode is None:
            _signal_group(process, signal.SIGKILL)
        await process.wait()


def _open_log(child: Child, path: Path) -> BinaryIO:
    """The log of a child about to start, its old socket removed.

    A file, not a pipe: a pipe would be held open by what the child starts, and would hide the child's death.
    """
    if child.socket:
        Path(child.socket).unlink(missing_ok=True)
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def note(text: str) -> None:
    """Says what happened to the stack, with the time."""
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}", file=sys.stderr, flush=True)


def last_words(log: Path) -> str:
    """The last line of a log as the end of a sentence; empty when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return f" ({lines[-1][:300]})" if lines else ""


def check_ports(host: str, port: int, *, alone: bool = False) -> None:
    """Raises: `Conflict` (`PORT_IN_USE`), `InvalidInput` (`BAD_HOST`) unless `port` and, not `alone`, the next are free."""
    for number in (port,) if alone else (port, port + 1):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((host.strip("[]"), number))
            except socket.gaierror:
                raise InvalidInput("BAD_HOST", f"--host is {host!r}; expected an address of this machine") from None
            except OSError as error:
                what = "the service" if number == port else "its gRPC front door, one above --port"
                raise Conflict(
                    "PORT_IN_USE", f"port {number} of {host}, for {what}, is not free: {error.strerror}", port=number
                ) from None


def free_port(host: str) -> int:
    """A port that is free together with the next one. Another program may take either before the service does."""
    for _ in range(100):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as first:
            first.bind((host.strip("[]"), 0))
            port: int = first.getsockname()[1]
            with contextlib.suppress(Conflict):
                if port < 65_535:
                    check_ports(host, port + 1, alone=True)
                    return port
    raise Unreachable("NO_FREE_PORT", f"no two free ports in a row were found on {host}")


def check_options(options: StackOptions) -> None:
    """Raises: `InvalidInput` for options that could never work."""
    if not options.token and not is_loopback(options.host):
        raise InvalidInput(
            "TOKEN_REQUIRED",
            f"--host {options.host} can be reached from other machines; set SR_BENCH_TOKEN to require a token",
            value=options.host,
        )
    check_ports(options.host, options.port)


def rotate_logs(logs: Path) -> None:
    """Sets aside logs that have grown large, one generation each."""
    for log in logs.glob("*.log"):
        if log.stat().st_size > MAX_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))


def _forget_former_stack(store: Path) -> None:
    """Takes away what a stack left that was killed. The lock is ours, so none of it is in use."""
    old = service_files.read_record(store)
    (store / "service.json").unlink(missing_ok=True)
    if old and Path(old.sockets).name.startswith("srb-") and not Path(old.sockets).is_symlink():
        shutil.rmtree(old.sockets, ignore_errors=True)


def serve(
    options: StackOptions,
    environment: Mapping[str, str],
    wanted: Callable[[StackOptions, Mapping[str, str], Path, str], tuple[Child, ...]] = children,
) -> None:
    """Runs the stack in the foreground until a signal. Prints `listening URL` on stdout when it is ready.

    Raises: `Conflict` (`STORE_IN_USE`, `PORT_IN_USE`), `InvalidInput`, `Unreachable` (`CHILD_FAILED`, `NOT_READY`).
    """
    service_files.make_store(options.store)
    lock = service_files.take_lock(options.store)
    sockets = None
    try:
        if not options.port:
            options = replace(options, port=free_port(options.host))
        check_options(options)
        _forget_former_stack(options.store)
        rotate_logs(options.store / "logs")
        sockets = socket_folder()
        found = wanted(options, environment, sockets, secrets.token_urlsafe(32))
        asyncio.run(_serve(options, found, lock, sockets))
    finally:
        if sockets:
            shutil.rmtree(sockets, ignore_errors=True)
        (options.store / "service.json").unlink(missing_ok=True)
        os.close(lock)


async def _serve(options: StackOptions, found: tuple[Child, ...], lock: int, sockets: Path) -> None:
    async def announce(addresses: dict[str, str]) -> None:
        host, _, port = http_address(addresses["gateway"]).rpartition(":")
        host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "::": "[::1]"}.get(host, host)
        url = f"http://{host}:{port}"
        grpc_port = await _wait_until_ready(url, options.token)
        record = service_files.ServiceRecord(
            pid=os.getpid(),
            process_start=process_start(os.getpid()),
            url=url,
            grpc_address=f"{host}:{grpc_port}",
            version=service_files.RECORD_VERSION,
            sockets=str(sockets),
        )
        service_files.write_record(options.store, record)
        print(f"listening {url}", flush=True)

    supervisor = Supervisor(found, options.store / "logs", lock, options.drain_s + options.settle_s)
    await supervisor.run(lambda addresses: asyncio.ensure_future(announce(addresses)))


def http_address(said: str) -> str:
    """The HTTP address in what the gateway says: `http=HOST:PORT grpc=HOST:PORT`, or the address alone."""
    named = dict(word.split("=", 1) for word in said.split() if "=" in word)
    return named.get("http", said.split()[0])


async def _wait_until_ready(url: str, token: str) -> int:
    """The port of the front door, once the service is ready. Raises: `Unreachable` (`NOT_READY`)."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        health = await asyncio.to_thread(probe, url, token)
        if health and health.ready:
            return health.grpc_port
        await asyncio.sleep(0.02)
    raise Unreachable("NOT_READY", f"the service at {url} did not become ready within {READY_TIMEOUT_S:.0f} s")
