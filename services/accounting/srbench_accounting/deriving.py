"""Fits the pure core to what the ledger asks of it. The one file of the shell that knows the core's names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import orjson
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import plan_pb2, report_pb2, target_pb2, usage_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit.values import Json

from srbench_accounting.derived import Derived, LoadedRun, TargetDeriving
from srbench_accounting.dialects import Dialect
from srbench_accounting.plain_usage import PlainCall, PlainPrice, read_plain
from srbench_accounting.pricing import Price, PriceList
from srbench_accounting.reservation import dearest_rates, reserve_at
from srbench_accounting.settlement import Meter, Returned, Settlement, settle
from srbench_accounting.usage import Usage

if TYPE_CHECKING:
    from srbench_accounting.columns import CallColumns, OutcomeColumns, PlanColumns
    from srbench_accounting.compare import RunFigures
    from srbench_accounting.core_figures import CoreFigures
    from srbench_accounting.routing import RoutingColumns

_DIALECTS = {
    target_pb2.USAGE_DIALECT_UNSPECIFIED: Dialect.DETECT,
    target_pb2.USAGE_DIALECT_OPENAI: Dialect.OPENAI,
    target_pb2.USAGE_DIALECT_ANTHROPIC: Dialect.ANTHROPIC,
    target_pb2.USAGE_DIALECT_DEEPSEEK: Dialect.DEEPSEEK,
    target_pb2.USAGE_DIALECT_GEMINI: Dialect.GEMINI,
}


class CoreTarget:
    """The core's rules for one target."""

    def __init__(self, target: target_pb2.Target) -> None:
        router = target.kind == target_pb2.TARGET_KIND_MOM
        limit = target.max_inference_calls if target.HasField("max_inference_calls") else None
        prices = {model: _price(price) for model, price in target.prices.items()}
        self._dearest = dearest_rates(prices)
        self._inference_calls = (limit or 1) if router else 1
        self._meter = Meter(
            router=router,
            model=target.model,
            price_list=PriceList(prices=prices, aliases=dict(target.model_aliases)),
            dialect=_DIALECTS.get(target.usage_dialect, Dialect.DETECT),
            silent_cache=target.cache_reporting == target_pb2.CACHE_REPORTING_NONE,
            max_inference_calls=limit,
        )

        self._plain_prices = {} if router else _plain_prices(self._meter.price_list, target.model)

    def price(self, receipt: pb.Receipt) -> Derived:
        """Tokens and money of a call that came back with `receipt`."""
        return self._plain(receipt) or _derived(settle(_returned(receipt), self._meter))

    def _plain(self, receipt: pb.Receipt) -> Derived | None:
        """The same for a call of the common kind; `None` for any other."""
        price = self._plain_prices.get(receipt.response_model)
        if price is None or not receipt.usage_final:
            return None
        try:
            raw = orjson.loads(receipt.usage_json)
        except orjson.JSONDecodeError:
            return None
        meter = self._meter
        seen = receipt.content_chars > 0
        call = read_plain(raw, price, dialect=meter.dialect, silent_cache=meter.silent_cache, output_seen=seen)
        return call and _derived_plain(call)

    def reserve(self, *, body_byte_count: int, message_count: int, max_output_tokens: int) -> int | None:
        """The most a call can cost, in picodollars; `None` when the target has no prices."""
        rates = self._dearest
        return rates and reserve_at(rates, body_byte_count, message_count, max_output_tokens, self._inference_calls)


class CoreDeriving:
    """The core as the service sees it."""

    def target(self, target: target_pb2.Target) -> TargetDeriving:
        """The rules of one target, prepared once a run."""
        return CoreTarget(target)

    @cached_property
    def figures_of(self) -> CoreFigures:
        """The half that makes figures of whole runs."""
        # Here and not above: NumPy takes longer to import than the service may take to start.
        from srbench_accounting.core_figures import CoreFigures

        return CoreFigures()

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
        """See `derived.Deriving.report`."""
        return self.figures_of.report(
            run, cases, outcomes, calls, correction=correction, recoveries=recoveries, routings=routings
        )

    def merged_figures(self, runs: Sequence[LoadedRun], cases: Sequence[plan_pb2.PlanCase]) -> RunFigures:
        """The figures of a run together with its recoveries, as one side of a comparison."""
        return self.figures_of.merged_figures(runs, cases)

    def merged_report(self, runs: Sequence[LoadedRun], cases: Sequence[plan_pb2.PlanCase]) -> report_pb2.Report:
        """The report of a run together with its recoveries."""
        return self.figures_of.merged_report(runs, cases)

    def figures(
        self, run: planner_pb.Run, cases: Sequence[plan_pb2.PlanCase], outcomes: OutcomeColumns, calls: CallColumns
    ) -> RunFigures:
        """The same figures as one side of a comparison."""
        return self.figures_of.figures(run, cases, outcomes, calls)

    def plan(self, plan: plan_pb2.Plan, cases: Sequence[plan_pb2.PlanCase]) -> PlanColumns:
        """The columns of a plan."""
        return self.figures_of.plan(plan, cases)


def _price(price: usage_pb2.Price) -> Price:
    hour = price.cache_write_1h_picodollars if price.HasField("cache_write_1h_picodollars") else None
    return Price(
        input=price.input_picodollars,
        cached_input=price.cached_input_picodollars,
        cache_write=price.cache_write_picodollars,
        output=price.output_picodollars,
        cache_write_1h=hour,
    )


def _plain_prices(price_list: PriceList, model: str) -> dict[str, PlainPrice]:
    """By the name in an answer, none included: the rates of the models that have them all."""
    found = {}
    for name in (*price_list.prices, *price_list.aliases, ""):
        price = price_list.find(name or model)
        if price is None or price.input is None or price.cached_input is None or price.output is None:
            continue
        found[name] = PlainPrice(price.input, price.cached_input, price.output)
    return found


def _returned(receipt: pb.Receipt) -> Returned:
    return Returned(
        usage_json=receipt.usage_json,
        usage_final=receipt.usage_final,
        router_receipt_json=receipt.router_receipt_json,
        response_model=receipt.response_model,
        selected_model=receipt.selected_model,
        inference_call_count=receipt.inference_call_count if receipt.HasField("inference_call_count") else None,
        output_seen=receipt.content_chars > 0,
    )


def _derived_plain(call: PlainCall) -> Derived:
    exact = call.cost_lower == call.cost_upper
    return Derived(
        input_tokens=call.input_tokens,
        cached_input_tokens=call.cached_input_tokens,
        cache_write_tokens=call.cache_write_tokens,
        output_tokens=call.output_tokens,
        prompt_tokens=call.prompt_tokens if call.input_tokens is None else None,
        cache_read_reported=call.cache_read_reported,
        cost=call.cost_lower if exact else None,
        cost_lower=None if exact else call.cost_lower,
        cost_upper=None if exact else call.cost_upper,
        cache_neutral_cost=call.cache_neutral,
        inference_call_count=1,
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
