"""A run in hand: its cells, its plan, and the cases once they are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from srbench.v1 import plan_pb2, target_pb2
from srbench_kit.values import object_of

from srbench_planner import sampling
from srbench_planner.case_set import CaseSet
from srbench_planner.rates import TargetLimits
from srbench_planner.run_cells import RunCells

MAX_FAILURE_EVENTS = 100
# Whatever driver a benchmark has, a preview only asks the router.
PREVIEW_DRIVER = "preview"


@dataclass(slots=True)
class ActiveRun:
    """A run that has not ended.

    Attributes:
        update_us: when anything about it last changed.
        failure_event_count: `case_failed` events so far; at most `MAX_FAILURE_EVENTS` are written.
    """

    cells: RunCells
    plan: plan_pb2.Plan
    update_us: int
    cases: CaseSet | None = None
    failure_event_count: int = 0

    def load(self, cases: CaseSet) -> None:
        """Takes the cases; from now on cells can be leased."""
        limited = any(target.tokens_per_minute is not None for target in self.cells.targets)
        self.cases = cases
        token_counts = cases.token_counts() if limited else ()
        if self.previews:
            self.cells.build_lanes([PREVIEW_DRIVER] * len(cases), token_counts)
        else:
            self.cells.build_lanes(cases.drivers(), token_counts, cases.needs(object_of(self.plan.benchmark_options)))

    @property
    def previews(self) -> bool:
        """Whether its cells ask a router what it would do, and no model anything."""
        return self.plan.mode == "preview"


def target_limits(plan: plan_pb2.Plan) -> Sequence[TargetLimits]:
    """The limits of the plan's targets in order."""
    return tuple(_limits(target, plan) for target in plan.targets)


def _limits(target: target_pb2.Target, plan: plan_pb2.Plan) -> TargetLimits:
    sent = sampling.effective(object_of(plan.sampling), object_of(target.request_params))

    def optional(name: str) -> int | None:
        return int(getattr(target, name)) if target.HasField(name) else None  # type: ignore[arg-type]

    return TargetLimits(
        key=(target.id, target.base_url, target.model),
        max_concurrency=optional("max_concurrency"),
        requests_per_minute=optional("requests_per_minute"),
        tokens_per_minute=optional("tokens_per_minute"),
        output_tokens=sampling.output_cap(sent) or plan.limits.max_output_tokens,
    )
