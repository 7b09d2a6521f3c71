"""The common case of `settlement`, by a short way: one model, a whole stream, and a usage object in OpenAI's shape whose
numbers agree.

Nearly every call is one of these, and the long way through every dialect costs ten times as much. Whatever is not plain is
left to the long way, and for all that is plain both give the same; `test_plain_usage` holds them against each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from srbench_accounting.dialects import Dialect
from srbench_accounting.usage_fields import COUNTED_NAMES

if TYPE_CHECKING:
    from srbench_kit.values import Json

_INT64_MAX = 2**63 - 1
_PROMPT_DETAILS, _OUTPUT_DETAILS = "prompt_tokens_details", "completion_tokens_details"
# What only the long way understands, at the top and within the prompt's details.
_FOREIGN = COUNTED_NAMES - {"prompt_tokens", "completion_tokens", "total_tokens", _PROMPT_DETAILS, _OUTPUT_DETAILS}
_WRITTEN = frozenset(
    {"cache_write_tokens", "cache_creation_tokens", "created_cache_tokens", "cache_creation_token_details"}
)
_SOUND = "audio_tokens"
_NOTHING: Mapping[str, Json] = {}


class PlainCall(NamedTuple):
    """Tokens and money of a plain call, in the terms of `settlement.Settlement`; money in picodollars."""

    input_tokens: int | None
    cached_input_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int
    prompt_tokens: int
    cache_read_reported: bool
    cost_lower: int
    cost_upper: int
    cache_neutral: int


class PlainPrice(NamedTuple):
    """The rates of one model that has them all, in picodollars a token."""

    input: int
    cached_input: int
    output: int


def read_plain(
    raw: Json, price: PlainPrice, *, dialect: Dialect, silent_cache: bool, output_seen: bool
) -> PlainCall | None:
    """What a plain usage object comes to; `None` when it is not plain. The arguments are those of `usage.read_usage`."""
    if type(raw) is not dict or not _FOREIGN.isdisjoint(raw) or dialect is Dialect.ANTHROPIC:
        return None
    prompt, output, total = raw.get("prompt_tokens"), raw.get("completion_tokens"), raw.get("total_tokens")
    if type(prompt) is not int or type(output) is not int or not 0 < prompt <= _INT64_MAX:
        return None
    if not (output_seen <= output <= _INT64_MAX) or not _adds_up(raw, prompt, output, total, dialect):
        return None
    details = raw.get(_PROMPT_DETAILS)
    if details is None:
        cached = None
    elif type(details) is dict and _WRITTEN.isdisjoint(details) and not details.get(_SOUND):
        cached = details.get("cached_tokens")
    else:
        return None
    if cached is None and not silent_cache:
        return _unsplit(prompt, output, price)
    reported = cached is not None
    cached = cached if reported else 0
    if type(cached) is not int or not 0 <= cached <= prompt:
        return None
    fresh = prompt - cached
    cost = fresh * price.input + cached * price.cached_input + output * price.output
    neutral = prompt * price.input + output * price.output
    if cost > _INT64_MAX or neutral > _INT64_MAX:
        return None
    return PlainCall(fresh, cached, 0, output, prompt, reported, cost, cost, neutral)


def _adds_up(raw: Mapping[str, Json], prompt: int, output: int, total: Json, dialect: Dialect) -> bool:
    """Whether the total and the reasoning within the output agree with the rest."""
    details = raw.get(_OUTPUT_DETAILS)
    if details is None:
        reasoning: Json = None
    elif type(details) is dict and not details.get(_SOUND):
        reasoning = details.get("reasoning_tokens")
    else:
        return False
    if reasoning is None:
        reasoning = 0
    if type(reasoning) is not int or not 0 <= reasoning <= output:
        return False
    if total is None:
        return not reasoning or dialect is not Dialect.GEMINI
    return type(total) is int and total == prompt + output <= _INT64_MAX


def _unsplit(prompt: int, output: int, price: PlainPrice) -> PlainCall | None:
    """Nobody said how much of the prompt was cached: its cost lies between both rates."""
    base = output * price.output
    lower = prompt * min(price.input, price.cached_input) + base
    upper = prompt * max(price.input, price.cached_input) + base
    if upper > _INT64_MAX:
        return None
    return PlainCall(None, None, None, output, prompt, False, lower, upper, prompt * price.input + base)
