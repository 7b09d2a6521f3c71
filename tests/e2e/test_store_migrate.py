"""`sr-bench store migrate`: everything of a SQLite store is the same on PostgreSQL, or the target is as empty as it was."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests import commands
from tests.e2e.whole_stack import Stack, clean_environment, manifest, mmlu_cases, running_stack, running_testbed
from tests.postgres import Database

pytestmark = pytest.mark.e2e


def migrate(store: Path, url: str) -> subprocess.CompletedProcess[str]:
    return commands.run("srbench_cli", "--store", str(store), "store", "migrate", "--to", url, env=clean_environment())


def schemas(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ '^(planner|accounting)'").fetchall()
    return {str(name) for (name,) in rows}


@dataclass
class Evaluated:
    """A stopped store with two runs, their reports by id, and the targets of a testbed that still answers."""

    store: Path
    reports: dict[str, dict[str, Any]]
    targets: list[dict[str, Any]]

    def copied(self, into: Path) -> Path:
        """A store for one test alone."""
        return Path(shutil.copytree(self.store, into))


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluated]:
    folder = tmp_path_factory.mktemp("evaluated")
    store = folder / "store"
    with running_testbed(folder) as testbed:
        targets = testbed.targets[:2]
        with running_stack(store) as stack:
            (folder / "registered.json").write_text(json.dumps(targets))
            stack.cli("target", "register", "--file", str(folder / "registered.json"))
            ids = [stack.run(folder, manifest(mmlu_cases(count), targets), f"run-{count}") for count in (6, 9)]
            reports = {run_id: report(stack, run_id) for run_id in ids}
        yield Evaluated(store, reports, targets)


def report(stack: Stack, run_id: str) -> Any:
    return stack.get(f"/runs/{run_id}/report")


def test_a_store_is_moved_and_goes_on_or_nothing_is(
    evaluated: Evaluated, tmp_path: Path, postgres_server: Database
) -> None:
    store, url = evaluated.copied(tmp_path / "store"), postgres_server.new()
    reports, targets = evaluated.reports, evaluated.targets
    moved = migrate(store, url)
    assert moved.returncode == 0, moved.stderr
    shown = json.loads(moved.stdout)
    assert shown["compared_report_count"] == 2
    assert schemas(url) == {"planner", "accounting"}
    again = migrate(store, url)
    assert (again.returncode, "expected an empty database" in again.stderr) == (4, True), again.stderr
    with running_stack(store, SR_BENCH_DATABASE_URL=url) as stack:
        assert {run_id: report(stack, run_id) for run_id in reports} == reports
        (store / "targets.json").unlink()
        listed = stack.cli("target", "list")["targets"]
        assert [found["id"] for found in listed] == [found["id"] for found in targets], "the database has them now"
        evidence = stack.get(f"/runs/{next(iter(reports))}/calls")["calls"]
        assert all(call["evidence_sha256"] for call in evidence)
        fresh = stack.run(tmp_path, manifest(mmlu_cases(3), targets), "fresh")
        assert stack.get(f"/runs/{fresh}")["status"] == "completed"
        in_use = migrate(store, postgres_server.new())
        assert in_use.returncode == 4, in_use.stderr


def test_a_copy_that_differs_or_is_refused_leaves_nothing(
    evaluated: Evaluated, tmp_path: Path, postgres_server: Database
) -> None:
    store, url = evaluated.copied(tmp_path / "store"), postgres_server.new()
    planner = sqlite3.connect(store / "planner.sqlite3")
    planner.execute("UPDATE runs SET reason = 'a' || char(0) || 'b'")
    planner.commit()
    refused = migrate(store, url)
    assert refused.returncode == 2, refused.stderr
    assert "NUL" in refused.stderr
    assert schemas(url) == set()
    planner.execute("UPDATE runs SET reason = ''")
    planner.commit()
    planner.close()
    assert migrate(store, "mysql://user:secret@localhost/x").returncode == 2
    away = migrate(store, "postgresql://user:secret@127.0.0.1:1/x")
    assert away.returncode == 6
    assert "secret" not in away.stderr
    done = migrate(store, url)
    assert done.returncode == 0, done.stderr
    assert schemas(url) == {"planner", "accounting"}
