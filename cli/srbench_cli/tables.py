"""Tables for people, one function a kind of resource. Every cell from outside is made harmless first."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Sequence
from typing import Literal

from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import plan_pb2, target_pb2, work_queue_service_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit import figures
from srbench_kit.chat_request import parameters
from srbench_kit.jsonview import enum_name
from srbench_kit.values import from_value, object_of

from srbench_cli.terminal import json_text, many_lines, one_line

# Columns of things that people copy or compare; the others give way where a terminal is narrow.
_WHOLE = frozenset({"run", "call", "id", "job", "status", "state", "created", "frozen", "95 % interval"})
# What a column of words is given at least before a table is shown row by row.
_FOLDED_WIDTH = 14
_STYLES = {
    "completed": "green",
    "done": "green",
    "running": "cyan",
    "queued": "cyan",
    "failed": "red",
    "cancelled": "yellow",
    "waiting": "yellow",
}


def cell(value: object, style: str = "") -> Text:
    """One harmless cell; nothing in it is read as markup."""
    return Text(one_line(str(value), 300), style=style)


def state(name: str | None) -> Text:
    """A status in its colour."""
    return cell(name or "", _STYLES.get(name or "", ""))


class _Table(Table):
    """A table that a narrow terminal shows row by row, a line for each column, rather than with cells cut into shreds."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = [_least_width(column) + 2 for column in self.columns]
        if not self.row_count or sum(widths) <= options.max_width + 2:
            yield from super().__rich_console__(console, options)
            return
        cells = [list(column.cells) for column in self.columns]
        for row in range(self.row_count):
            if row:
                yield Text()
            named = [
                (str(column.header), column_cells[row]) for column, column_cells in zip(self.columns, cells, strict=True)
            ]
            yield pairs([(name, value) for name, value in named if str(value)])


def _least_width(column: Column) -> int:
    """How narrow a column may be: numbers and what people copy are kept whole, other words may fold."""
    longest = max((len(str(item)) for item in column.cells), default=0)
    whole = column.no_wrap or column.justify == "right"
    return max(longest if whole else min(longest, _FOLDED_WIDTH), column.min_width or 0)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = ()) -> Table:
    """A table with `columns`; those named in `right` are numbers."""
    built = _Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold underline")
    for name in columns:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        # Numbers fold rather than lose digits.
        built.add_column(name, justify=justify, overflow="fold", no_wrap=name in _WHOLE, min_width=min(len(name), 7))
    for row in rows:
        built.add_row(*(item if isinstance(item, Text) else cell(item) for item in row))
    return built


def pairs(rows: Iterable[tuple[str, object]]) -> Table:
    """Names and values, one pair a line."""
    built = Table(box=None, show_header=False, pad_edge=False)
    built.add_column(style="dim", no_wrap=True)
    built.add_column(overflow="fold")
    for name, value in rows:
        built.add_row(name, value if isinstance(value, Text) else cell(value))
    return built


def when(stamp: Timestamp) -> str:
    """A time in the reader's zone; empty when there is none."""
    if not stamp.seconds:
        return ""
    found = datetime.datetime.fromtimestamp(stamp.seconds, datetime.UTC).astimezone()
    return found.strftime("%Y-%m-%d %H:%M")


def catalog(found: planner_pb.Catalog) -> RenderableType:
    """The benchmarks with their counts by profile."""
    rows = [
        (item.id, item.title, item.kind, item.weight, item.smoke_count, item.quick_count, item.standard_count,
         item.adapter_version, "yes" if item.available else "not in this build")
        for item in found.benchmarks
    ]  # fmt: skip
    columns = ("id", "title", "kind", "weight", "smoke", "quick", "standard", "adapter", "available")
    totals = ", ".join(f"{profile.id} {profile.total} cases ({profile.split})" for profile in found.profiles)
    return Group(table(columns, rows, right=("weight", "smoke", "quick", "standard")), cell(f"In all: {totals}"))


