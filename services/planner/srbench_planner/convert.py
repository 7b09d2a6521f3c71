"""Between frozen manifests, rows and the contract's messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from srbench.v1 import plan_pb2, planner_service_pb2, target_pb2, work_queue_service_pb2
from srbench_kit.canonical import digest
from srbench_kit.values import Json, fill_value, object_of

from srbench_planner import benchmark_options
from srbench_planner import limits as limit_rules
from srbench_planner import targets as target_rules
from srbench_planner.cells import CellMatrix, CellState
from srbench_planner.freeze import FrozenPlan
from srbench_planner.worst_case import Gap

_WORDS: dict[str, Mapping[str, int]] = {
    "kind": {"single": target_pb2.TARGET_KIND_SINGLE, "mom": target_pb2.TARGET_KIND_MOM},
    "usage_dialect": {
        "openai": target_pb2.USAGE_DIALECT_OPENAI,
        "anthropic": target_pb2.USAGE_DIALECT_ANTHROPIC,
        "deepseek": target_pb2.USAGE_DIALECT_DEEPSEEK,
        "gemini": target_pb2.USAGE_DIALECT_GEMINI,
    },
    "cache_reporting": {"none": target_pb2.CACHE_REPORTING_NONE},
    "response_mode": {"json": target_pb2.RESPONSE_MODE_JSON},
    "session_mode": {"session_aware": target_pb2.SESSION_MODE_SESSION_AWARE},
}
_PLAIN = (
    *("id", "model", "base_url", "api_key_env", "max_inference_calls", "config_hash", "preview_url", "preview_api_key_env"),
    *("capture_recipe", "expected_response_model", "max_concurrency", "requests_per_minute", "tokens_per_minute"),
)
_PRICES = {
    "input": "input_picodollars",
    "cached_input": "cached_input_picodollars",
    "cache_write": "cache_write_picodollars",
    "output": "output_picodollars",
    "cache_write_1h": "cache_write_1h_picodollars",
}
# Of a case's metadata, what a reader of a plan may see; the rest can hold hidden tests.
_SHOWN_METADATA = ("stratum", "split", "source_revision")


def timestamp(us: int) -> Timestamp:
    """A time of `us` microseconds since 1970."""
    return Timestamp(seconds=us // 1_000_000, nanos=us % 1_000_000 * 1000)


def target(frozen: Mapping[str, Json]) -> target_pb2.Target:
    """The message of a canonical target."""
    message = target_pb2.Target()
    for key in _PLAIN:
        if key in frozen:
            setattr(message, key, frozen[key])
    for key, words in _WORDS.items():
        if key in frozen:
            setattr(message, key, words[str(frozen[key])])
    fill_value(message.request_params, _object(frozen, "request_params"))
    for model, price in _object(frozen, "prices").items():
        assert isinstance(price, dict)
        for key, amount in price.items():
            setattr(message.prices[model], _PRICES[key], target_rules.price_picodollars(amount, key))
    for name, model_name in _object(frozen, "model_aliases").items():
        message.model_aliases[name] = str(model_name)
    for model, window in _object(frozen, "native_limits").items():
        assert isinstance(window, dict)
        for key, count in window.items():
            setattr(message.native_limits[model], key, count)
    return message


def limits(frozen: Mapping[str, Json]) -> plan_pb2.Limits:
    """The message of frozen limits."""
    message = plan_pb2.Limits(max_cost_picodollars=limit_rules.picodollars(frozen["max_cost_usd"]))
    for key, value in frozen.items():
        if key != "max_cost_usd":
            setattr(message, key, value)
    return message


def plan(frozen: FrozenPlan) -> plan_pb2.Plan:
    """The plan without its manifest: what lists show and what a run goes by."""
    shown = frozen.manifest
    dataset = _object(shown, "dataset")
    message = plan_pb2.Plan(
        limits=limits(_object(shown, "limits")),
        targets=[target(item) for item in _objects(shown.get("targets"))],
        auxiliary_targets=[target(item) for item in _objects(list(_object(shown, "auxiliary_targets").values()))],
        case_counts=_cell_counts(frozen),
        total=len(frozen.matrix),
        case_count=len(frozen.cases),
        custom_subset=bool(dataset.get("custom_subset", True)),
        dataset_sha256=str(dataset.get("sha256", "")),
        worst_case_cost_picodollars=_fits(frozen.worst_case.picodollars),
        worst_case_gaps=[spend_gap(gap) for gap in frozen.worst_case.gaps],
        most_calls=frozen.worst_case.calls,
    )
    for key in ("plan_sha256", "case_sha256", "version", "name", "mode", "profile", "seed", "cost_policy", "output_policy"):
        setattr(message, key, shown[key])
    fill_value(message.sampling, shown["sampling"])
    if shown.get("benchmark_options"):
        fill_value(message.benchmark_options, shown["benchmark_options"])
    for benchmark, weight in _object(shown, "benchmark_weights").items():
        assert isinstance(weight, int | float)
        message.benchmark_weights[benchmark] = weight
    for benchmark, version in _object(shown, "adapter_versions").items():
        message.adapter_versions[benchmark] = str(version)
    if "preview_context" in shown:
        fill_value(message.preview_context, shown["preview_context"])
    message.claims.extend(_claim(item) for item in _objects(shown.get("claims")))
    found = shown.get("limitations")
    message.limitations.extend(str(item) for item in found) if isinstance(found, list) else None
    return message


def spend_gap(gap: Gap) -> plan_pb2.SpendGap:
    """The message of a reason why a figure of spend is unknown."""
    return plan_pb2.SpendGap(reason=gap.reason, benchmark=gap.benchmark, target_id=gap.target_id, message=gap.message)


def _claim(frozen: Mapping[str, Json]) -> plan_pb2.Claim:
    margin = frozen["margin"]
    assert isinstance(margin, int | float)
    return plan_pb2.Claim(kind=str(frozen["kind"]), margin=margin, target_id=_text(frozen.get("target_id")) or None)


def plan_cases(
    cases: Iterable[Mapping[str, Json]], matrix: CellMatrix, graders: Sequence[str], *, digests: bool = False
) -> Iterable[plan_pb2.PlanCase]:
    """The cases as the report sees them, in order; with the digest of each when wanted. `graders` has the name of each
    case's grader."""
    by_case: dict[int, list[int]] = {}
    if matrix.picked is not None:
        for cell in range(len(matrix)):
            at, target_index = matrix.pair(cell)
            by_case.setdefault(at, []).append(target_index)
    whole = list(range(matrix.target_count))
    for index, case in enumerate(cases):
        metadata = _object(case, "metadata")
        yield plan_pb2.PlanCase(
            index=index,
            case_id=str(case["id"]),
            benchmark=str(case["benchmark"]),
            stratum=_text(metadata.get("stratum")),
            split=_text(metadata.get("split")),
            target_indexes=whole if matrix.picked is None else by_case.get(index, []),
            sha256=digest(dict(case)) if digests else "",
            grader=graders[index],
        )


