"""Ends transactions of processes that were stopped while they held what others wait for.

PostgreSQL's own limit for idle transactions is not enough: the driver sends many rows as a pipeline, during which, and
after which, the server does not count a silent client as idle. A process that was stopped right then (a machine that
sleeps, a debugger, `kill -STOP`) would hold up all others of its service until it comes back. What is ended was not
committed, and whoever comes back runs it again.
"""

from __future__ import annotations

import logging
import threading

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from srbench_kit import postgres

LOOK_S = 3.0
_log = logging.getLogger(__name__)
# Only what blocks somebody of the same service: a reader that computes for long holds no lock that anybody waits for.
_END = sa.text(
    """
    SELECT blocker.pid, pg_terminate_backend(blocker.pid)
    FROM (
        SELECT DISTINCT unnest(pg_blocking_pids(pid)) AS pid FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND datname = current_database()
        AND application_name = current_setting('application_name')
    ) AS blocking
    JOIN pg_stat_activity AS blocker USING (pid)
    WHERE blocker.wait_event = 'ClientRead' AND blocker.usename = current_user
    AND blocker.application_name = current_setting('application_name')
    AND blocker.state_change < clock_timestamp() - make_interval(secs => :limit)
    """
)


class LockWatch:
    """Looks now and then, in a thread of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lock-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            try:
                with self._engine.connect() as connection:
                    ended = connection.execute(_END, {"limit": postgres.IDLE_IN_TRANSACTION_S}).all()
            except sa.exc.DBAPIError as error:
                # A server that is away blocks nobody, and is asked again.
                if not postgres.is_lost(error):
                    _log.error("locks cannot be looked at: %s", error.orig)
                continue
            for pid, _ in ended:
                _log.warning("ended the transaction of a process that was silent while others waited (backend %d)", pid)