def targets(found: Iterable[target_pb2.Target]) -> RenderableType:
    """Targets with what they are and how they are paid."""
    rows = [
        (item.id, enum_name(target_pb2.TargetKind.DESCRIPTOR, item.kind) or "", item.model, item.base_url,
         item.api_key_env or "none", ", ".join(sorted(item.prices)) or "none")
        for item in found
    ]  # fmt: skip
    return table(("id", "kind", "model", "address", "key variable", "priced models"), rows)


def datasets(found: Iterable[planner_pb.Dataset]) -> RenderableType:
    """Frozen datasets."""
    rows = [
        (item.id[:12], item.name, item.profile, item.split, item.case_count, ", ".join(item.benchmarks),
         "custom subset" if item.custom_subset else "whole", when(item.create_time))
        for item in found
    ]  # fmt: skip
    columns = ("id", "name", "profile", "split", "cases", "benchmarks", "extent", "frozen")
    return table(columns, rows, right=("cases",))


def dataset(found: planner_pb.Dataset) -> RenderableType:
    """One dataset with its counts and sources."""
    facts = pairs(
        [
            ("id", found.id), ("name", found.name), ("sha256", found.sha256), ("cases", found.case_count),
            ("profile", f"{found.profile} ({found.split}){', custom subset' if found.custom_subset else ''}"),
            ("seed", found.seed), ("selection", found.selection), ("path", found.path),
        ]
    )  # fmt: skip
    rows = [
        (
            item.benchmark,
            found.counts.get(item.benchmark, 0),
            item.url,
            item.revision,
            item.revision_verification,
            item.access_note,
        )
        for item in found.sources
    ]
    return Group(facts, table(("benchmark", "cases", "source", "revision", "verified by", "note"), rows, right=("cases",)))


def cases(found: planner_pb.ListDatasetCasesResponse) -> RenderableType:
    """Questions of a dataset, shortened."""
    rows = [(item.id, item.benchmark, item.category, cell(item.question[:200])) for item in found.cases]
    return Group(
        table(("case", "benchmark", "category", "question"), rows),
        cell(f"{found.total} of {found.dataset_total} cases fit"),
    )


def preparations(found: Iterable[planner_pb.DatasetPreparation]) -> RenderableType:
    """Preparation jobs."""
    rows = [
        (item.id, state(item.status), item.phase, ", ".join(item.request.benchmarks), item.request.profile,
         f"{item.done_count}/{item.total_count}", item.dataset.id[:12], item.error)
        for item in found
    ]  # fmt: skip
    return table(("job", "status", "phase", "benchmarks", "profile", "done", "dataset", "error"), rows)


def claim_sentence(claim: plan_pb2.Claim) -> str:
    """What a plan claims."""
    margin = f"{100 * claim.margin:.4g} points"
    return f"{claim.target_id or 'every candidate'} loses at most {margin} against the strongest single model"


def unknown_spend(gaps: Iterable[plan_pb2.SpendGap]) -> str:
    """That a figure is unknown, and why."""
    reasons = [gap.message for gap in gaps]
    return f"unknown: {'; '.join(reasons)}. The budget holds all the same" if reasons else figures.UNKNOWN


def plan(found: plan_pb2.Plan) -> RenderableType:
    """What a plan would do and cost at most."""
    worst = found.worst_case_cost_picodollars if found.HasField("worst_case_cost_picodollars") else None
    limits = found.limits
    return Group(
        pairs(
            [
                ("plan", found.plan_sha256), ("name", found.name),
                ("mode", f"{found.mode}, {found.profile}, {found.cost_policy}"),
                ("cells", f"{found.total} ({found.case_count} cases, {len(found.targets)} targets)"),
                ("cases", ", ".join(f"{name} {number}" for name, number in sorted(found.case_counts.items()))),
                ("budget", figures.usd(limits.max_cost_picodollars)),
                ("calls", f"{found.most_calls} at most"),
                ("worst case", figures.usd(worst) if worst is not None else unknown_spend(found.worst_case_gaps)),
                ("at once", limits.concurrency), ("output tokens", limits.max_output_tokens),
                ("longest run", figures.clock(limits.max_run_seconds)),
                *(("claim", claim_sentence(claim)) for claim in found.claims),
            ]
        ),
        targets(found.targets),
        cell("No model was called."),
    )  # fmt: skip


