"""What the ledger asks of the pure core, as values and protocols; `deriving` fits the core to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import plan_pb2, report_pb2, target_pb2, usage_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit.values import Json

if TYPE_CHECKING:
    from srbench_accounting.columns import CallColumns, OutcomeColumns, PlanColumns
    from srbench_accounting.compare import RunFigures
    from srbench_accounting.routing import RoutingColumns


class Derived(NamedTuple):
    """Tokens and money of one call, derived from its receipt. `None` is unknown; money in picodollars.

    Attributes:
        prompt_tokens: all prompt tokens where their split is not known; `None` where the buckets say it.
        usage_flags: why a bucket is unknown, as stable words.
        cache_read_reported: whether the endpoint said anything of cached input; `None` without usage.
        cost_lower: bounds of an unknown cost.
        cache_neutral_cost: the cost with every prompt token at the fresh price.
        inference_call_count: how many model calls the request made.
        model_usage: the model calls inside a router.
    """

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    usage_flags: tuple[str, ...] = ()
    cache_read_reported: bool | None = None
    cost: int | None = None
    cost_lower: int | None = None
    cost_upper: int | None = None
    cache_neutral_cost: int | None = None
    inference_call_count: int | None = None
    model_usage: tuple[usage_pb2.ModelUsage, ...] = ()


class LoadedRun(NamedTuple):
    """A run of a lineage as the planner knows it, with its facts."""

    run: planner_pb.Run
    outcomes: OutcomeColumns
    calls: CallColumns


class TargetDeriving(Protocol):
    """The rules as they apply to one target of a run."""

    def price(self, receipt: pb.Receipt) -> Derived:
        """Tokens and money of a call that came back with `receipt`."""
        ...

    def reserve(self, *, body_byte_count: int, message_count: int, max_output_tokens: int) -> int | None:
        """The most a call can cost, in picodollars; `None` when the target has no prices."""
        ...


class Deriving(Protocol):
    """The pure core as the service sees it."""

    def target(self, target: target_pb2.Target) -> TargetDeriving:
        """The rules of one target, prepared once a run."""
        ...

    def report(
        self,
        run: planner_pb.Run,
        cases: Sequence[plan_pb2.PlanCase],
        outcomes: OutcomeColumns,
        calls: CallColumns,
        *,
        correction: Json = None,
        recoveries: Sequence[planner_pb.Run] = (),
        routings: RoutingColumns | None = None,
    ) -> report_pb2.Report:
        """The report of a run from its plan and facts. `correction`: what it says of the correction in force.
        `recoveries` of the run are named, not counted. `routings`: the answered previews of a run of that mode."""
        ...

    def merged_figures(self, runs: Sequence[LoadedRun], cases: Sequence[plan_pb2.PlanCase]) -> RunFigures:
        """The figures of a run together with its recoveries, as one side of a comparison."""
        ...

    def merged_report(self, runs: Sequence[LoadedRun], cases: Sequence[plan_pb2.PlanCase]) -> report_pb2.Report:
        """The report of a run together with its recoveries."""
        ...

    def plan(self, plan: plan_pb2.Plan, cases: Sequence[plan_pb2.PlanCase]) -> PlanColumns:
        """The columns of a plan."""
        ...

    def figures(
        self, run: planner_pb.Run, cases: Sequence[plan_pb2.PlanCase], outcomes: OutcomeColumns, calls: CallColumns
    ) -> RunFigures:
        """The same figures as one side of a comparison."""
        ...
