"""A report for people: one row a target, one table by benchmark, and what the figures say in one plain sentence each."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from rich.console import Group, RenderableType
from rich.text import Text
from srbench.v1 import report_pb2 as pb

from srbench_cli import figures
from srbench_cli.tables import cell, pairs, table

_COLUMNS = ("target", "accuracy", "95 % interval", "macro", "cost", "tokens in / cached / out", "latency p50 / p95",
            "first token p50 / p95", "failed")  # fmt: skip


def report(found: pb.Report) -> RenderableType:
    """The whole report."""
    kinds = {profile.id: profile.kind for profile in found.provenance.target_profiles}
    parts: list[RenderableType] = [
        pairs([("run", found.run_id), ("status", found.status), ("mode", f"{found.mode}, {found.cost_policy}")]),
        table(_COLUMNS, [_target_row(row, kinds, found.cost_policy) for row in found.summary.targets],
              right=("accuracy", "macro", "latency p50 / p95", "first token p50 / p95", "failed")),
    ]  # fmt: skip
    if len({row.benchmark for row in found.benchmarks}) > 1:
        rows = [
            (row.benchmark, row.target_id, _right(row), figures.interval(tuple(row.accuracy_ci95)),
             cost(row, found.cost_policy), row.failed)
            for row in found.benchmarks
        ]  # fmt: skip
        columns = ("benchmark", "target", "accuracy", "95 % interval", "cost", "failed")
        parts.append(table(columns, rows, right=("accuracy", "failed")))
    parts += [cell(sentence) for sentence in sentences(found)]
    if found.HasField("failure"):
        parts.append(
            cell(
                f"First failure: {found.failure.reason} at {found.failure.case_id} on {found.failure.target_id}.", "yellow"
            )
        )
    return Group(*parts)


def _target_row(row: pb.Metrics, kinds: dict[str, str], policy: str) -> tuple[object, ...]:
    return (
        Text(f"{row.id} (router)") if kinds.get(row.id) == "mom" else row.id,
        _right(row),
        figures.interval(tuple(row.accuracy_ci95)),
        figures.percent(row.macro_accuracy if row.HasField("macro_accuracy") else None),
        cost(row, policy),
        _tokens(row),
        _two(
            row.latency_p50_s if row.HasField("latency_p50_s") else None,
            row.latency_p95_s if row.HasField("latency_p95_s") else None,
        ),
        _two(
            row.ttft_p50_s if row.HasField("ttft_p50_s") else None, row.ttft_p95_s if row.HasField("ttft_p95_s") else None
        ),
        _failures(row),
    )


def _accuracy(row: pb.Metrics) -> str:
    return figures.percent(row.accuracy if row.HasField("accuracy") else None)


def _right(row: pb.Metrics) -> str:
    return f"{_accuracy(row)} ({row.correct}/{row.total})" if row.HasField("accuracy") else figures.UNKNOWN


def _two(middle: float | None, high: float | None) -> str:
    return figures.UNKNOWN if middle is None else f"{figures.seconds(middle)} / {figures.seconds(high)}"


def _failures(row: pb.Metrics) -> str:
    if not row.failed and not row.pending:
        return "0"
    reasons = ", ".join(f"{name} {number}" for name, number in sorted(row.failure_reasons.items()))
    pending = f", {row.pending} without an end" if row.pending else ""
    return f"{row.failed}{f' ({reasons})' if reasons else ''}{pending}"


def _tokens(row: pb.Metrics) -> str:
    if not row.HasField("tokens"):
        return figures.UNKNOWN
    tokens = row.tokens
    shown = [
        figures.count(getattr(tokens, name) if tokens.HasField(name) else None)
        for name in ("input_tokens", "cached_input_tokens", "output_tokens")
    ]
    return " / ".join(shown)


def cost(row: pb.Metrics, policy: str) -> str:
    """The cost of a row; where it is unknown, why, and what is known of it."""
    if row.HasField("cost_picodollars"):
        return figures.usd(row.cost_picodollars)
    known = f", {figures.usd(row.known_cost_picodollars)} known" if row.known_cost_picodollars else ""
    return f"{figures.UNKNOWN}: {_why_unknown(row, policy)}{known}"


def _why_unknown(row: pb.Metrics, policy: str) -> str:
    if row.request_count < row.total:
        return f"{row.total - row.request_count} of {row.total} cells were never sent"
    if not row.HasField("tokens"):
        return "some calls have no usage"
    if policy == "capability_only":
        return "no prices were asked for"
    return "some calls have no price"


def strongest_single(found: pb.Report) -> pb.Metrics | None:
    """The single model with the highest accuracy; among equals the cheaper, then the first. `None` without one."""
    singles = {profile.id for profile in found.provenance.target_profiles if profile.kind == "single"}
    rows = [row for row in found.summary.targets if row.id in singles and row.HasField("accuracy")]

    def rank(row: pb.Metrics) -> tuple[float, bool, int]:
        return (-row.accuracy, not row.HasField("cost_picodollars"), row.cost_picodollars)

    return min(rows, key=rank, default=None)


def sentences(found: pb.Report) -> Iterable[str]:
    """What the figures say: the strongest single model, and each router beside it. No test is made here."""
    best = strongest_single(found)
    if best is None:
        return
    right = f"{best.correct} of {best.total} right ({_accuracy(best)})"
    yield f"Strongest single model: {best.id}, {right}, cost {_short_cost(best)}."
    routers = {profile.id for profile in found.provenance.target_profiles if profile.kind == "mom"}
    for row in found.summary.targets:
        if row.id in routers and row.HasField("accuracy"):
            yield _beside(row, best)


def _beside(router: pb.Metrics, best: pb.Metrics) -> str:
    points = 100 * (router.accuracy - best.accuracy)
    how = "as often right as" if abs(points) < 0.05 else f"{abs(points):.1f} points {'above' if points > 0 else 'below'}"
    text = f"Router {router.id}: {router.correct} of {router.total} right, {how} {best.id}, cost {_short_cost(router)}"
    if router.HasField("cost_picodollars") and best.HasField("cost_picodollars") and best.cost_picodollars:
        part = Decimal(router.cost_picodollars) / Decimal(best.cost_picodollars) * 100
        text += f" ({part:.0f} % of {best.id}'s)"
    return text + ". These are the observed figures; no test of the difference was made."


def _short_cost(row: pb.Metrics) -> str:
    return figures.usd(row.cost_picodollars) if row.HasField("cost_picodollars") else figures.UNKNOWN
