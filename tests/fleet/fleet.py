"""A fleet of real processes on one PostgreSQL: planners, accountings, graders and executors, each started again when it
dies, as a container platform would."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import grpc
import psycopg
from grpc_health.v1 import health_pb2, health_pb2_grpc
from srbench.v1.work_queue_service_pb2 import CELL_STATE_LEASED

from tests.e2e.processes import TOKEN, Child, Stubs
from tests.ports import free_ports

COUNTS = {"planner": 2, "accounting": 2, "grader": 2, "executor": 4}
# A lease outlives a busy machine's pauses; whoever waits for its end looks for it.
LEASE_S, OWNER_S = 20.0, 2.0
# Cells that an executor holds: few, so that all of them have a part in a run.
CAPACITY = 4


class Fleet(Stubs):
    """All processes of a fleet over one database and one store."""

    def __init__(self, store: Path, database: str, env: Mapping[str, str] | None = None) -> None:
        """`env`: what all processes get beside; the place for another object store."""
        self.store, self.database = store, database
        store.mkdir(parents=True, exist_ok=True)
        names = [f"{kind}-{n}" for kind, count in COUNTS.items() for n in range(count)]
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)}
        self._env = {
            "SR_BENCH_DATABASE_URL": database,
            "SR_BENCH_INTERNAL_TOKEN": TOKEN,
            "SR_BENCH_LEASE_S": str(LEASE_S),
            "SR_BENCH_OWNER_LEASE_S": str(OWNER_S),
        } | dict(env or {})
        self._stopping = threading.Event()
        self.children = {name: self._child(name) for name in names}
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def every(self, kind: str, first: int = 0) -> str:
        """All addresses of a kind as one, beginning with number `first`."""
        count = COUNTS[kind]
        return ",".join(self.addresses[f"{kind}-{(first + n) % count}"] for n in range(count))

    def _child(self, name: str) -> Child:
        kind, _, number = name.partition("-")
        command = [sys.executable, "-m", f"srbench_{kind}", "--listen", self.addresses[name]]
        if kind == "executor":
            command += ["--spool", str(self.store / "spool" / number), "--capacity", str(CAPACITY)]
        elif kind != "grader":
            command += ["--store", str(self.store)]
        peers = ("planner", "accounting", "grader")
        wiring = {f"SR_BENCH_{peer.upper()}_ADDRESS": self.every(peer, int(number)) for peer in peers}
        clean = {key: value for key, value in os.environ.items() if not key.startswith("SR_BENCH_")}
        return Child(name, command, clean | wiring | self._env, self.store / f"{name}.log")

    def _watch(self) -> None:
        while not self._stopping.wait(0.05):
            for child in self.children.values():
                if child.process is not None and child.process.poll() is not None and not self._stopping.is_set():
                    child.start()

    def start(self) -> None:
        for child in self.children.values():
            child.start()
        for name in self.children:
            self.wait_healthy(name)
        self._watcher.start()

    def wait_healthy(self, name: str) -> None:
        with grpc.insecure_channel(self.addresses[name]) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=90, wait_for_ready=True)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING, name

    def stop(self) -> None:
        """Ends all processes at once: the tests are about those that die, and the database forgets them."""
        self._stopping.set()
        if self._watcher.is_alive():
            self._watcher.join()
        for child in self.children.values():
            if child.process is not None:
                child.process.kill()
                child.process.wait()

    def signal(self, name: str, number: signal.Signals) -> None:
        """Sends a signal to a process, if it lives."""
        process = self.children[name].process
        assert process is not None
        if process.poll() is None:
            process.send_signal(number)

    def owner(self) -> str:
        """The planner that has the queue."""
        with psycopg.connect(self.database) as connection:
            row = connection.execute("SELECT address FROM planner.queue_owner").fetchone()
        assert row is not None
        return next(name for name, address in self.addresses.items() if address == row[0])

    def parts(self, run_id: str) -> dict[str, int]:
        """How many cells of a run each executor had last, by its process."""
        return self._by_executor(
            "SELECT e.executor_id, count(*) FROM planner.cells c JOIN planner.runs r ON r.number = c.run "
            "JOIN planner.executors e ON e.number = c.holder WHERE r.id = %s GROUP BY 1",
            run_id,
        )

    def until_nothing_in_hand(self, run_id: str, name: str) -> None:
        """Waits until the planner has taken all cells of a run from an executor."""
        query = (
            "SELECT e.executor_id, count(*) FROM planner.cells c JOIN planner.runs r ON r.number = c.run "
            f"JOIN planner.executors e ON e.number = c.holder WHERE r.id = %s AND c.state = {CELL_STATE_LEASED} GROUP BY 1"
        )
        deadline = time.monotonic() + 90
        while name in self._by_executor(query, run_id):
            assert time.monotonic() < deadline, f"{name} keeps its cells"
            time.sleep(0.2)

    def call_count(self, run_id: str) -> int:
        """How many calls of a run the ledger has, asked of the database: no process is in the way that may be stopped."""
        query = "SELECT call_count FROM accounting.runs WHERE run_id = %s"
        with psycopg.connect(self.database) as connection:
            row = connection.execute(query, (run_id,)).fetchone()
        return int(row[0]) if row is not None else 0

    def until_all_are_busy(self, run_id: str) -> None:
        """Waits until every executor has as many calls of a run in flight as it can hold."""
        query = (
            "SELECT v.word, count(*) FROM accounting.open_calls o JOIN accounting.calls c USING (call_id) "
            "JOIN accounting.runs r USING (run_no) JOIN accounting.vocabulary v ON v.word_no = c.executor "
            "WHERE r.run_id = %s GROUP BY 1"
        )
        deadline = time.monotonic() + 60
        while sum((calls := self._by_executor(query, run_id)).values()) < CAPACITY * COUNTS["executor"]:
            assert time.monotonic() < deadline, f"not all executors have their hands full: {calls}"
            time.sleep(0.05)

    def _by_executor(self, query: str, run_id: str) -> dict[str, int]:
        with psycopg.connect(self.database) as connection:
            rows = connection.execute(query, (run_id,)).fetchall()
        names = {path.read_text().strip(): path.parent.name for path in self.store.glob("spool/*/executor_id")}
        return {f"executor-{names[name]}": int(count) for name, count in rows}

    def cut_database(self) -> int:
        """Ends every connection of the fleet to the database; how many there were."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            row = connection.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE application_name LIKE 'sr-bench%' AND datname = current_database()"
            ).fetchone()
        assert row is not None
        return int(row[0])

    def address(self, name: str) -> str:
        """One process, or whichever of a kind answers."""
        return self.addresses.get(name) or f"ipv4:{self.every(name)}"


@contextmanager
def running(store: Path, database: str, env: Mapping[str, str] | None = None) -> Iterator[Fleet]:
    """A started fleet, ended afterwards whatever happens."""
    fleet = Fleet(store, database, env)
    try:
        fleet.start()
        yield fleet
    finally:
        fleet.stop()
