"""The profile of a run, and more words that runs are found by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from srbench.v1 import plan_pb2

from srbench_planner.run_rows import searchable

revision = "0007_words_of_runs"
down_revision = "0006_dataset_preparations"


def upgrade() -> None:
    """Creates the column, and fills it and the words from the plans."""
    op.add_column("runs", sa.Column("profile", sa.Text, nullable=False, server_default=""))
    runs = sa.table("runs", *[sa.column(name) for name in ("number", "plan", "profile", "searchable")])
    plans = sa.table("plans", sa.column("number"), sa.column("summary", sa.LargeBinary))
    connection = op.get_bind()
    for number, summary in connection.execute(sa.select(plans.c.number, plans.c.summary)).all():
        plan = plan_pb2.Plan.FromString(summary)
        words = {"profile": plan.profile, "searchable": searchable(plan)}
        connection.execute(runs.update().where(runs.c.plan == number).values(**words))