def runs(found: Iterable[planner_pb.Run]) -> RenderableType:
    """Runs, newest first."""
    rows = [
        (item.id, state("waiting" if item.waiting_for else item.status),
         f"{item.progress.completed + item.progress.failed}/{item.progress.total}", item.progress.failed,
         when(item.create_time), item.plan.name,
         ", ".join(target.id for target in item.plan.targets))
        for item in found
    ]  # fmt: skip
    columns = ("run", "status", "done", "failed", "created", "name", "targets")
    return table(columns, rows, right=("done", "failed"))


def run(found: planner_pb.Run) -> RenderableType:
    """One run."""
    progress = found.progress
    rows: list[tuple[str, object]] = [
        ("run", found.id), ("status", state("paused" if found.paused else found.status)), ("name", found.plan.name),
        ("owner", found.owner),
        ("plan", found.plan.plan_sha256), ("key", found.idempotency_key),
        ("cells", progress.total), ("completed", progress.completed), ("failed", progress.failed),
        ("running", progress.running), ("at once", found.concurrency),
        ("targets", ", ".join(target.id for target in found.plan.targets)),
        ("created", when(found.create_time)), ("changed", when(found.update_time)),
    ]  # fmt: skip
    if found.waiting_for:
        rows.append(("waiting for", "; ".join(found.waiting_for)))
    if found.reason or found.error:
        rows.append(("reason", f"{found.reason}: {found.error}" if found.error else found.reason))
    return pairs(rows)


def outcomes(found: accounting_pb.ListOutcomesResponse) -> RenderableType:
    """Outcomes of cells."""

    def optional(item: accounting_pb.Outcome, name: str) -> float | None:
        return getattr(item, name) if item.HasField(name) else None  # type: ignore[arg-type]

    rows = [
        (item.case_id, item.target_id, state(item.status),
         {True: "right", False: "wrong", None: "no grade"}[item.correct if item.HasField("correct") else None],
         json_text(from_value(item.answer), indent=None)[:60], figures.seconds(optional(item, "latency_s")),
         figures.seconds(optional(item, "ttft_s")),
         figures.usd(item.cost_picodollars if item.HasField("cost_picodollars") else None),
         f"{item.reason}: {item.error}" if item.error else item.reason)
        for item in found.results
    ]  # fmt: skip
    columns = ("case", "target", "status", "grade", "answer", "latency", "first token", "cost", "reason")
    return Group(table(columns, rows, right=("latency", "first token", "cost")), cell(f"{len(rows)} of {found.total}"))


def calls(found: accounting_pb.ListCallsResponse) -> RenderableType:
    """Calls, with what those in flight are doing."""
    rows = [
        (item.id, item.case_id, item.target_id, call_state(item), item.selected_model or item.model,
         figures.seconds(item.latency_s if item.HasField("latency_s") else None),
         figures.usd(item.cost_picodollars if item.HasField("cost_picodollars") else None))
        for item in found.calls
    ]  # fmt: skip
    columns = ("call", "case", "target", "standing", "model", "latency", "cost")
    return Group(table(columns, rows, right=("latency", "cost")), cell(f"{len(rows)} of {found.total}"))


