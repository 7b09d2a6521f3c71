"""Runs inside a sandbox: takes a program and inputs one at a time, gives back outputs. Knows no expected output.

Standard library only, Python 3.8 and later; sent into the sandbox as text. Whatever the program does to this process gains
it nothing: outputs are compared outside, and all that is inside is the inputs that the program is given anyway.

Requests, one line of JSON each: `load` carries the code, `test` an input. Replies: `<bytes> <JSON>` and as many bytes.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import numbers
import os
import select
import shutil
import signal
import sys
import threading
import time
import traceback
import types
from decimal import Decimal
from typing import Any, BinaryIO, NoReturn

# What programs for contests may take for granted, in this order: later names hide earlier ones.
STARRED = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics", "itertools"),
    *("functools", "operator", "io", "sys", "json", "builtins", "typing"),
)
RECURSION, DIGITS = 50_000, 50_000
FOLDER = "/tmp/run"
PROGRAM = FOLDER + "/solution.py"
STDERR_TAIL, MAX_STDERR, MESSAGE = 2048, 16 << 20, 300
# What a program left behind may still write for so long after its end.
LINGER_S = 0.2
# A look that takes so long was none: this process, or the whole machine, stood still, and the program is not to pay for it.
STANDSTILL_S = 0.5
LOOK_S = 1.0


def main() -> None:
    """Serves requests until there are no more."""
    control_in, control_out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    sys.setrecursionlimit(RECURSION)
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(DIGITS)
    runner = Runner(control_in, control_out, prelude())
    runner.reply(b"", status="ready")
    for line in control_in:
        asked = json.loads(line)
        if asked["op"] == "load":
            runner.load(asked)
        elif runner.function:
            runner.call(asked)
        else:
            runner.run(asked)


def prelude() -> dict[str, Any]:
    """The names that every program finds."""
    names: dict[str, Any] = {}
    for module in STARRED:
        exec(f"from {module} import *", names)
    names.update({module: importlib.import_module(module) for module in STARRED if module not in ("builtins", "typing")})
    return names


class Runner:
    """One program, and how it is run: whole for each input, or one function of it called in a process that lasts."""

    def __init__(self, control_in: BinaryIO, control_out: BinaryIO, names: dict[str, Any]) -> None:
        self.control = (control_in, control_out)
        self.names = names
        self.code: Any = None
        self.function, self.bare = "", False
        self.server: Server | None = None
        clear()

    def reply(self, payload: bytes, **facts: Any) -> None:
        """Answers a request."""
        head = json.dumps(facts, separators=(",", ":")).encode()
        self.control[1].write(b"%d %s\n" % (len(payload), head) + payload)
        self.control[1].flush()

    def load(self, asked: dict[str, Any]) -> None:
        """Takes the program. What it surely needs is imported once, before any process is made of this one."""
        self.function, self.bare = asked["function"], asked.get("bare", False)
        for name in asked.get("imports", ()):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        if "numpy" in asked["code"]:
            # Where it is missing, the program's own import says so.
            with contextlib.suppress(ImportError):
                importlib.import_module("numpy")
        try:
            self.code = compile(asked["code"], "solution.py", "exec", dont_inherit=True)
            self.reply(b"", status="ok")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self.reply(b"", status="error", message=f"{type(error).__name__}: {error}"[:MESSAGE])

    def run(self, asked: dict[str, Any]) -> None:
        """Runs the whole program on one input, in a process and a folder of its own."""
        began = time.monotonic()
        source = os.memfd_create("input")
        write_all(source, asked["input"].encode("utf-8", "surrogatepass"))
        os.lseek(source, 0, os.SEEK_SET)
        (out_read, out_write), (err_read, err_write), (said_read, said_write) = os.pipe(), os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            close(*(stream.fileno() for stream in self.control), out_read, err_read, said_read)
            be_program(self.code, {} if self.bare else self.names, source, out_write, err_write, said_write)
        close(source, out_write, err_write, said_write)
        status, output, errors = watch(child, out_read, err_read, asked["timeout_s"], asked["output_bytes"])
        seconds = round(time.monotonic() - began, 4)
        reap()
        os.set_blocking(said_read, False)
        try:
            said = os.read(said_read, 1)
        except BlockingIOError:
            said = b""
        close(out_read, err_read, said_read)
        clear()
        # A program that leaves at once with a good exit code has said all that it wanted.
        if status == "ok" and said == b"1":
            status = "error"
        self.reply(output if status in ("ok", "error") else b"", status=status, seconds=seconds, message=short(errors))

    def call(self, asked: dict[str, Any]) -> None:
        """Calls the program's function with one list of arguments."""
        self.server = self.server or Server(self)
        began = time.monotonic()
        status, result, errors = self.server.ask(asked)
        if status not in ("ok", "odd"):
            self.server.close()
            self.server = None
            reap()
            clear()
        seconds = round(time.monotonic() - began, 4)
        self.reply(result if status == "ok" else b"", status=status, seconds=seconds, message=short(errors))


