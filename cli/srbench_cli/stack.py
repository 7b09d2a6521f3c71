"""What the local stack consists of: which processes, in which order, with which arguments and which environment.

Model keys reach executors only. Every other process gets a short list of variables, so that no key can leak from it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from srbench_kit.errors import InvalidInput

from srbench_cli.service_files import store_id

# Without these a Python process, its certificates and its temporary files are not found.
_PLAIN = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "VIRTUAL_ENV",
        "CURL_CA_BUNDLE",
        "REQUESTS_CA_BUNDLE",
        "COVERAGE_PROCESS_START",
    }
)
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
_PREFIXES = ("LC_", "XDG_", "PYTHON", "SSL_CERT_", "SR_BENCH_", "OTEL_", "GRPC_")
_SECRET_ENDINGS = ("_TOKEN", "_KEY", "_SECRET", "_PASSWORD")
# The database's address may hold a password, the callers' token is the gateway's, the address of a service is ours to give.
_NEVER_PLAIN = frozenset(
    {
        "SR_BENCH_TOKEN",
        "SR_BENCH_TOKEN_ENV",
        "SR_BENCH_INTERNAL_TOKEN",
        "SR_BENCH_DATABASE_URL",
        "SR_BENCH_URL",
        "SR_BENCH_STORE",
        "SR_BENCH_PLANNER_ADDRESS",
        "SR_BENCH_ACCOUNTING_ADDRESS",
        "SR_BENCH_GRADER_ADDRESS",
        "SR_BENCH_EXECUTOR_ADDRESSES",
        "SR_BENCH_BRIDGE_TOKEN",
    }
)
MAX_SOCKET_PATH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """What the operator chose.

    Attributes:
        store: the store directory.
        host, port: where the gateway listens; port 0 means any free one.
        executors: how many executors to run.
        capacity: most cells an executor holds at once.
        token: what callers must show; empty means none.
        store_identity: the `store_id` to report instead of the store's own; empty means its own.
        drain_s: how long calls in flight may take to end when the stack stops, in seconds.
        settle_s: how long a process may take beyond that before it is killed, in seconds.
    """

    store: Path
    host: str = "127.0.0.1"
    port: int = 8090
    executors: int = 1
    capacity: int = 1024
    token: str = ""
    store_identity: str = ""
    drain_s: float = 30.0
    settle_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """One process of the stack.

    Attributes:
        name: names it in messages and its log file.
        argv: how it is started.
        environment: all variables it gets.
        stop_order: processes stop in ascending order; those with the same number together.
        socket: its Unix socket, removed before it starts again; empty when it has none.
    """

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    stop_order: int
    socket: str = ""


def plain_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that every process may see: nothing of them is a secret."""
    return {
        name: value
        for name, value in environment.items()
        if (name in _PLAIN or name.lower() in _PROXIES or name.startswith(_PREFIXES))
        and name not in _NEVER_PLAIN
        and not name.endswith(_SECRET_ENDINGS)
    }


def executor_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """All variables but the secrets of others: a target may name any variable as its key."""
    hidden = _NEVER_PLAIN | {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", environment.get("SR_BENCH_TOKEN_ENV", "")}
    return {name: value for name, value in environment.items() if name not in hidden}


def _picked(environment: Mapping[str, str], *prefixes: str) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(prefixes)}


def _module(name: str, *arguments: object) -> tuple[str, ...]:
    return (sys.executable, "-m", name, *(str(argument) for argument in arguments))


def children(
    options: StackOptions, environment: Mapping[str, str], sockets: Path, internal_token: str
) -> tuple[Child, ...]:
    """The processes of a stack whose services meet in the folder `sockets` and know each other by `internal_token`."""
    store = options.store
    executors = [f"unix:{sockets}/executor-{number}" for number in range(options.executors)]
    wiring = {
        # The services fork only to start programs. gRPC's handlers for forks break such a child now and then: it died
        # before it ran in 5 of 12 preparations, and in none without them.
        "GRPC_ENABLE_FORK_SUPPORT": "false",
        "SR_BENCH_INTERNAL_TOKEN": internal_token,
        "SR_BENCH_PLANNER_ADDRESS": f"unix:{sockets}/planner",
        "SR_BENCH_ACCOUNTING_ADDRESS": f"unix:{sockets}/accounting",
        "SR_BENCH_GRADER_ADDRESS": f"unix:{sockets}/grader",
        "SR_BENCH_EXECUTOR_ADDRESSES": ",".join(executors),
    }
    plain = plain_environment(environment) | wiring
    storage = _picked(environment, "SR_BENCH_DATABASE_URL", "AWS_")
    found = [
        Child(
            name="planner",
            argv=_module("srbench_planner", "--listen", f"unix:{sockets}/planner", "--store", store),
            environment=plain | storage | _picked(environment, "HF_", "HUGGING_FACE_HUB_TOKEN"),
            stop_order=3,
            socket=str(sockets / "planner"),
        ),
        Child(
            name="accounting",
            argv=_module("srbench_accounting", "--listen", f"unix:{sockets}/accounting", "--store", store),
            environment=plain | storage,
            stop_order=4,
            socket=str(sockets / "accounting"),
        ),
        Child(
            name="grader",
            argv=_module("srbench_grader", "--listen", f"unix:{sockets}/grader"),
            environment=plain | _picked(environment, "DOCKER_"),
            stop_order=2,
            socket=str(sockets / "grader"),
        ),
    ]
    for number, address in enumerate(executors):
        spool = store / "spool" / str(number)
        arguments = ("--listen", address, "--spool", spool, "--capacity", options.capacity)
        found.append(
            Child(
                name=f"executor-{number}",
                argv=_module("srbench_executor", *arguments),
                environment=executor_environment(environment) | wiring | {"SR_BENCH_DRAIN_S": str(options.drain_s)},
                stop_order=1,
                socket=address.removeprefix("unix:"),
            )
        )
    identity = options.store_identity or store_id(store)
    token = {"SR_BENCH_TOKEN": options.token} if options.token else {}
    found.append(
        Child(
            name="gateway",
            argv=_module("srbench_gateway", "--host", options.host, "--port", options.port, "--store-identity", identity),
            environment=plain | token,
            stop_order=0,
        )
    )
    return tuple(found)


def socket_folder() -> Path:
    """A new private folder with a path short enough for Unix sockets (Linux allows 107 bytes, macOS 103).

    Raises: `InvalidInput` (`NO_SOCKET_FOLDER`).
    """
    room = MAX_SOCKET_PATH - len("/srb-12345678/executor-999")
    for base in (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"):
        if base and len(os.fsencode(base)) <= room and os.access(base, os.W_OK | os.X_OK):
            return Path(tempfile.mkdtemp(prefix="srb-", dir=base))
    raise InvalidInput("NO_SOCKET_FOLDER", f"no writable folder has a path of at most {room} bytes; set TMPDIR to one")
