"""What a verification found, for people."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from srbench_cli.tables import cell, pairs, table

SHOWN = 50


def verification(found: Any, *, show_all: bool) -> RenderableType:
    """The verdict first, then what is damaged, then each run with what differs or, when asked, with every number."""
    verdict = "every number is equal" if found["equal"] else "NOT every number is equal"
    if found["problems"]:
        verdict = "the bundle is DAMAGED"
    rows = [("bundle", found["bundle"]), ("verdict", cell(verdict, "green" if found["equal"] else "bold red"))]
    rows += [("root", found["root_sha256"] or "none"), ("signature", found["signature"] or "none")]
    if found["signed_by"]:
        rows.append(("signed by", found["signed_by"]))
    parts: list[RenderableType] = [pairs(rows)]
    if found["problems"]:
        damaged = [(problem["member"], problem["fault"]) for problem in found["problems"]]
        parts += [Text(), table(("damaged", "how"), damaged[:SHOWN])]
    for run in found["runs"]:
        parts += [Text(), *_run(run, show_all)]
    compared = found["comparison_values"]
    if compared:
        equal = sum(row["equal"] for row in compared)
        parts += [Text(), pairs([("comparison", f"{equal} of {len(compared)} values equal")])]
        parts += _values([row for row in compared if show_all or not row["equal"]])
    return Group(*parts)


def _values(rows: Any) -> list[RenderableType]:
    shown = [
        (row["name"], row["recorded"], row["derived"], "equal" if row["equal"] else "DIFFERS", row["rests_on"])
        for row in rows
    ]
    return [table(("number", "recorded", "derived", "verdict", "rests on"), shown)] if shown else []


def _run(run: Any, show_all: bool) -> list[RenderableType]:
    compared = sum(values["compared"] for values in run["call_values"].values())
    equal = sum(values["equal"] for values in run["call_values"].values())
    rests = ", ".join(f"{count} on {name}" for name, count in run["report_values_rest_on"].items())
    parts: list[RenderableType] = [
        pairs(
            [
                ("run", run["run_id"]),
                ("raw streams", f"{run['streams_read']} read again, of {run['call_count']} calls"),
                ("calls", f"{equal} of {compared} values equal"),
                ("reports", f"{run['report_values_equal']} of {run['report_values_compared']} values equal"),
                ("they rest", rests),
                *([("not derived", run["unread"])] if run["unread"] else []),
                *([("grades", _grades(run["grades"]))] if run["grades"] else []),
            ]
        )
    ]
    differing = [(row["call_id"], row["name"], row["recorded"], row["derived"]) for row in run["differing_call_values"]]
    if differing:
        parts.append(table(("call", "value", "recorded", "derived"), differing[:SHOWN]))
    return parts + _values([row for row in run["report_values"] if show_all or not row["equal"]])


def _grades(grades: Any) -> str:
    return f"{grades['equal']} of {grades['compared']} made again are equal; {grades['not_made_again']} rest on the record"
