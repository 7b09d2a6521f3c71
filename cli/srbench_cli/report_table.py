"""A report for people: one row a target, one table by benchmark, and what the figures say in one plain sentence each."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from rich.console import Group, RenderableType
from rich.text import Text
from srbench.v1 import report_pb2 as pb
from srbench_kit import figures
from srbench_kit.values import object_of

from srbench_cli import judging_table, loop_tables
from srbench_cli.tables import cell, claim_sentence, pairs, table

_QUALITY = ("target", "accuracy", "95 % interval", "macro", "cost", "failed")
_SIZES = ("target", "tokens in", "cached", "out", "latency p50", "p95", "TTFT p50", "p95 ")


_OTHER_MODES = {"preview": loop_tables.preview_report, "replay": loop_tables.replay_report}


def report(found: pb.Report) -> RenderableType:
    """The whole report, narrow enough for a terminal of 80 columns."""
    if found.mode in _OTHER_MODES:
        return _OTHER_MODES[found.mode](found)
    routers = _of_kind(found, "mom")
    rows = found.summary.targets
    parts: list[RenderableType] = [
        pairs(_heading(found)),
        Text(),
        table(
            _QUALITY, [_quality_row(row, row.id in routers) for row in rows], right=("accuracy", "macro", "cost", "failed")
        ),
        Text(),
        table(_SIZES, [_size_row(row) for row in rows], right=_SIZES[1:]),
    ]
    if len({row.benchmark for row in found.benchmarks}) > 1:
        columns = ("benchmark", "target", "accuracy", "95 % interval", "cost", "failed")
        parts.append(Text())
        parts.append(
            table(columns, [_benchmark_row(row) for row in found.benchmarks], right=("accuracy", "cost", "failed"))
        )
    if found.HasField("judging"):
        parts += [Text(), *judging_table.parts(found.judging)]
    parts.append(Text())
    parts += [cell(sentence) for sentence in sentences(found)]
    parts += [cell(sentence, "yellow") for sentence in reservations(found)]
    return Group(*parts)


def _heading(found: pb.Report) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = [
        ("run", found.run_id),
        ("status", found.status),
        ("mode", f"{found.mode}, {found.cost_policy}"),
    ]
    if found.child_attempts:
        merged = object_of(found.recovery).get("merged") is True
        named = ", ".join(f"{child.id} ({child.status})" for child in found.child_attempts)
        rows.append(("merged with" if merged else "recovered by", named))
    rows += [("claim", f"{claim_sentence(claim)}; compare judges it") for claim in found.claims]
    return rows


def _of_kind(found: pb.Report, kind: str) -> frozenset[str]:
    return frozenset(profile.id for profile in found.provenance.target_profiles if profile.kind == kind)


def _quality_row(row: pb.Metrics, is_router: bool) -> tuple[object, ...]:
    macro = row.macro_accuracy if row.HasField("macro_accuracy") else None
    name = f"{row.id} (router)" if is_router else row.id
    return name, _right(row), figures.interval(tuple(row.accuracy_ci95)), figures.percent(macro), _cost(row), row.failed


def _size_row(row: pb.Metrics) -> tuple[object, ...]:
    tokens = row.tokens
    known = row.HasField("tokens")
    return (
        row.id,
        figures.count(tokens.input_tokens if known and tokens.HasField("input_tokens") else None),
        figures.count(tokens.cached_input_tokens if known and tokens.HasField("cached_input_tokens") else None),
        figures.count(tokens.output_tokens if known and tokens.HasField("output_tokens") else None),
        figures.seconds(row.latency_p50_s if row.HasField("latency_p50_s") else None),
        figures.seconds(row.latency_p95_s if row.HasField("latency_p95_s") else None),
        figures.seconds(row.ttft_p50_s if row.HasField("ttft_p50_s") else None),
        figures.seconds(row.ttft_p95_s if row.HasField("ttft_p95_s") else None),
    )


def _benchmark_row(row: pb.Metrics) -> tuple[object, ...]:
    return row.benchmark, row.target_id, _right(row), figures.interval(tuple(row.accuracy_ci95)), _cost(row), row.failed


def _accuracy(row: pb.Metrics) -> str:
    return figures.percent(row.accuracy if row.HasField("accuracy") else None)


def _right(row: pb.Metrics) -> str:
    return f"{_accuracy(row)} ({row.correct}/{row.total})" if row.HasField("accuracy") else figures.UNKNOWN


def _cost(row: pb.Metrics) -> str:
    return figures.usd(row.cost_picodollars if row.HasField("cost_picodollars") else None)


def reservations(found: pb.Report) -> Iterable[str]:
    """What is missing: costs that are unknown and why, cells that failed and why, the first failure."""
    for row in found.summary.targets:
        if not row.HasField("cost_picodollars"):
            known = f"; {figures.usd(row.known_cost_picodollars)} of it is known" if row.known_cost_picodollars else ""
            most = (
                f"; at most {figures.usd(row.spend_upper_picodollars)}" if row.HasField("spend_upper_picodollars") else ""
            )
            yield f"The cost of {row.id} is unknown: {_why_unknown(row, found.cost_policy)}{known}{most}."
        yield from _without_answer(row)
    if found.HasField("failure"):
        failure = found.failure
        reason = failure.reason or "unknown"
        if failure.case_id:
            yield f"The first failure was {reason}, at {failure.case_id} on {failure.target_id}."
        else:
            yield f"The run ended as {found.status}; no cell failed; reason: {reason}."


def _without_answer(row: pb.Metrics) -> Iterable[str]:
    reasons = ", ".join(f"{name} {number}" for name, number in sorted(row.failure_reasons.items()))
    parts = []
    if row.failed:
        parts.append(f"{row.failed} of {row.total} cells failed{f' ({reasons})' if reasons else ''}")
    if row.pending:
        parts.append(f"{row.pending} of {row.total} cells {'has' if row.pending == 1 else 'have'} no end")
    if parts:
        yield f"{row.id}: {', '.join(parts)}."


def _why_unknown(row: pb.Metrics, policy: str) -> str:
    if row.request_count < row.total:
        # A cell may have made several requests, so that more of them may be without any.
        return f"at least {row.total - row.request_count} of {row.total} cells were never sent"
    if not row.HasField("tokens"):
        return _why_no_tokens(row)
    if policy == "capability_only":
        return "no prices were asked for"
    return "some calls have no price"


def _why_no_tokens(row: pb.Metrics) -> str:
    if row.HasField("cache_neutral_cost_picodollars"):
        # Every prompt and every answer is counted; what a cache served of the prompts is not.
        without = figures.usd(row.cache_neutral_cost_picodollars)
        return f"the endpoint does not say what a cache served of its prompts (had none done so: {without})"
    usage = "some calls have no usage, or not all of it"
    return usage if row.completed == row.total else f"some cells were never sent, or {usage}"


def strongest_single(found: pb.Report) -> pb.Metrics | None:
    """The single model that a comparison starts from, with the highest weighted quality; among equals the cheaper, then the
    first. `None` without one."""
    singles = _of_kind(found, "single")
    rows = [row for row in found.summary.targets if row.id in singles and row.HasField("accuracy")]

    def rank(row: pb.Metrics) -> tuple[float, bool, int]:
        return (-_quality(row), not row.HasField("cost_picodollars"), row.cost_picodollars)

    return min(rows, key=rank, default=None)


def _quality(row: pb.Metrics) -> float:
    return row.macro_accuracy if row.HasField("macro_accuracy") else row.accuracy


def sentences(found: pb.Report) -> Iterable[str]:
    """What the figures say: the strongest single model, and each router beside it. No test is made here."""
    best = strongest_single(found)
    if best is None:
        return
    several = len({row.benchmark for row in found.benchmarks}) > 1
    macro = f", macro {figures.percent(_quality(best))}" if several else ""
    right = f"{best.correct} of {best.total} right ({_accuracy(best)}){macro}"
    yield f"Strongest single model: {best.id}, {right}, cost {_cost(best)}."
    routers = _of_kind(found, "mom")
    for row in found.summary.targets:
        if row.id in routers and row.HasField("accuracy"):
            yield _beside(row, best, several)


def _beside(router: pb.Metrics, best: pb.Metrics, several: bool) -> str:
    how = _points(router.accuracy - best.accuracy, "as good as")
    macro = f" (macro: {_points(_quality(router) - _quality(best), 'no difference')})" if several else ""
    right = f"{router.correct} of {router.total} right"
    text = f"Router {router.id}: {right}, {how} {best.id}{macro}, cost {_cost(router)}"
    if router.HasField("cost_picodollars") and best.HasField("cost_picodollars") and best.cost_picodollars:
        part = Decimal(router.cost_picodollars) / Decimal(best.cost_picodollars) * 100
        text += f" ({part:.0f} % of {best.id}'s)"
    return text + ". These are the observed figures; no test of the difference was made."


def _points(difference: float, none: str) -> str:
    points = 100 * difference
    return none if abs(points) < 0.05 else f"{abs(points):.1f} points {'above' if points > 0 else 'below'}"
