"""Which service a command talks to: a pure function of options, environment and what lies on disk.

An explicit address always wins. Otherwise the stack of the workspace is used when its store exists, and the person's own
store when it does not. A service that runs says in `<store>/service.json` where it listens, so any port is found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from srbench_kit.errors import InvalidInput
from srbench_kit.hosts import is_loopback

DEFAULT_PORT = 8090
DEFAULT_STACK = "vllm-sr"
MAX_PORT = 65_535
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a service is, or would be.

    Attributes:
        url: origin of the HTTP face, without a path.
        store: the store directory, absolute and resolved.
        explicit_url: the caller named the address; nothing is started and nothing else is looked for.
        explicit_store: the caller named the store.
        managed: a workspace's stack, with a private token beside its store.
    """

    url: str
    store: Path
    explicit_url: bool
    explicit_store: bool
    managed: bool

    @property
    def token_file(self) -> Path:
        """Where a managed stack keeps its token."""
        return self.store.parent / "service-token"

    @property
    def may_autostart(self) -> bool:
        """Whether the command line may start this service by itself."""
        return not self.explicit_url and not self.managed

    @property
    def checks_store(self) -> bool:
        """Whether the service must prove that it serves `store`."""
        return (self.explicit_store or not self.explicit_url) and is_loopback(urlsplit(self.url).hostname or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One stack of one directory: where its store lies and which port it takes."""

    store: Path
    port: int

    @property
    def token_file(self) -> Path:
        """Where the stack keeps its token."""
        return self.store.parent / "service-token"


def stack_name(raw: str) -> str:
    """The one name of a stack; blank means the default. Raises: `InvalidInput` (`BAD_STACK_NAME`)."""
    if not raw.strip():
        return DEFAULT_STACK
    name = _NOT_IN_NAMES.sub("-", raw.strip()).strip("._-")
    if not name:
        raise InvalidInput(
            "BAD_STACK_NAME", f"VLLM_SR_STACK_NAME is {raw!r}; expected at least one ASCII letter or digit", value=raw
        )
    return name


def _number(environment: Mapping[str, str], name: str, low: int, high: int) -> int | None:
    raw = environment.get(name, "").strip()
    if not raw:
        return None
    if not (raw.isascii() and raw.isdigit() and low <= int(raw[:9]) <= high and len(raw) < 9):
        raise InvalidInput("BAD_PORT", f"{name} is {raw!r}; expected a whole number from {low} to {high}", field=name)
    return int(raw)


def stack_port(environment: Mapping[str, str]) -> int:
    """`VLLM_SR_BENCH_PORT`, or 8090 plus `VLLM_SR_PORT_OFFSET`. Raises: `InvalidInput` (`BAD_PORT`)."""
    port = _number(environment, "VLLM_SR_BENCH_PORT", 1, MAX_PORT - 1)
    if port is not None:
        return port
    return DEFAULT_PORT + port_offset(environment)


def port_offset(environment: Mapping[str, str]) -> int:
    """`VLLM_SR_PORT_OFFSET`, by which all ports of a stack are moved; 0 without it. Raises: `InvalidInput` (`BAD_PORT`)."""
    return _number(environment, "VLLM_SR_PORT_OFFSET", 0, MAX_PORT - 1 - DEFAULT_PORT) or 0


def workspace(environment: Mapping[str, str], directory: Path) -> Workspace:
    """The stack that belongs to `directory`, or to `VLLM_SR_STATE_ROOT_DIR` where that is set."""
    root = Path(environment.get("VLLM_SR_STATE_ROOT_DIR") or directory).expanduser().resolve()
    name = stack_name(environment.get("VLLM_SR_STACK_NAME", ""))
    return Workspace(store=root / ".sr-bench" / name / "store", port=stack_port(environment))


def personal_store(environment: Mapping[str, str]) -> Path:
    """The store of a person who named none and works in no workspace."""
    home = Path(environment["HOME"]) if environment.get("HOME") else Path.home()
    return home / ".local" / "share" / "vllm-sr" / "sr-bench"


def check_origin(url: str) -> str:
    """`url` without a closing slash. Raises: `InvalidInput` (`BAD_URL`) for anything but an HTTP origin."""
    try:
        parts = urlsplit(url.strip())
        port_is_odd = parts.port is not None and not 1 <= parts.port <= MAX_PORT
    except ValueError:
        parts, port_is_odd = urlsplit(""), True
    if parts.username or parts.password:
        # The value is not repeated: it holds a secret.
        raise InvalidInput("BAD_URL", "the service address holds user information; expected http(s)://host[:port] alone")
    extra = parts.path.rstrip("/") or parts.query or parts.fragment
    if parts.scheme not in ("http", "https") or not parts.hostname or port_is_odd or extra:
        raise InvalidInput("BAD_URL", f"the service address is {url!r}; expected http(s)://host[:port] alone", value=url)
    return f"{parts.scheme}://{parts.netloc}"


def locate(
    *, url: str | None, store: str | None, environment: Mapping[str, str], directory: Path, port: int | None = None
) -> Location:
    """The service to use. `url` and `store` are the options; blank ones count as not given. `port` overrides the default.

    Raises: `InvalidInput` (`BAD_URL`, `BAD_PORT`, `BAD_STACK_NAME`).
    """
    url = url or environment.get("SR_BENCH_URL") or None
    store = store or environment.get("SR_BENCH_STORE") or None
    of_workspace = workspace(environment, directory) if url is None else None
    if store is not None:
        chosen = Path(store).expanduser()
        chosen = (directory / chosen).resolve()
    elif of_workspace is not None and of_workspace.store.is_dir():
        chosen = of_workspace.store
    else:
        chosen = personal_store(environment).resolve()
    managed = url is None and (chosen.parent / "service-token").is_file()
    if url is not None:
        origin = check_origin(url)
    else:
        default = of_workspace.port if managed and of_workspace is not None else DEFAULT_PORT
        origin = f"http://127.0.0.1:{port if port is not None else default}"
    return Location(
        url=origin, store=chosen, explicit_url=url is not None, explicit_store=store is not None, managed=managed
    )
