"""Runs our command lines as processes of their own that need not import everything again.

A process that has imported what commands need forks one for each of them: it gets its own arguments, variables, folder and
streams, runs the module as `python -m` would, and ends as any process does. The imports are most of what a command costs.
Tests of the start itself, of terminals and of signals start Python anew.
"""

from __future__ import annotations

import array
import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

# Serves one request after the other. A request comes with four descriptors: standard streams, and where to tell the end.
SERVER = """
import array, gc, importlib, json, os, pkgutil, runpy, signal, socket, sys

def taken(connection):
    fds = array.array("i")
    data, ancillary, _, _ = connection.recvmsg(1 << 20, socket.CMSG_LEN(4 * fds.itemsize))
    for _, _, part in ancillary:
        fds.frombytes(part)
    while data and not data.endswith(b"\\n"):
        data += connection.recv(1 << 20)
    return data, list(fds)

def served(connection):
    while True:
        data, fds = taken(connection)
        if not data:
            os._exit(0)
        if os.fork():
            for fd in fds:
                os.close(fd)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        connection.close()
        tell = fds.pop()
        child = os.fork()
        if child:
            os.write(tell, b"%d\\n" % child)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            os.write(tell, b"%d\\n" % code)
            os._exit(0)
        os.close(tell)
        for target, fd in enumerate(fds):
            os.dup2(fd, target)
            os.close(fd)
        return json.loads(data)

import rich.console, rich.live, rich.spinner, rich.table, rich.text, srbench.v1, srbench_cli
for package in (srbench.v1, srbench_cli):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
gc.freeze()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
asked = served(socket.socket(fileno=int(sys.argv[1])))
os.environ.clear()
os.environ.update(asked["env"])
os.chdir(asked["cwd"])
sys.argv = [asked["module"], *asked["arguments"]]
runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)
"""


@functools.cache
def _server() -> socket.socket:
    """The way to the process that forks; it ends when this one does."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def run(
    module: str, *arguments: str, env: Mapping[str, str], cwd: Path | None = None, stdin: str = "", timeout_s: float = 300
) -> subprocess.CompletedProcess[str]:
    """What `python -m MODULE ARGUMENTS` says and how it ends.

    Raises: `subprocess.TimeoutExpired` after `timeout_s`; the command is ended then.
    """
    asked = {"module": module, "arguments": arguments, "env": dict(env), "cwd": str(cwd or Path.cwd())}
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        with theirs:
            fds = array.array("i", [given.fileno(), out.fileno(), err.fileno(), theirs.fileno()])
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
            data = json.dumps(asked).encode() + b"\n"
            sent = _server().sendmsg([data], ancillary)
            _server().sendall(data[sent:])
        ours.settimeout(timeout_s)
        with ours.makefile() as said:
            child = int(said.readline())
            try:
                code = int(said.readline())
            except TimeoutError:
                os.kill(child, signal.SIGKILL)
                raise subprocess.TimeoutExpired([module, *arguments], timeout_s) from None
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess([module, *arguments], code, out.read().decode(), err.read().decode())
