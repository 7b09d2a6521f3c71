"""A run's report as a page."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.timestamp_pb2 import Timestamp
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1 import report_pb2 as pb
from srbench_kit import figures

from srbench_gateway.paper import rows
from srbench_gateway.paper.markup import Column, Html, document, facts, section, sentences, table, tag, text

_MODES = {"live": "Evaluation", "preview": "Route preview", "replay": "Offline estimate"}
_NOTES = {
    "live": "Accuracy is over every planned cell: one that failed or has no answer counts as not right. Intervals are 95 % "
    "Wilson intervals. Costs are tokens at the declared prices. What is unknown is called unknown, never zero.",
    "preview": "No answer was generated, so there is no accuracy: the page says which models the router would choose.",
    "replay": "Saved answers of single models, put together as a preview routed them. Every figure is an estimate.",
}


def page(run: planner.Run, report: pb.Report) -> str:
    """The page of one run."""
    title = run.plan.name or run.id
    return document(
        title,
        tag("header", (tag("h1", text(title)), tag("p", text(_lead(run, report)), "soft"))),
        tag("p", text(_NOTES.get(report.mode, _NOTES["live"]))),
        *_figures(report),
        section("Failures by reason", rows.failures(report.summary.targets)),
        section("Routing", rows.routing(report.summary.targets)),
        section("What these figures do not say", sentences(report.limitations)),
        section("What was evaluated", _identity(run, report)),
    )


def moment(time: Timestamp) -> str:
    """A point in time, in UTC, to the second."""
    return f"{time.ToDatetime():%Y-%m-%d %H:%M:%S} UTC"


def _lead(run: planner.Run, report: pb.Report) -> str:
    ended = "" if run.status in ("queued", "running") else f" to {moment(run.update_time)}"
    profile = f", {report.provenance.profile}" if report.provenance.profile else ""
    return f"{_MODES.get(report.mode, report.mode)}{profile}: {run.status}, {moment(run.create_time)}{ended}"


def _figures(report: pb.Report) -> Iterable[Html]:
    targets = report.summary.targets
    if report.mode == "preview":
        yield section("Targets", _planned(targets))
    elif report.mode == "replay":
        yield section("Estimated, not measured", _estimates(targets))
    else:
        routers = {profile.id for profile in report.provenance.target_profiles if profile.kind == "mom"}
        yield section("Targets", rows.targets(targets, routers))
        yield section("By benchmark", rows.benchmarks(report.benchmarks))
        yield section("Tokens and spend", rows.spend(targets))
    if report.HasField("judging"):
        judging = report.judging
        by = f"By the labels of {judging.auditor}. Every other figure stands as judged." if judging.audited else ""
        yield section("How well the judges judge", tag("p", text(by)), rows.corrected(judging), rows.agreement(judging))


def _planned(targets: Iterable[pb.Metrics]) -> Html:
    heads = [Column("Target"), Column("Questions", True), Column("Failures", True)]
    return table(heads, ([text(row.id), text(row.total), text(row.failed)] for row in targets))


def _estimates(targets: Iterable[pb.Metrics]) -> Html:
    heads = [Column("Target"), Column("Estimated accuracy, 95 % interval"), Column("Estimated cost", True)]
    return table(
        heads,
        (
            [
                text(row.id),
                rows.share(row.estimated_accuracy, row.estimated_accuracy_ci95)
                if row.HasField("estimated_accuracy")
                else text(figures.UNKNOWN),
                text(rows.usd(row, "estimated_cost_picodollars")),
            ]
            for row in targets
        ),
    )


def _identity(run: planner.Run, report: pb.Report) -> Html:
    origin = report.provenance
    models = ", ".join(f"{profile.id} = {profile.model} ({profile.kind})" for profile in origin.target_profiles)
    adapters = ", ".join(f"{name} {version}" for name, version in sorted(origin.adapter_versions.items()))
    return facts(
        [
            ("Run", run.id),
            ("Targets", models),
            ("Plan SHA-256", origin.plan_sha256),
            ("Cases SHA-256", origin.case_sha256),
            ("Seed", origin.seed),
            ("Adapters", adapters),
            ("Cost policy", report.cost_policy),
            ("The same figures", f"sr-bench report {run.id}"),
        ]
    )