def watch(child: int, out: int, err: int, timeout_s: float, most: int) -> tuple[str, bytes, bytes]:
    """Reads what the child writes until it ends or goes too far: status, output, the last errors."""
    output, errors, error_bytes = bytearray(), b"", 0
    looked = time.monotonic()
    deadline = looked + timeout_s
    waiting, code = {out, err}, None
    while waiting or code is None:
        now = time.monotonic()
        if now - looked > STANDSTILL_S:
            deadline += now - looked
        looked = now
        if now >= deadline and code is None:
            return "timeout", b"", errors
        if code is None:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                code, deadline = status, now + LINGER_S
        elif now >= deadline:
            break
        # Half a millisecond is as long as a short program takes.
        for descriptor in select.select(list(waiting), [], [], 0.002 if waiting else 0.0005)[0]:
            data = os.read(descriptor, 65536)
            if not data:
                waiting.discard(descriptor)
            elif descriptor == out:
                output += data
            else:
                error_bytes += len(data)
                errors = (errors + data)[-STDERR_TAIL:]
        if len(output) > most or error_bytes > MAX_STDERR:
            return "output", b"", errors
        if not waiting and code is None:
            time.sleep(0.0005)
    return ("error" if code else "ok"), bytes(output), errors


def be_program(code: Any, names: dict[str, Any], source: int, out: int, err: int, said: int) -> NoReturn:
    """Is the program, as if it had been started from its file."""
    enter(source, out, err)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="surrogatepass", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    module = types.ModuleType("__main__")
    module.__dict__.update(names)
    module.__dict__.update(__name__="__main__", __file__=PROGRAM)
    sys.modules["__main__"] = module
    good = b"1"
    try:
        with contextlib.suppress(SystemExit):
            exec(code, module.__dict__)
        # What the interpreter does at its end: waits for threads, runs what was registered.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.__stdout__):
            if stream is not None and not stream.closed:
                stream.flush()
        good = b"0"
    except BaseException:
        traceback.print_exc(limit=-3)
    finally:
        leave(said, good)


def enter(source: int, out: int, err: int) -> None:
    """Makes the three descriptors the standard ones of this process."""
    os.setsid()
    os.chdir(FOLDER)
    for target, descriptor in enumerate((source, out, err)):
        os.dup2(descriptor, target)
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", errors="surrogatepass", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # type: ignore[misc]  # noqa: SIM115


def leave(said: int, good: bytes) -> NoReturn:
    """Ends this process without running anything else."""
    try:
        sys.stderr.flush()
        os.write(said, good)
    finally:
        os._exit(0)


