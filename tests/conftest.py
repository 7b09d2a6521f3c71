"""The databases that tests run on: SQLite, and a real PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Tests start processes beside gRPC's threads; its own handlers of fork make such a child hang or die now and then.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from tests import postgres

# The same examples each time, and no bound on the time of one: a busy machine is no failure.
hypothesis.settings.register_profile(
    "srbench", deadline=None, derandomize=True, database=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("srbench")

KINDS = ("sqlite", "postgres")
# Of `tests/e2e`: files where one run, dear to make, serves all tests.
SHARED_RUNS = {
    f"test_{name}.py"
    for name in ("bundle", "comparison_loop", "loop", "object_storage", "recovery", "runs", "store_migrate")
}


class WholeFiles(LoadScopeScheduling):
    """Workers take one test after another, in the order of collection, but files of shared runs as a whole and first."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if file.rpartition("/")[2] in SHARED_RUNS else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WholeFiles | None:
    """How tests are spread unless another way was asked for."""
    return WholeFiles(config, log) if config.getvalue("dist") == "load" else None


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Database]:
    with postgres.server() as found:
        yield found


@pytest.fixture
def database_kind(request: pytest.FixtureRequest) -> str:
    """`sqlite`, unless the test is parametrized with another."""
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture
def database_of(database_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The address of an empty database; for SQLite with `{}` in place of the service's name."""
    if database_kind == "sqlite":
        return f"sqlite:///{tmp_path}/{{}}.sqlite3"
    server: postgres.Database = request.getfixturevalue("postgres_server")
    return server.new()


def on_both_databases(metafunc: pytest.Metafunc) -> None:
    """A `pytest_generate_tests` that runs every test on both databases, but those about one of them."""
    if "database_kind" in metafunc.fixturenames:
        marks = {mark.name for mark in metafunc.definition.iter_markers()}
        kinds = [kind for kind in KINDS if not marks & {f"{other}_only" for other in KINDS if other != kind}]
        metafunc.parametrize("database_kind", kinds, indirect=True)
