"""What is set aside before a call leaves: the most it can cost, so that a budget is never overrun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from srbench_accounting.pricing import Price

# Tokens added for each message's framing and for the request's own, beyond its bytes.
_PER_MESSAGE = 64
_PER_REQUEST = 256


class DearestRates(NamedTuple):
    """The dearest rates over all models that may be called, in picodollars a token."""

    prompt: int
    output: int


def dearest_rates(prices: Mapping[str, Price]) -> DearestRates | None:
    """The rates that a reservation takes; `None` when a price is missing."""
    prompt = [price.highest_prompt_rate() for price in prices.values()]
    output = [price.output for price in prices.values()]
    known_prompt = [rate for rate in prompt if rate is not None]
    known_output = [rate for rate in output if rate is not None]
    if not prices or len(known_prompt) < len(prompt) or len(known_output) < len(output):
        return None
    return DearestRates(max(known_prompt), max(known_output))


def reserve_at(
    rates: DearestRates, body_bytes: int, messages: int, max_output_tokens: int, inference_calls: int = 1
) -> int:
    """The worst-case cost of one request, in picodollars.

    `k * (I * p_in + O * p_out)` with `I = bytes + 64 * messages + 256 + (k - 1) * O`: no tokenizer makes more tokens than
    bytes, and each further inference call of a router may read what the calls before it wrote.

    Args:
        rates: `p_in` and `p_out`.
        body_bytes: UTF-8 bytes of the request body.
        messages: messages in it.
        max_output_tokens: output tokens that one inference call may make.
        inference_calls: most inference calls behind the request: 1 for a single model.
    """
    tokens = body_bytes + _PER_MESSAGE * messages + _PER_REQUEST + (inference_calls - 1) * max_output_tokens
    return inference_calls * (tokens * rates.prompt + max_output_tokens * rates.output)
