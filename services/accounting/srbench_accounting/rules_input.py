"""What a plan must share with another, from its message."""

from __future__ import annotations

from collections.abc import Iterable

from srbench.v1 import plan_pb2, target_pb2, usage_pb2
from srbench_kit.values import Json, object_of

from srbench_accounting.comparable import Rules

EVALUATOR_ROLES = ("judge", "simulator")


def singles(plan: plan_pb2.Plan) -> frozenset[str]:
    """Ids of the targets that are one model."""
    return frozenset(target.id for target in plan.targets if target.kind != target_pb2.TARGET_KIND_MOM)


def rules(plan: plan_pb2.Plan) -> Rules:
    """The rules of a plan. Addresses, names of keys and labels are no part of them."""
    sampling, options = object_of(plan.sampling), object_of(plan.benchmark_options)
    every = [*plan.targets, *plan.auxiliary_targets]
    used = set(plan.adapter_versions) or set(plan.case_counts)
    native = plan.output_policy == "native"
    return Rules(
        version=plan.version or "sr-bench-1.0",
        output_policy=plan.output_policy or "bounded",
        sampling=sampling,
        limits=_limits(plan.limits),
        benchmark_options=_options(options, used),
        benchmark_weights={name: plan.benchmark_weights[name] for name in sorted(used & set(plan.benchmark_weights))},
        adapter_versions=dict(plan.adapter_versions),
        native_limits=_native_limits(every) if native else None,
        evaluators=_evaluators(options, used, {target.id: target for target in every}, sampling),
        prices=_prices(every),
        singles={target.id: _identity(target, sampling) for target in plan.targets if target.id in singles(plan)},
    )


def _limits(limits: plan_pb2.Limits) -> dict[str, Json]:
    return {field.name: getattr(limits, field.name) for field in limits.DESCRIPTOR.fields if field.name != "concurrency"}


def _options(options: dict[str, Json], used: set[str]) -> dict[str, Json]:
    """What is set of the benchmarks in use; judges and simulators are compared by what they are, not by name."""
    kept: dict[str, Json] = {}
    for benchmark, given in options.items():
        own = {key: item for key, item in given.items() if key not in EVALUATOR_ROLES} if isinstance(given, dict) else {}
        if own and benchmark in used:
            kept[benchmark] = own
    return kept


def _evaluators(
    options: dict[str, Json], used: set[str], targets: dict[str, target_pb2.Target], sampling: dict[str, Json]
) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for benchmark, given in options.items():
        for role in EVALUATOR_ROLES if isinstance(given, dict) and benchmark in used else ():
            name = given.get(role) if isinstance(given, dict) else None
            if isinstance(name, str):
                found[f"{benchmark}.{role}"] = _identity(targets[name], sampling) if name in targets else {"model": name}
    return found


def _identity(target: target_pb2.Target, sampling: dict[str, Json]) -> dict[str, Json]:
    """What a target is: the model asked for and the parameters sent."""
    sent = {**sampling, **object_of(target.request_params)}
    shown: dict[str, Json] = {
        "model": target.model,
        "parameters": {key: value for key, value in sent.items() if value is not None},
    }
    if target.expected_response_model:
        shown["expected_response_model"] = target.expected_response_model
    return shown


def _prices(targets: Iterable[target_pb2.Target]) -> dict[str, Json]:
    """Price by model; the different prices of one model, where targets do not agree, as a list in a fixed order."""
    found: dict[str, list[dict[str, Json]]] = {}
    for target in targets:
        for model, price in target.prices.items():
            own = found.setdefault(model, [])
            if _price(price) not in own:
                own.append(_price(price))
    return {model: each[0] if len(each) == 1 else [*sorted(each, key=str)] for model, each in found.items()}


def _price(price: usage_pb2.Price) -> dict[str, Json]:
    return {field.name: value for field, value in price.ListFields()}


def _native_limits(targets: Iterable[target_pb2.Target]) -> dict[str, Json]:
    return {
        model: {"context_window": limit.context_window, "max_output_tokens": limit.max_output_tokens}
        for target in targets
        for model, limit in target.native_limits.items()
    }
