"""Fits the pure core to what the ledger asks of it. The one file of the shell that knows the core's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import plan_pb2, report_pb2, target_pb2, usage_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit.values import Json

from srbench_accounting import report_convert, report_input, rules_input
from srbench_accounting.columns import CallColumns, OutcomeColumns, PlanColumns
from srbench_accounting.compare import RunFigures
from srbench_accounting.derived import Derived, TargetDeriving
from srbench_accounting.dialects import Dialect
from srbench_accounting.pricing import Price, PriceList
from srbench_accounting.report import make_report
from srbench_accounting.reservation import reserve_picodollars
from srbench_accounting.settlement import Meter, Returned, Settlement, settle
from srbench_accounting.usage import Usage

_DIALECTS = {
    target_pb2.USAGE_DIALECT_UNSPECIFIED: Dialect.DETECT,
    target_pb2.USAGE_DIALECT_OPENAI: Dialect.OPENAI,
    target_pb2.USAGE_DIALECT_ANTHROPIC: Dialect.ANTHROPIC,
    target_pb2.USAGE_DIALECT_DEEPSEEK: Dialect.DEEPSEEK,
    target_pb2.USAGE_DIALECT_GEMINI: Dialect.GEMINI,
}
MAX_PLANS = 16


class CoreTarget:
    """The core's rules for one target."""

    def __init__(self, target: target_pb2.Target) -> None:
        router = target.kind == target_pb2.TARGET_KIND_MOM
        limit = target.max_inference_calls if target.HasField("max_inference_calls") else None
        self._prices = {model: _price(price) for model, price in target.prices.items()}
        self._inference_calls = (limit or 1) if router else 1
        self._meter = Meter(
            router=router,
            model=target.model,
            price_list=PriceList(prices=self._prices, aliases=dict(target.model_aliases)),
            dialect=_DIALECTS.get(target.usage_dialect, Dialect.DETECT),
            silent_cache=target.cache_reporting == target_pb2.CACHE_REPORTING_NONE,
            max_inference_calls=limit,
        )

    def price(self, receipt: pb.Receipt) -> Derived:
        """Tokens and money of a call that came back with `receipt`."""
        returned = Returned(
            usage_json=receipt.usage_json,
            usage_final=receipt.usage_final,
            router_receipt_json=receipt.router_receipt_json,
            response_model=receipt.response_model,
            selected_model=receipt.selected_model,
            inference_call_count=receipt.inference_call_count if receipt.HasField("inference_call_count") else None,
            output_seen=receipt.content_chars > 0,
        )
        return _derived(settle(returned, self._meter))

    def reserve(self, *, body_byte_count: int, message_count: int, max_output_tokens: int) -> int | None:
        """The most a call can cost, in picodollars; `None` when the target has no prices."""
        return reserve_picodollars(
            body_bytes=body_byte_count,
            messages=message_count,
            max_output_tokens=max_output_tokens,
            prices=self._prices,
            inference_calls=self._inference_calls,
        )


class CoreDeriving:
    """The core as the service sees it. The columns of the last plans are kept, since a plan never changes."""

    def __init__(self) -> None:
        self._plans: dict[str, PlanColumns] = {}

    def target(self, target: target_pb2.Target) -> TargetDeriving:
        """The rules of one target, prepared once a run."""
        return CoreTarget(target)

    def report(
        self,
        run: planner_pb.Run,
        cases: Sequence[plan_pb2.PlanCase],
        outcomes: OutcomeColumns,
        calls: CallColumns,
        *,
        correction: Json = None,
    ) -> report_pb2.Report:
        """The report of a run from its plan and facts. `correction`: what it says of the correction in force."""
        facts = replace(report_input.run_facts(run), accounting_correction=correction)
        return report_convert.report(make_report(facts, self.plan(run.plan, cases), outcomes, calls))

    def figures(
        self,
        run: planner_pb.Run,
        cases: Sequence[plan_pb2.PlanCase],
        outcomes: OutcomeColumns,
        calls: CallColumns,
    ) -> RunFigures:
        """The same figures as one side of a comparison."""
        plan = self.plan(run.plan, cases)
        return RunFigures(
            plan=plan,
            outcomes=outcomes,
            report=make_report(report_input.run_facts(run), plan, outcomes, calls),
            singles=rules_input.singles(run.plan),
            rules=rules_input.rules(run.plan),
            calls=calls,
        )

    def plan(self, plan: plan_pb2.Plan, cases: Sequence[plan_pb2.PlanCase]) -> PlanColumns:
        """The columns of a plan."""
        found = self._plans.get(plan.plan_sha256)
        if found is None:
            while len(self._plans) >= MAX_PLANS:
                self._plans.pop(next(iter(self._plans)))
            found = self._plans[plan.plan_sha256] = report_input.plan_columns(plan, cases)
        return found


def _price(price: usage_pb2.Price) -> Price:
    hour = price.cache_write_1h_picodollars if price.HasField("cache_write_1h_picodollars") else None
    return Price(
        input=price.input_picodollars,
        cached_input=price.cached_input_picodollars,
        cache_write=price.cache_write_picodollars,
        output=price.output_picodollars,
        cache_write_1h=hour,
    )


def _derived(found: Settlement) -> Derived:
    usage, cost = found.usage, found.cost
    split = (usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens)
    unknown = cost.exact is None
    return Derived(
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        prompt_tokens=usage.prompt_tokens if None in split else None,
        usage_flags=found.flags,
        cache_read_reported=found.cache_read_reported,
        cost=cost.exact,
        cost_lower=cost.lower if unknown else None,
        cost_upper=cost.upper if unknown else None,
        cache_neutral_cost=found.cache_neutral_picodollars,
        inference_call_count=found.inference_call_count,
        model_usage=tuple(_model_usage(share.model, share.usage, share.cost.exact) for share in found.model_usage),
    )


def _model_usage(model: str, usage: Usage, cost: int | None) -> usage_pb2.ModelUsage:
    return usage_pb2.ModelUsage(
        model=model,
        usage=usage_pb2.TokenUsage(
            input_tokens=usage.input_tokens,
            cached_input_tokens=usage.cached_input_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            output_tokens=usage.output_tokens,
        ),
        cost_picodollars=cost,
    )
