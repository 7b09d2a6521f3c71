"""Runs the scripts on the connection that `srbench_kit.db.upgrade` hands over."""

from __future__ import annotations

from alembic import context

from srbench_accounting.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
