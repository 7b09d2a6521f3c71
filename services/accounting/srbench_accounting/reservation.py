"""What is set aside before a call leaves: the most it can cost, so that a budget is never overrun."""

from __future__ import annotations

from collections.abc import Mapping

from srbench_accounting.pricing import Price

# Tokens added for each message's framing and for the request's own, beyond its bytes.
_PER_MESSAGE = 64
_PER_REQUEST = 256


def reserve_picodollars(
    *, body_bytes: int, messages: int, max_output_tokens: int, prices: Mapping[str, Price], inference_calls: int = 1
) -> int | None:
    """The worst-case cost of one request, in picodollars; `None` when a price is missing.

    `k * (I * p_in + O * p_out)` with `I = bytes + 64 * messages + 256 + (k - 1) * O`: no tokenizer makes more tokens than
    bytes, and each further inference call of a router may read what the calls before it wrote. `p_in` and `p_out` are the
    dearest rates over all models that may be called.

    Args:
        body_bytes: UTF-8 bytes of the request body.
        messages: messages in it.
        max_output_tokens: output tokens that one inference call may make.
        inference_calls: most inference calls behind the request: 1 for a single model.
    """
    rates = [(price.highest_prompt_rate(), price.output) for price in prices.values()]
    prompt = [rate for rate, _ in rates if rate is not None]
    output = [rate for _, rate in rates if rate is not None]
    if not rates or len(prompt) < len(rates) or len(output) < len(rates):
        return None
    tokens = body_bytes + _PER_MESSAGE * messages + _PER_REQUEST + (inference_calls - 1) * max_output_tokens
    return inference_calls * (tokens * max(prompt) + max_output_tokens * max(output))
