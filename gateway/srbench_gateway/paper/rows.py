"""Figures of a report as tables of a page."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from google.protobuf.message import Message
from srbench.v1 import judging_pb2
from srbench.v1 import report_pb2 as pb
from srbench_kit import figures

from srbench_gateway.paper.markup import Column, Html, interval, table, text

_NUMBERS = {
    "Right / planned", "Macro accuracy", "Failures", "Cost", "Latency p50", "p95", "First token p50", "Calls",
    "Fresh input", "Cached input", "Cache write", "Output", "Own calls", "Judges and simulators", "Total spend",
    "As judged", "Labelled", "Agree with the judge", "Judged twice", "Only one verdict", "Agree", "Cohen's kappa",
}  # fmt: skip


def columns(*titles: str) -> list[Column]:
    return [Column(title, title in _NUMBERS) for title in titles]


def percent(message: Message, name: str) -> str:
    return figures.percent(getattr(message, name) if message.HasField(name) else None)


def usd(message: Message, name: str) -> str:
    return figures.usd(getattr(message, name) if message.HasField(name) else None)


def seconds(message: Message, name: str) -> str:
    return figures.seconds(getattr(message, name) if message.HasField(name) else None)


def share(value: float, ends: Sequence[float]) -> Html:
    """A share, drawn with its interval, and both in digits."""
    digits = f"{figures.percent(value)} {figures.interval(tuple(ends))}"
    return Html(f"{text(digits)}{interval(value, ends)}")


def accuracy(row: pb.Metrics) -> Html:
    if not row.HasField("accuracy"):
        return text(figures.UNKNOWN)
    return share(row.accuracy, row.accuracy_ci95)


def targets(found: Iterable[pb.Metrics], routers: Container[str] = ()) -> Html:
    """What each target got right, what it cost and how long it took."""
    shown = columns(
        *("Target", "Accuracy, 95 % interval", "Right / planned", "Macro accuracy", "Failures", "Cost"),
        *("Latency p50", "p95", "First token p50"),
    )
    return table(shown, (_target(row, row.id in routers) for row in found))


def _target(row: pb.Metrics, router: bool) -> list[Html]:
    right = f"{row.correct} / {row.total}" if row.HasField("correct") else figures.UNKNOWN
    words = (right, percent(row, "macro_accuracy"), row.failed, usd(row, "cost_picodollars"))
    times = (seconds(row, name) for name in ("latency_p50_s", "latency_p95_s", "ttft_p50_s"))
    return [text(f"{row.id} (router)" if router else row.id), accuracy(row), *map(text, (*words, *times))]


def benchmarks(rows: Iterable[pb.Metrics]) -> Html:
    shown = columns("Benchmark", "Target", "Accuracy, 95 % interval", "Right / planned", "Failures", "Cost")
    return table(
        shown,
        (
            [
                text(row.benchmark),
                text(row.target_id),
                accuracy(row),
                text(f"{row.correct} / {row.total}" if row.HasField("correct") else figures.UNKNOWN),
                text(row.failed),
                text(usd(row, "cost_picodollars")),
            ]
            for row in rows
        ),
    )


def spend(rows: Iterable[pb.Metrics]) -> Html:
    buckets = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")
    costs = ("cost_picodollars", "evaluation_cost_picodollars", "total_spend_picodollars")
    shown = columns(
        *("Target", "Calls", "Fresh input", "Cached input", "Cache write", "Output"),
        *("Own calls", "Judges and simulators", "Total spend"),
    )

    def tokens(row: pb.Metrics, name: str) -> str:
        has = row.HasField("tokens") and row.tokens.HasField(name)  # type: ignore[arg-type]
        return f"{getattr(row.tokens, name):,}" if has else figures.UNKNOWN

    return table(
        shown,
        (
            [
                text(row.id),
                text(figures.count(row.call_count if row.HasField("call_count") else None)),
                *(text(tokens(row, name)) for name in buckets),
                *(text(usd(row, name)) for name in costs),
            ]
            for row in rows
        ),
    )


def failures(rows: Iterable[pb.Metrics]) -> Html:
    return table(
        [Column("Reason"), Column("Target"), Column("Failures", True)],
        ([text(reason), text(row.id), text(n)] for row in rows for reason, n in sorted(row.failure_reasons.items())),
    )


def routing(rows: Iterable[pb.Metrics]) -> Html:
    """Which models answered, and by which decisions, of targets that have any choice."""
    chosen = [row for row in rows if row.decisions or len(row.selected_models) > 1]
    counted = [
        (row.id, what, name, n)
        for row in chosen
        for what, counts in (("model", row.selected_models), ("decision", row.decisions))
        for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    heads = [Column("Target"), Column("What"), Column("Name"), Column("Requests", True)]
    return table(heads, ([text(part) for part in row] for row in counted))


def corrected(judging: judging_pb2.Judging) -> Html:
    """Accuracies corrected by people's labels: of all benchmarks, and of each judged one."""
    shown = columns("Target", "Benchmark", "As judged", "Corrected, 95 % interval", "Labelled", "Agree with the judge")
    whole = [_corrected("all", row.accuracy, row) for row in judging.headlines]
    own = [_corrected(row.benchmark, row.judged_accuracy, row) for row in judging.audited]
    return table(shown, (*whole, *own))


def _corrected(scope: str, judged: float, row: judging_pb2.AuditedAccuracy | judging_pb2.AuditedHeadline) -> list[Html]:
    ends = (row.lower, row.upper) if row.HasField("lower") else ()
    shown = share(row.corrected_accuracy, ends) if row.HasField("corrected_accuracy") else text(figures.UNKNOWN)
    labels = (f"{row.audited_count} / {row.graded_count}", f"{row.agreed_count} / {row.audited_count}")
    return [text(row.target_id), text(scope), text(figures.percent(judged)), shown, *map(text, labels)]


def agreement(judging: judging_pb2.Judging) -> Html:
    shown = columns("Benchmark", "Judged twice", "Only one verdict", "Agree", "Cohen's kappa")
    return table(
        shown,
        (
            [
                text(row.benchmark),
                text(row.pair_count),
                text(row.unpaired_count),
                text(percent(row, "observed")),
                text(f"{row.kappa:.3f}" if row.HasField("kappa") else figures.UNKNOWN),
            ]
            for row in judging.agreements
        ),
    )