class Server:
    """A process that has loaded the program once and calls its function for one input after another."""

    def __init__(self, runner: Runner) -> None:
        (ask_read, self.asks), (self.told, told_write), (self.errors, err_write) = os.pipe(), os.pipe(), os.pipe()
        if not os.fork():
            close(*(stream.fileno() for stream in runner.control), self.asks, self.told, self.errors)
            be_server(runner, ask_read, told_write, err_write)
        close(ask_read, told_write, err_write)
        os.set_blocking(self.asks, False)

    def close(self) -> None:
        """Lets go of the process."""
        close(self.asks, self.told, self.errors)

    def ask(self, asked: dict[str, Any]) -> tuple[str, bytes, bytes]:
        """Passes one input on: status, result, the last errors. `odd` is a result that is no plain value."""
        deadline, most = time.monotonic() + asked["timeout_s"], asked["output_bytes"]
        view = memoryview(asked["input"].encode("utf-8", "surrogatepass") + b"\n")
        told, errors, error_bytes, waiting = bytearray(), b"", 0, {self.told, self.errors}
        while not told.endswith(b"\n"):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return "timeout", b"", errors
            if self.told not in waiting:
                return "error", b"", errors
            looked, look_s = time.monotonic(), min(left_s, LOOK_S)
            readable, writable, _ = select.select(list(waiting), [self.asks] if view else [], [], look_s)
            late_s = time.monotonic() - looked - look_s
            if late_s > STANDSTILL_S:
                deadline += late_s
            if writable:
                try:
                    view = view[os.write(self.asks, view[:4096]) :]
                except BrokenPipeError:
                    return "error", b"", errors
            for descriptor in readable:
                data = os.read(descriptor, 65536)
                if not data:
                    waiting.discard(descriptor)
                elif descriptor == self.told:
                    told += data
                else:
                    error_bytes += len(data)
                    errors = (errors + data)[-STDERR_TAIL:]
            if len(told) > most or error_bytes > MAX_STDERR:
                return "output", b"", errors
        status, _, result = bytes(told[:-1]).partition(b" ")
        known = {b"ok": "ok", b"odd": "odd"}.get(status, "error")
        return known, result, errors if known == "ok" else result


def be_server(runner: Runner, asks: int, told: int, err: int) -> NoReturn:
    """Is the program that was loaded once; what it prints goes nowhere."""
    null = os.open(os.devnull, os.O_RDWR)
    enter(null, null, err)
    names = dict(runner.names, __name__="solution", __file__=PROGRAM)
    method = None
    for line in os.fdopen(asks, "rb"):
        try:
            if method is None:
                exec(runner.code, names)
                owner = names.get("Solution")
                method = getattr(owner(), runner.function) if isinstance(owner, type) else names[runner.function]
            result = method(*json.loads(line))
            try:
                text = b"ok " + plain(list(result) if isinstance(result, tuple) else result)
            except (TypeError, ValueError, RecursionError) as error:
                text = b"odd " + str(error).encode("utf-8", "replace")
            write_all(told, text.replace(b"\n", b" ") + b"\n")
        except BaseException:
            write_all(
                told, b"error " + traceback.format_exc(limit=-3).encode("utf-8", "replace").replace(b"\n", b" ") + b"\n"
            )
            break
    os._exit(0)


def plain(value: Any) -> bytes:
    """`value` as JSON when it is nothing but plain values. Tuples within are none: they equal no list."""
    return json.dumps(checked(value)).encode()


def checked(value: Any) -> Any:
    """`value` rebuilt from what it is, not from what its own methods say it is. Raises: `TypeError`."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, list):
        return [checked(item) for item in list.__iter__(value)]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in dict.__iter__(value)):
            raise TypeError("a key is no text")
        return {str.__str__(key): checked(item) for key, item in dict.items(value)}
    if hasattr(type(value), "__index__"):
        # The integers of NumPy.
        return int.__int__(type(value).__index__(value))
    if isinstance(value, (numbers.Complex, Decimal)):
        return real(value)
    raise TypeError(f"a value is a {type(value).__name__}")


def real(value: Any) -> float:
    """A number of another kind as the float that is equal to it: NumPy's, fractions, decimals. Raises: `TypeError`."""
    number = float(value.real if isinstance(value, numbers.Complex) else value)
    if number != value:
        raise TypeError(f"a {type(value).__name__} is equal to no float")
    return float.__float__(number)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of `data`."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def close(*descriptors: int) -> None:
    """Closes descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


def short(errors: bytes) -> str:
    """The end of what was written to standard error."""
    return errors.decode("utf-8", "replace")[-MESSAGE:]


def clear() -> None:
    """An empty folder for the next program."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER, exist_ok=True)


def reap() -> None:
    """Ends every process in the sandbox but this one and those it descends from.

    All are stopped first, at one stroke: what is stopped cannot multiply while it is being ended.
    """
    parent = os.getppid()
    kept = {1, parent, os.getpid()}
    for _ in range(200):
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGSTOP)
        left = {int(name) for name in os.listdir("/proc") if name.isdigit()} - kept
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not left:
            break
        time.sleep(0.001)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(parent, signal.SIGCONT)


if __name__ == "__main__":
    main()
