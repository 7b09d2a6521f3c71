"""What the local stack consists of: which processes, in which order, with which arguments and which environment.

Model keys reach executors only. Every other process gets a short list of variables, so that no key can leak from it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from srbench_kit import machine
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
# What lies in the folder of secrets was read by the command line, and is handed out like all else.
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
        "SR_BENCH_SECRETS_DIR",
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
        capacity: most cells an executor holds at once, those of harnesses apart.
        harness_cells: most cells of harnesses at once, over all executors; `None`: what this machine has room for.
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
    harness_cells: int | None = None
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
    identity = options.store_identity or store_id(store)
    token = {"SR_BENCH_TOKEN": options.token} if options.token else {}
    gateway = Child(
        name="gateway",
        argv=_module("srbench_gateway", "--host", options.host, "--port", options.port, "--store-identity", identity),
        environment=plain_environment(environment) | wiring | token,
        stop_order=0,
    )
    found = [
        *_services(options, environment, wiring, sockets),
        *_executors(options, environment, wiring, executors),
        gateway,
    ]
    return tuple(_with_metrics(found, environment.get("SR_BENCH_METRICS_ADDRESS", "")))


def _services(
    options: StackOptions, environment: Mapping[str, str], wiring: dict[str, str], sockets: Path
) -> Iterator[Child]:
    """Planner, accounting and grader, each with no more of our environment than it needs."""
    plain = plain_environment(environment) | wiring
    storage = _picked(environment, "SR_BENCH_DATABASE_URL", "AWS_")
    own = {
        "planner": storage | _picked(environment, "HF_", "HUGGING_FACE_HUB_TOKEN"),
        "accounting": storage,
        "grader": _picked(environment, "DOCKER_"),
    }
    for name, stop_order in (("planner", 3), ("accounting", 4), ("grader", 2)):
        kept = () if name == "grader" else ("--store", options.store)
        yield Child(
            name=name,
            argv=_module(f"srbench_{name}", "--listen", f"unix:{sockets}/{name}", *kept),
            environment=plain | own[name],
            stop_order=stop_order,
            socket=str(sockets / name),
        )


def _executors(
    options: StackOptions, environment: Mapping[str, str], wiring: dict[str, str], addresses: list[str]
) -> Iterator[Child]:
    """The executors, which alone see the keys of models."""
    harnesses = shares(options.harness_cells, len(addresses))
    for number, address in enumerate(addresses):
        spool = options.store / "spool" / str(number)
        arguments = ("--listen", address, "--spool", spool, "--capacity", options.capacity)
        room = ("--harness-cells", harnesses[number])
        yield Child(
            name=f"executor-{number}",
            argv=_module("srbench_executor", *arguments, *room),
            environment=executor_environment(environment) | wiring | {"SR_BENCH_DRAIN_S": str(options.drain_s)},
            stop_order=1,
            socket=address.removeprefix("unix:"),
        )


def shares(wanted: int | None, executors: int) -> list[int]:
    """How many harnesses each executor of a machine may run, that together they are as many as `wanted`."""
    whole = machine.usual_harness_cells() if wanted is None else wanted
    return [whole // executors + (number < whole % executors) for number in range(executors)]


def _with_metrics(found: list[Child], address: str) -> list[Child]:
    """The processes with a port each for their metrics: the one that the operator named and those after it.

    Raises: `InvalidInput` (`BAD_METRICS`).
    """
    if not address:
        return found
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) + len(found) > 65_536:
        raise InvalidInput("BAD_METRICS", f"SR_BENCH_METRICS_ADDRESS is {address!r}; expected a port or host:port")
    return [
        replace(
            child,
            environment={**child.environment, "SR_BENCH_METRICS_ADDRESS": f"{host or '127.0.0.1'}:{int(port) + number}"},
        )
        for number, child in enumerate(found)
    ]


def pinned(child: Child, said: str) -> Child:
    """`child` as it is started again when it listened at `said`: a gateway that took any free ports keeps them."""
    places = dict(word.split("=", 1) for word in said.split() if "=" in word)
    if child.argv.count("0") != 1 or not {"http", "grpc"} <= places.keys():
        return child
    http, grpc = (places[name].rpartition(":")[2] for name in ("http", "grpc"))
    at = child.argv.index("0")
    return replace(child, argv=(*child.argv[:at], http, "--grpc-port", grpc, *child.argv[at + 1 :]))


def socket_folder() -> Path:
    """A new private folder with a path short enough for Unix sockets (Linux allows 107 bytes, macOS 103).

    Raises: `InvalidInput` (`NO_SOCKET_FOLDER`).
    """
    room = MAX_SOCKET_PATH - len("/srb-12345678/executor-999")
    for base in (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"):
        if base and len(os.fsencode(base)) <= room and os.access(base, os.W_OK | os.X_OK):
            return Path(tempfile.mkdtemp(prefix="srb-", dir=base))
    raise InvalidInput("NO_SOCKET_FOLDER", f"no writable folder has a path of at most {room} bytes; set TMPDIR to one")
