"""The planner's run, plan and cases as what the report is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from google.protobuf.timestamp_pb2 import Timestamp
from srbench.v1 import plan_pb2, target_pb2, value_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit.values import Json, from_value

from srbench_accounting.claims import Claim
from srbench_accounting.columns import Labels, PlanColumns
from srbench_accounting.report import ChildAttempt, RunFacts, TargetProfile


def run_facts(run: planner_pb.Run) -> RunFacts:
    """The run and its plan, as far as the report repeats or words them."""
    plan = run.plan
    manifest = _members(plan.manifest, "recovery", "dataset")
    return RunFacts(
        run_id=run.id,
        status=run.status,
        reason=run.reason,
        mode=plan.mode or "live",
        cost_policy=plan.cost_policy,
        created_s=_seconds(run.create_time),
        updated_s=_seconds(run.update_time),
        recovery=manifest.get("recovery"),
        plan_sha256=plan.plan_sha256,
        case_sha256=plan.case_sha256,
        profile=plan.profile,
        seed=plan.seed,
        custom_subset=plan.custom_subset,
        dataset=manifest.get("dataset"),
        sampling=from_value(plan.sampling),
        adapter_versions=dict(plan.adapter_versions),
        target_profiles=[_profile(target) for target in plan.targets],
        runner=from_value(run.provenance),
        plan_limitations=list(plan.limitations),
        claims=claims(run),
    )


def claims(run: planner_pb.Run) -> tuple[Claim, ...]:
    """What the plan claims."""
    return tuple(Claim(kind=one.kind, margin=one.margin, target_id=one.target_id, run_id=run.id) for one in run.plan.claims)


def child_attempt(run: planner_pb.Run) -> ChildAttempt:
    """A recovery as its parent's report names it."""
    progress = {field.name: int(count) for field, count in run.progress.ListFields()}
    return ChildAttempt(id=run.id, status=run.status, progress=progress)


def plan_columns(plan: plan_pb2.Plan, cases: Sequence[plan_pb2.PlanCase]) -> PlanColumns:
    """The frozen plan, as far as figures depend on it."""
    counts = np.array([len(case.target_indexes) for case in cases], dtype=np.int64)
    targets = chain.from_iterable(case.target_indexes for case in cases)
    return PlanColumns(
        case_ids=[case.case_id for case in cases],
        case_benchmark=Labels.of(case.benchmark for case in cases),
        target_ids=[target.id for target in plan.targets],
        cell_case=np.repeat(np.array([case.index for case in cases], dtype=np.int64), counts),
        cell_target=np.fromiter(targets, dtype=np.int64, count=int(counts.sum())),
        weights=dict(plan.benchmark_weights),
    )


def _members(value: value_pb2.Value, *names: str) -> dict[str, Json]:
    """Some members of an object; the rest, perhaps thousands of cases, stays a message."""
    return {member.key: from_value(member.value) for member in value.object_value.members if member.key in names}


def _profile(target: target_pb2.Target) -> TargetProfile:
    return TargetProfile(
        id=target.id,
        model=target.model,
        kind="mom" if target.kind == target_pb2.TARGET_KIND_MOM else "single",
        request_params=from_value(target.request_params),
        config_hash=target.config_hash,
    )


def _seconds(time: Timestamp) -> float:
    return float(time.seconds + time.nanos / 1e9)
