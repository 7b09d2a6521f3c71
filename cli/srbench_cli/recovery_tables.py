"""A recovery plan for people: what can be tried again, what it cost so far, and why the rest cannot."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text
from srbench.v1 import recovery_service_pb2 as pb
from srbench_kit import figures

from srbench_cli.tables import cell, pairs, table

SHOWN = 25


def recovery_plan(found: pb.RecoveryPlan) -> RenderableType:
    """The whole plan; of long lists the beginning."""
    parent, counts = found.parent, found.counts
    known = figures.usd(parent.known_spend_picodollars)
    spent = known if parent.spend_complete else f"{known} known, at most {figures.usd(parent.spend_upper_picodollars)}"
    budget = found.new_attempt_budget_picodollars if found.HasField("new_attempt_budget_picodollars") else None
    eligible = found.eligible_cells
    rows = [(one.case_id, one.target_id, one.state, one.reason, _spend(one)) for one in eligible[:SHOWN]]
    parts: list[RenderableType] = [
        pairs(
            [
                ("run", found.parent_run_id),
                ("status", parent.status),
                ("spent", spent),
                ("mode", f"{found.mode}: {found.scope}"),
                ("eligible", f"{counts.eligible} of {counts.total} cells"),
                ("new budget", "none is enforced" if budget is None else figures.usd(budget)),
                ("plan", found.plan_sha256),
            ]
        ),
        Text(),
        table(("case", "target", "state", "reason", "cost so far"), rows, right=("cost so far",)),
    ]
    if len(eligible) > SHOWN:
        parts.append(cell(f"... and {len(eligible) - SHOWN} more; --json shows all"))
    parts += [cell(f"{number} excluded: {why}") for why, number in sorted(counts.excluded_by_reason.items())]
    return Group(*parts)


def _spend(one: pb.EligibleCell) -> str:
    known = figures.usd(one.known_spend_picodollars)
    if one.spend_complete:
        return known
    most = one.spend_upper_picodollars if one.HasField("spend_upper_picodollars") else None
    return f"{known} to {figures.usd(most)}"
