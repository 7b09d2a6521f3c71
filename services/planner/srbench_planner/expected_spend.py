"""What a plan's calls will probably cost: typical answers, one call a question, and each step and judge of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from srbench_kit.values import Json

from srbench_planner import sampling, targets, worst_case
from srbench_planner.benchmark_options import step_prompts
from srbench_planner.worst_case import BYTES_PER_TOKEN, Gap, Planned

# A typical answer takes this part of what its request allows.
CAP_PER_ANSWER = 10
# A verdict and two sentences.
JUDGE_ANSWER_TOKENS = 100
JUDGE_FRAME_TOKENS = worst_case.JUDGE_FRAME_BYTES // BYTES_PER_TOKEN // 2


@dataclass(frozen=True, slots=True)
class Expected:
    """Picodollars of all calls, `None` when that is unknown, and why."""

    picodollars: float | None
    gaps: tuple[Gap, ...] = ()


def expected(planned: Planned, answer_tokens: int | None) -> Expected:
    """What all cases cost with all targets; an answer takes `answer_tokens`, a part of its own cap when that is `None`."""
    total = 0.0
    gaps: set[Gap] = set()
    unpriced = [worst_case.rates_of(planned, target) for target in planned.targets]
    gaps.update(rates for rates in unpriced if isinstance(rates, Gap))
    for case in planned.cases:
        spec = planned.specs[str(case["benchmark"])]
        if spec.harness is not None:
            message = f"how many calls an agent of {spec.id} makes, and how long they get, is not known beforehand"
            gaps.add(Gap(reason="AGENT_LENGTH_UNKNOWN", benchmark=spec.id, message=message))
            continue
        helpers = list(worst_case.helpers_of(planned, spec))
        gaps.update(helper for helper in helpers if isinstance(helper, Gap))
        if gaps:
            continue
        judges = [target for helper in helpers if (target := planned.named(helper.target_id)) is not None]
        total += sum(_cell(planned, case, target, judges, spec.driver, answer_tokens) for target in planned.targets)
    return Expected(None, tuple(sorted(gaps))) if gaps else Expected(total)


def _cell(
    planned: Planned,
    case: Mapping[str, Json],
    target: Mapping[str, Json],
    judges: list[dict[str, Json]],
    driver: str,
    answer_tokens: int | None,
) -> float:
    answer = answer_tokens if answer_tokens is not None else _typical(planned, target)
    steps = step_prompts(case) if driver == "scicode" else [case.get("messages")]
    prompts = [_tokens(case, messages) + number * answer for number, messages in enumerate(steps)]
    cost = sum(_cost(target, prompt, answer) for prompt in prompts)
    asked = _tokens(case, case.get("messages")) + worst_case.json_bytes(case.get("answer")) / BYTES_PER_TOKEN
    return cost + sum(_cost(judge, JUDGE_FRAME_TOKENS + asked + answer, JUDGE_ANSWER_TOKENS) for judge in judges)


def _typical(planned: Planned, target: Mapping[str, Json]) -> float:
    params = target.get("request_params")
    sent = sampling.effective(planned.part("sampling"), params if isinstance(params, dict) else {})
    return (sampling.output_cap(sent) or planned.limit("max_output_tokens")) / CAP_PER_ANSWER


def _tokens(case: Mapping[str, Json], messages: Json) -> float:
    count = len(messages) if isinstance(messages, list) else 0
    margin = worst_case.BYTES_PER_MESSAGE * count + worst_case.BYTES_PER_REQUEST
    return max(0, worst_case.request_bytes({**case, "messages": messages}) - margin) / BYTES_PER_TOKEN


def _cost(target: Mapping[str, Json], prompt: float, output: float) -> float:
    """One call at the price of the target's model, or at the mean of a router's prices."""
    prices = target["prices"]
    assert isinstance(prices, dict)
    used = [prices[str(target["model"])]] if target["model"] in prices else list(prices.values())
    costs = [
        prompt * targets.price_picodollars(price["input"], "input")
        + output * targets.price_picodollars(price["output"], "output")
        for price in used
        if isinstance(price, dict)
    ]
    return sum(costs) / len(costs)
