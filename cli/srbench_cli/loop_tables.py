"""Tables for people about the loop: previews, replays, experiments, recipes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text
from srbench.v1 import experiment_pb2, recipe_pb2, replay_pb2, report_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit import figures

from srbench_cli.tables import cell, pairs, runs, state, table, when

MAX_REASONS = 40


def preview_report(found: report_pb2.Report) -> RenderableType:
    """What routers would do, by target; no figure of quality."""
    rows = [
        (row.id, f"{row.completed}/{row.total}", row.failed, _shares(row.selected_models), _shares(row.decisions),
         _shares(row.selection_statuses))
        for row in found.summary.targets
    ]  # fmt: skip
    columns = ("router", "answered", "failed", "models", "decisions", "selection")
    parts: list[RenderableType] = [
        pairs([("run", found.run_id), ("status", found.status), ("mode", found.mode)]),
        Text(),
        table(columns, rows, right=("answered", "failed")),
        Text(),
        cell("A preview: it shows what the router would choose. No model was called and nothing was graded."),
    ]
    for row in found.summary.targets:
        for reason, count in sorted(row.failure_reasons.items()):
            parts.append(cell(f"{row.id}: {count} cells failed by {reason}.", "yellow"))
    return Group(*parts)


def replay_report(found: report_pb2.Report) -> RenderableType:
    """Estimates, each called one."""
    rows = [_estimates(row) for row in found.summary.targets]
    columns = ("router", "est. accuracy", "95 % interval", "est. macro", "est. cost", "est. p50", "models")
    return Group(
        pairs([("run", found.run_id), ("status", found.status), ("mode", found.mode)]),
        Text(),
        table(columns, rows, right=("est. accuracy", "est. macro", "est. cost", "est. p50")),
        Text(),
        cell("Every figure is an estimate: saved single answers, put together by what a preview selected."),
        cell("Nothing was generated and nothing was spent. Only a live run shows what the router really does."),
    )


def replay_options(found: planner_pb.ListReplayOptionsResponse) -> RenderableType:
    """Baselines, or the previews that fit one."""
    listed = found.options if found.HasField("baseline") else found.baselines
    if listed:
        return runs(list(listed))
    return cell(f"nothing fits: {found.empty_reason.replace('_', ' ') or 'look at the next page'}", "yellow")


def replay_reasons(found: replay_pb2.ReplayCheck) -> RenderableType:
    """Everything that speaks against a replay: how often each, then case by case."""
    counts = Counter(item.code for item in found.reasons)
    shown = found.reasons[:MAX_REASONS]
    rows = [(item.code, item.case_id or "-", item.target_id or "-", item.message) for item in shown]
    parts: list[RenderableType] = [
        table(("reason", "cases"), sorted(counts.items()), right=("cases",)),
        Text(),
        table(("reason", "case", "target", "why"), rows),
    ]
    if len(found.reasons) > len(shown):
        parts.append(cell(f"and {len(found.reasons) - len(shown)} more; --json prints all"))
    return Group(*parts)


def experiments(found: Iterable[experiment_pb2.Experiment]) -> RenderableType:
    """Experiments."""
    rows = [(item.id, item.name, item.run_count, when(item.create_time)) for item in found]
    return table(("id", "name", "runs", "created"), rows, right=("runs",))


def members(found: planner_pb.ListExperimentRunsResponse) -> RenderableType:
    """An experiment with its runs."""
    about = found.experiment
    facts = pairs([("id", about.id), ("name", about.name), ("runs", about.run_count)])
    return Group(facts, Text(), member_rows(found.members))


def member_rows(found: Sequence[planner_pb.ExperimentMember]) -> RenderableType:
    """Runs with their roles."""
    rows = [
        (item.run.id, item.role, state(item.run.status), item.run.plan.name, item.hypothesis or "-", when(item.create_time))
        for item in found
    ]
    return table(("run", "role", "status", "name", "hypothesis", "linked"), rows)


def deleted(found: experiment_pb2.DeletedExperiment) -> RenderableType:
    """What a deletion left."""
    return cell(f"deleted {found.id} ({found.name}); its {found.run_count} runs are kept")


def recipes(found: Iterable[recipe_pb2.RunRecipe]) -> RenderableType:
    """The routers of a run and their recipes."""
    rows = [
        (item.target_id, item.status, item.reason or "-", item.config_hash[:12] or "-",
         item.recipe.recipe_sha256[:12] or "-", when(item.recipe.capture_time), len(item.recipe.redactions))
        for item in found
    ]  # fmt: skip
    columns = ("router", "recipe", "why not", "configuration", "sha256", "captured", "taken out")
    return table(columns, rows, right=("taken out",))


def _estimates(row: report_pb2.Metrics) -> tuple[object, ...]:
    accuracy = row.estimated_accuracy if row.HasField("estimated_accuracy") else None
    macro = row.estimated_macro_accuracy if row.HasField("estimated_macro_accuracy") else None
    cost = row.estimated_cost_picodollars if row.HasField("estimated_cost_picodollars") else None
    latency = row.estimated_latency_p50_s if row.HasField("estimated_latency_p50_s") else None
    right = f" ({row.estimated_correct}/{row.total})" if row.HasField("estimated_correct") else ""
    return (
        row.id,
        figures.percent(accuracy) + right,
        figures.interval(tuple(row.estimated_accuracy_ci95)),
        figures.percent(macro),
        figures.usd(cost),
        figures.seconds(latency),
        _shares(row.selected_models),
    )


def _shares(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered) or "-"