def call_state(found: accounting_pb.Call) -> str:
    """How a call stands: what it is doing, or how it ended and why; its role where it is no subject's."""
    text = enum_name(accounting_pb.CallStatus.DESCRIPTOR, found.status) or ""
    if found.HasField("activity"):
        text = f"{found.activity.phase}, {found.activity.received_bytes} bytes"
    if found.reason:
        text += f": {found.reason}"
    role = enum_name(accounting_pb.CallRole.DESCRIPTOR, found.role)
    return text if role in (None, "subject") else f"{role}, {text}"


def call(found: accounting_pb.Call) -> RenderableType:
    """One call with its texts."""
    usage = found.usage
    buckets = [
        f"{name.removesuffix('_tokens')} {figures.count(getattr(usage, name) if usage.HasField(name) else None)}"
        for name in ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")
    ]
    parts: list[RenderableType] = [
        pairs(
            [
                ("call", found.id), ("case", found.case_id), ("target", found.target_id),
                ("status", state(enum_name(accounting_pb.CallStatus.DESCRIPTOR, found.status))),
                ("reason", f"{found.reason}: {found.error}" if found.error else found.reason),
                ("model", found.model), ("selected", found.selected_model), ("decision", found.decision),
                ("finish", found.finish_reason), ("tokens", ", ".join(buckets)),
                ("cost", _call_cost(found)),
                ("latency", figures.seconds(found.latency_s if found.HasField("latency_s") else None)),
                ("first token", figures.seconds(found.ttft_s if found.HasField("ttft_s") else None)),
                ("settings", _settings(found)),
                ("evidence", found.evidence_error or found.evidence_sha256 or "none"),
                *([("settled", _settlement(found.settlement))] if found.HasField("settlement") else []),
            ]
        )
    ]  # fmt: skip
    for name, text in (("reasoning", found.reasoning), ("final", found.final), ("refusal", found.refusal)):
        if text:
            parts += [Text(f"\n{name}", style="bold"), Text(many_lines(text))]
    return Group(*parts)


def _call_cost(found: accounting_pb.Call) -> str:
    """The cost; where it is unknown, what it lies between."""
    if found.HasField("cost_picodollars"):
        return figures.usd(found.cost_picodollars)
    if not found.HasField("cost_lower_picodollars") or not found.HasField("cost_upper_picodollars"):
        return figures.UNKNOWN
    least, most = figures.usd(found.cost_lower_picodollars), figures.usd(found.cost_upper_picodollars)
    return f"{figures.UNKNOWN}, from {least} to {most}"


def _settings(found: accounting_pb.Call) -> str:
    """What the plan and the target set for it."""
    frozen = object_of(found.request)
    parts = [frozen.get(name) for name in ("sampling", "request_params")]
    merged = parameters(*(part if isinstance(part, dict) else {} for part in parts))
    return ", ".join(f"{name} {json.dumps(value)}" for name, value in merged.items())


def _settlement(found: accounting_pb.CallSettlement) -> str:
    """What an operator said of a call."""
    verdict = enum_name(accounting_pb.SettlementVerdict.DESCRIPTOR, found.verdict) or ""
    cost = figures.usd(found.cost_picodollars if found.HasField("cost_picodollars") else None)
    note = f" ({found.note})" if found.note else ""
    return f"{verdict.replace('_', ' ')}, cost {cost}, by {found.actor}{note}"


def events(found: planner_pb.ListRunEventsResponse) -> RenderableType:
    """What happened to a run."""
    rows = [
        (item.seq, when(item.create_time), item.type, json_text(from_value(item.data), indent=None))
        for item in found.events
    ]
    return table(("seq", "when", "event", "facts"), rows, right=("seq",))


def cells(found: planner_pb.ListCellsResponse) -> RenderableType:
    """Cells in dispatch order."""
    rows = [
        (
            item.cell,
            item.case_id,
            item.target_id,
            state(enum_name(work_queue_service_pb2.CellState.DESCRIPTOR, item.state)),
            item.reason,
        )
        for item in found.cells
    ]
    return table(("cell", "case", "target", "state", "reason"), rows, right=("cell",))
