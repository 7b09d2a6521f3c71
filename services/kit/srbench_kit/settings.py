"""Settings that several processes read from the environment. Secrets come only from there."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from srbench_kit.errors import InvalidInput

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*\Z")


def public_token() -> str:
    """The token callers of the gateway must show: the value of `SR_BENCH_TOKEN`, or of the variable that
    `SR_BENCH_TOKEN_ENV` names. Empty when none is set.

    Raises: `InvalidInput` (`BAD_TOKEN_ENV`) when the named variable is malformed or absent.
    """
    name = os.environ.get("SR_BENCH_TOKEN_ENV", "")
    if not name:
        return os.environ.get("SR_BENCH_TOKEN", "")
    if not _VARIABLE.match(name):
        raise InvalidInput(
            "BAD_TOKEN_ENV", f"SR_BENCH_TOKEN_ENV is {name!r}; expected the name of a variable in capitals", value=name
        )
    token = os.environ.get(name, "")
    if not token:
        raise InvalidInput("BAD_TOKEN_ENV", f"SR_BENCH_TOKEN_ENV names {name}, which is not set", value=name)
    return token


def internal_token() -> str:
    """The token the services show each other; empty means none is asked for."""
    return os.environ.get("SR_BENCH_INTERNAL_TOKEN", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where the services listen: `host:port` or `unix:/path`."""

    planner: str
    accounting: str
    grader: str
    executors: tuple[str, ...] = ()

    @staticmethod
    def from_environment() -> Addresses:
        """Reads `SR_BENCH_{PLANNER,ACCOUNTING,GRADER}_ADDRESS` and `SR_BENCH_EXECUTOR_ADDRESSES` (comma-separated)."""

        def required(name: str) -> str:
            value = os.environ.get(name, "")
            if not value:
                raise InvalidInput("NO_ADDRESS", f"{name} is not set; expected host:port or unix:/path", field=name)
            return value

        executors = os.environ.get("SR_BENCH_EXECUTOR_ADDRESSES", "")
        return Addresses(
            planner=required("SR_BENCH_PLANNER_ADDRESS"),
            accounting=required("SR_BENCH_ACCOUNTING_ADDRESS"),
            grader=required("SR_BENCH_GRADER_ADDRESS"),
            executors=tuple(part.strip() for part in executors.split(",") if part.strip()),
        )


def database_url(service: str, store: Path) -> str:
    """Where `service` keeps its tables: `SR_BENCH_DATABASE_URL`, or one SQLite file in the store."""
    return os.environ.get("SR_BENCH_DATABASE_URL", "") or f"sqlite:///{store / (service + '.sqlite3')}"


def objects_url(store: Path) -> str:
    """Where blobs, datasets and sealed evidence lie: `SR_BENCH_OBJECTS_URL`, or the store's own folder."""
    return os.environ.get("SR_BENCH_OBJECTS_URL", "") or str(store)


DEFAULT_SEAL_S = 60.0


def seal_s() -> float:
    """After how long a segment of evidence is sealed and carried to the object store: `SR_BENCH_SEAL_S`, else 60 s.

    Raises: `InvalidInput` (`BAD_SEAL`).
    """
    return seconds("SR_BENCH_SEAL_S", DEFAULT_SEAL_S, 0.05, 86_400, "BAD_SEAL")


def seconds(name: str, default: float, least: float, most: float, reason: str) -> float:
    """The variable `name` as seconds. Raises: `InvalidInput` (`reason`) unless it lies from `least` to `most`."""
    text = os.environ.get(name, "")
    try:
        found = float(text) if text else default
    except ValueError:
        found = float("nan")
    if not least <= found <= most:
        raise InvalidInput(reason, f"{name} is {text!r}; expected seconds from {least:g} to {most:g}", field=name)
    return found


def database_schema(service: str) -> str:
    """The schema of `service` in PostgreSQL: its name, and `SR_BENCH_DATABASE_SCHEMA_SUFFIX` for a second deployment in one
    database. Raises: `InvalidInput` (`BAD_SCHEMA_SUFFIX`)."""
    suffix = os.environ.get("SR_BENCH_DATABASE_SCHEMA_SUFFIX", "")
    if not re.fullmatch(r"[a-z0-9_]{0,32}", suffix):
        raise InvalidInput(
            "BAD_SCHEMA_SUFFIX",
            f"SR_BENCH_DATABASE_SCHEMA_SUFFIX is {suffix!r}; expected up to 32 of a-z, 0-9 and _",
            field="SR_BENCH_DATABASE_SCHEMA_SUFFIX",
        )
    return service + suffix
