"""Messages as the JSON that commands print: the kit's rules, and the names that released clients know on top."""

from __future__ import annotations

from decimal import Decimal

from srbench.v1 import plan_pb2, planner_service_pb2, target_pb2, usage_pb2
from srbench_kit.jsonview import to_json
from srbench_kit.values import Json, from_value

_PRICE_UNIT = Decimal(10) ** 6


def _usd_per_million(picodollars: int) -> int | float:
    exact = Decimal(picodollars) / _PRICE_UNIT
    return int(exact) if exact == exact.to_integral_value() else float(exact)


def price_json(price: usage_pb2.Price) -> dict[str, Json]:
    """A price in US dollars per million tokens, as targets declare it."""
    found: dict[str, Json] = {
        "input": _usd_per_million(price.input_picodollars),
        "cached_input": _usd_per_million(price.cached_input_picodollars),
        "cache_write": _usd_per_million(price.cache_write_picodollars),
        "output": _usd_per_million(price.output_picodollars),
    }
    if price.HasField("cache_write_1h_picodollars"):
        found["cache_write_1h"] = _usd_per_million(price.cache_write_1h_picodollars)
    return found


def target_json(target: target_pb2.Target) -> dict[str, Json]:
    """A target as it may be registered again: what says no more than its default is left out."""
    found: dict[str, Json] = {
        key: value for key, value in to_json(target).items() if value not in (None, "", False, [], {})
    }
    if target.prices:
        found["prices"] = {model: price_json(price) for model, price in sorted(target.prices.items())}
    return found


def targets_json(targets: planner_service_pb2.ListTargetsResponse) -> dict[str, Json]:
    """The registry."""
    return {"targets": [target_json(target) for target in targets.targets]}


def plan_json(plan: plan_pb2.Plan) -> dict[str, Json]:
    """A frozen plan with its manifest, as `plan` prints it."""
    return {
        "manifest": from_value(plan.manifest),
        "plan_sha256": plan.plan_sha256,
        "case_sha256": plan.case_sha256,
        "total": plan.total,
        "status": "validated",
        "model_requests": 0,
    }


def run_json(run: planner_service_pb2.Run) -> dict[str, Json]:
    """A run with the manifest it froze; the manifest is null where the service left it out."""
    found = to_json(run)
    plan = found.pop("plan")
    found["plan_sha256"] = run.plan.plan_sha256
    found["manifest"] = plan.get("manifest") if isinstance(plan, dict) else None
    return found


def run_summary_json(run: planner_service_pb2.Run) -> dict[str, Json]:
    """A run in a list: what it compares, without its manifest."""
    found = run_json(run)
    del found["manifest"]
    plan = run.plan
    found["manifest_summary"] = {
        "name": plan.name,
        "mode": plan.mode,
        "profile": plan.profile,
        "cost_policy": plan.cost_policy,
        "benchmarks": list(sorted(plan.case_counts)),
        "targets": [{"id": target.id, "model": target.model} for target in plan.targets],
        "total": plan.total,
    }
    return found
