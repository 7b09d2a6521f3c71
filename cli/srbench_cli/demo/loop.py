"""The demo's second half: a change of the router, looked at for free, estimated from saved answers, then run live."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import report_pb2
from srbench_kit import figures, views
from srbench_kit.errors import Unreachable
from srbench_kit.values import Json

from srbench_cli import router_config, watch
from srbench_cli.commands.config import preview_origin, register_hash
from srbench_cli.commands.replay import start_replay
from srbench_cli.commands.run import get_report, incompleteness, start
from srbench_cli.context import Session
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S
from srbench_cli.router_api import RouterApi

ROUTER = "mixture"
ACTIVE_WITHIN_S = 30.0
# What the changed router may lose against the strongest single model, written down before its run.
MARGIN = 0.1
# Two answers to a doubtful question cost more than they bring, and physics does not need the dearest model.
CHANGE: dict[str, Json] = {
    "routing": {
        "decisions": [
            {"name": "puzzles", "calls": ["frontier"], "subject": "arc-agi-2"},
            {"name": "numbers", "calls": ["frontier"], "subject": "mmlu-pro/math"},
            {"name": "everyday", "calls": ["balanced"]},
        ]
    }
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Improved:
    """The runs of the loop: before and after the change, and what was estimated in between."""

    baseline: pb.Run
    replay: report_pb2.Report
    candidate: pb.Run


def improve(session: Session, baseline: pb.Run, work: Path, say: Callable[[str], None]) -> Improved:
    """Changes the router and measures what that brings.

    Raises: `Unreachable` (`DEMO_STEP_FAILED`) when a step did not complete, and what the services answer.
    """
    say("previewing the router: which model would it choose for each case? No model is called")
    before = _of_target(_run(session, _candidate(session, baseline, "preview")))
    compound = before.selection_statuses["execution_required"]
    say(f"it would choose {_shares(before)}; {compound} of {before.total} cases would take several calls")
    say("changing the router's configuration: no second opinions, and no frontier model for physics")
    _change(session, work, say)
    say("previewing the changed router, and replaying saved answers by it: an estimate at no cost")
    previewed = _run(session, _candidate(session, baseline, "preview"))
    made = start_replay(session, baseline.id, previewed.run_id, None)
    replay = get_report(session, made.id)
    row = _of_target(replay)
    say(
        f"estimate: {figures.percent(row.estimated_accuracy)} right at {figures.usd(row.estimated_cost_picodollars)}; "
        f"{figures.usd(replay.summary.known_spend_picodollars)} spent"
    )
    say(f"running the changed router live on the same cases; its plan claims to lose at most {100 * MARGIN:g} points")
    live = _run(session, _claiming(_candidate(session, baseline, "live")))
    row = _of_target(live)
    cost = figures.usd(row.cost_picodollars if row.HasField("cost_picodollars") else None)
    say(f"live: {figures.percent(row.accuracy)} right at {cost} (run {live.run_id})")
    candidate = session.door.call(session.door.planner.GetRun, pb.GetRunRequest(id=live.run_id, summary=True))
    return Improved(baseline=baseline, replay=replay, candidate=candidate)


def _candidate(session: Session, baseline: pb.Run, mode: str) -> dict[str, Json]:
    request = pb.CreateCandidatePlanRequest(baseline_run_id=baseline.id, target_ids=[ROUTER], mode=mode)
    plan = session.door.call(session.door.planner.CreateCandidatePlan, request, SLOW_CALL_TIMEOUT_S)
    manifest = views.plan_checked(plan)["manifest"]
    assert isinstance(manifest, dict), "a checked plan shows its manifest"
    return manifest


def _claiming(manifest: dict[str, Json]) -> dict[str, Json]:
    """The manifest with a claim, which makes another plan of it."""
    kept = {key: value for key, value in manifest.items() if key != "plan_sha256"}
    return kept | {"claims": [{"kind": "non_inferiority", "margin": MARGIN, "target_id": ROUTER}]}


def _run(session: Session, manifest: dict[str, Json]) -> report_pb2.Report:
    ended = watch.run_to_end(session.door, start(session, manifest, None))
    report = get_report(session, ended.id)
    fault = incompleteness(ended, report)
    if fault:
        raise Unreachable("DEMO_STEP_FAILED", fault, run_id=ended.id)
    return report


def _change(session: Session, work: Path, say: Callable[[str], None]) -> None:
    """As `vllm-sr config apply --mode merge --target mixture --update-target` does."""
    path = work / "router-change.json"
    path.write_text(json.dumps(CHANGE))
    api = RouterApi(preview_origin(session, ROUTER))
    found = router_config.apply(api, router_config.read_change(path, "merge"), ACTIVE_WITHIN_S, say)
    register_hash(session, ROUTER, str(found["active_runtime_hash"]))


def _of_target(report: report_pb2.Report) -> report_pb2.Metrics:
    (row,) = report.summary.targets
    return row


def _shares(row: report_pb2.Metrics) -> str:
    return ", ".join(f"{name} {count} times" for name, count in sorted(row.selected_models.items()))
