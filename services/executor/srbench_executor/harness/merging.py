"""Which fields of a harness's request go to the target. Pure.

The plan is frozen, so it wins: a parameter that the target has, from the plan's sampling or from its own `request_params`,
is sent as planned, and one that its `request_params` remove with a null is not sent. All else that a harness may say is
passed on. Output limits (`max_tokens`, `max_completion_tokens`) count as one parameter, and never exceed the plan's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

CAPS = ("max_tokens", "max_completion_tokens")
PASSED = frozenset(
    {
        *("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format", "stop"),
        *("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"),
        *("seed", "logit_bias", "reasoning_effort", "verbosity", *CAPS),
    }
)
# Said by client libraries; it asks nothing of a model, or the endpoint itself answers it.
IGNORED = frozenset({"model", "messages", "stream", "stream_options", "user", "metadata", "store", "n", "logprobs"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessRequest:
    """What a harness asked for.

    Attributes:
        model: the name it used, for the answer; which target is meant its token says.
        fields: the fields that may be passed on.
        stream: whether it wants events; `usage`: whether with usage.
    """

    model: str
    messages: list[Json]
    fields: dict[str, Json]
    stream: bool
    usage: bool


def read_request(found: Json) -> HarnessRequest:
    """The request in a harness's body. Raises: `InvalidInput` (`BAD_FIELD`, `UNKNOWN_FIELD`), the field named."""
    if not isinstance(found, dict):
        raise InvalidInput("BAD_FIELD", "the body is no JSON object", field="")
    messages = found.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(item, dict) for item in messages):
        raise InvalidInput("BAD_FIELD", "messages is missing or empty; expected a list of objects", field="messages")
    if found.get("n") not in (None, 1):
        raise InvalidInput("BAD_FIELD", f"n is {found['n']!r}; expected 1: a call is one answer", field="n")
    if found.get("logprobs"):
        raise InvalidInput("BAD_FIELD", "logprobs are not passed on; expected false", field="logprobs")
    unknown = sorted(set(found) - PASSED - IGNORED)
    if unknown:
        message = f"{unknown[0]} is not passed on to models; expected one of {', '.join(sorted(PASSED))}"
        raise InvalidInput("UNKNOWN_FIELD", message, field=unknown[0])
    for name in CAPS:
        cap = found.get(name)
        if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int) or cap < 1):
            raise InvalidInput("BAD_FIELD", f"{name} is {cap!r}; expected an integer of at least 1", field=name)
    options = found.get("stream_options")
    return HarnessRequest(
        model=str(found.get("model") or ""),
        messages=messages,
        fields={name: value for name, value in found.items() if name in PASSED and value is not None},
        stream=bool(found.get("stream")),
        usage=isinstance(options, dict) and bool(options.get("include_usage")),
    )


def merged(
    fields: Mapping[str, Json], params: Mapping[str, Json], request_params: Mapping[str, Json], max_output_tokens: int
) -> dict[str, Json]:
    """The harness's `fields` that are sent beside the frozen `params`.

    Args:
        params: the target's effective parameters.
        request_params: the target's own, whose nulls remove parameters.
        max_output_tokens: the plan's limit.
    """
    removed = {name for name, value in request_params.items() if value is None}
    planned = set(params) | removed
    if any(name in params for name in CAPS):
        planned |= set(CAPS)
    kept = {name: value for name, value in fields.items() if name not in planned}
    for name in CAPS:
        cap = kept.get(name)
        if isinstance(cap, int):
            kept[name] = min(cap, max_output_tokens)
    return kept
