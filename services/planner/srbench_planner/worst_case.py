"""The most a plan can cost: the sum of what every cell would reserve for its first call."""

from __future__ import annotations

import json
from collections.abc import Mapping

from srbench_kit.values import Json

from srbench_planner import sampling, targets
from srbench_planner.cells import CellMatrix

BYTES_PER_MESSAGE = 64
BYTES_PER_REQUEST = 256
# A router repeats at most this many bytes of output per character into each further inference call.
BYTES_PER_CHAR = 4


def request_bytes(case: Mapping[str, Json]) -> int:
    """Upper bound of the prompt tokens of a case without its target's own fields: UTF-8 bytes of its JSON, and a margin."""
    messages = case.get("messages")
    sent = {key: value for key, value in case.items() if key not in ("id", "benchmark", "answer", "metadata", "choices")}
    count = len(messages) if isinstance(messages, list) else 0
    return (
        len(json.dumps(sent, ensure_ascii=False).encode("utf-8", "replace")) + BYTES_PER_MESSAGE * count + BYTES_PER_REQUEST
    )


def worst_case_picodollars(
    cases: list[dict[str, Json]],
    plan_targets: list[dict[str, Json]],
    plan_sampling: Mapping[str, Json],
    limits: Mapping[str, Json],
    matrix: CellMatrix,
) -> int | None:
    """The sum over all cells of calls times (input bytes times dearest input + output cap times dearest output).

    `None` when a target has no prices. Source: the reservation rule of the sr-bench 1.0 protocol.
    """
    rates = [_rates(target, plan_sampling, limits) for target in plan_targets]
    if any(rate is None for rate in rates):
        return None
    sizes = [request_bytes(case) for case in cases]
    total = 0
    for cell in range(len(matrix)):
        case, target = matrix.pair(cell)
        rate = rates[target]
        assert rate is not None
        per_byte, fixed = rate
        total += sizes[case] * per_byte + fixed
    return total


def _rates(
    target: Mapping[str, Json], plan_sampling: Mapping[str, Json], limits: Mapping[str, Json]
) -> tuple[int, int] | None:
    """(picodollars a byte of the case, picodollars whatever the case) for one cell of `target`."""
    prices = target.get("prices")
    if not isinstance(prices, dict) or not prices:
        return None
    params = target.get("request_params")
    sent = sampling.effective(plan_sampling, params if isinstance(params, dict) else {})
    own = {"model": target["model"], "stream": True, "stream_options": {"include_usage": True}, **sent}
    calls = target.get("max_inference_calls", 1)
    chars, most = limits["max_output_chars"], limits["max_output_tokens"]
    assert isinstance(calls, int)
    assert isinstance(chars, int)
    assert isinstance(most, int)
    dearest_input = max(_dearest(price, (*targets.PRICE_KEYS[:3], targets.LONG_WRITE_KEY)) for price in prices.values())
    dearest_output = max(_dearest(price, ("output",)) for price in prices.values())
    extra = len(json.dumps(own, ensure_ascii=False).encode("utf-8", "replace")) + (calls - 1) * chars * BYTES_PER_CHAR
    output = (sampling.output_cap(sent) or most) * dearest_output
    return calls * dearest_input, calls * (extra * dearest_input + output)


def _dearest(price: Json, keys: tuple[str, ...]) -> int:
    assert isinstance(price, dict)
    return max(targets.price_picodollars(price[key], key) for key in keys if key in price)
