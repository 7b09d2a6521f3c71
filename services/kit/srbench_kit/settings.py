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