def run_context(run_id: str, shown: plan_pb2.Plan, deadline_us: int, left_s: float) -> work_queue_service_pb2.RunContext:
    """What is constant over a run, and what is left of its time. Judges and simulators that are subjects, too, stand among
    the auxiliary targets."""
    options = object_of(shown.benchmark_options)
    named = {name for _, name in benchmark_options.referenced(options)} - {each.id for each in shown.auxiliary_targets}
    context = work_queue_service_pb2.RunContext(
        run_id=run_id,
        limits=shown.limits,
        sampling=shown.sampling,
        targets=shown.targets,
        auxiliary_targets=[*shown.auxiliary_targets, *(each for each in shown.targets if each.id in named)],
        benchmark_options=shown.benchmark_options,
        deadline_time=timestamp(deadline_us),
    )
    context.time_left.FromMicroseconds(int(left_s * 1e6))
    for key in ("plan_sha256", "case_sha256", "cost_policy", "output_policy", "seed"):
        setattr(context, key, getattr(shown, key))
    if shown.HasField("preview_context"):
        context.preview_context.CopyFrom(shown.preview_context)
    return context


def progress(total: int, counts: Mapping[CellState, int]) -> planner_service_pb2.Progress:
    """How far a run is, from the counts of its cells."""
    cancelled, interrupted = counts[CellState.CANCELLED], counts[CellState.INTERRUPTED]
    return planner_service_pb2.Progress(
        total=total,
        completed=counts[CellState.DONE],
        failed=counts[CellState.FAILED] + cancelled + interrupted,
        running=counts[CellState.LEASED],
        cancelled=cancelled,
        interrupted=interrupted,
    )


def readable_cases(cases: list[dict[str, Json]]) -> list[Json]:
    """Inline cases as a reader of a plan may see them: without reference answers and without hidden metadata."""
    shown: list[Json] = []
    for case in cases:
        public = {key: value for key, value in case.items() if key not in ("answer", "metadata")}
        metadata = {key: value for key, value in _object(case, "metadata").items() if key in _SHOWN_METADATA}
        shown.append(public | ({"metadata": metadata} if metadata else {}))
    return shown


def _cell_counts(frozen: FrozenPlan) -> dict[str, int]:
    names = [str(case["benchmark"]) for case in frozen.cases]
    if frozen.matrix.picked is None:
        return {name: count * frozen.matrix.target_count for name, count in Counter(names).items()}
    return dict(Counter(names[frozen.matrix.pair(cell)[0]] for cell in range(len(frozen.matrix))))


def _fits(amount: int | None) -> int | None:
    """The amount, or the largest that the contract can say."""
    return None if amount is None else min(amount, 2**63 - 1)


def _object(parent: Mapping[str, Json], key: str) -> dict[str, Json]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[dict[str, Json]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
