"""The body of a chat request, as executors send it and as anybody can work it out again from a plan. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from srbench.v1 import plan_pb2, target_pb2

from srbench_kit.values import Json, from_value, object_of


def parameters(sampling: dict[str, Json], request_params: dict[str, Json]) -> dict[str, Json]:
    """The plan's sampling overlaid by the target's parameters, key by key; a null there removes a parameter."""
    merged = sampling | request_params
    return {key: value for key, value in merged.items() if value is not None or key not in request_params}


def chat_messages(messages: Sequence[plan_pb2.ChatMessage]) -> list[Json]:
    """The messages as they are sent."""
    return [
        {"role": message.role, "content": from_value(message.content), **object_of(message.extra)} for message in messages
    ]


def request_fields(
    target: target_pb2.Target, params: dict[str, Json], messages: list[Json], extra: dict[str, Json]
) -> dict[str, Json]:
    """All fields of the request. `extra`: the case's own fields; none of them can displace what is forced."""
    forced: dict[str, Json] = {"model": target.model, "messages": messages}
    if target.response_mode == target_pb2.RESPONSE_MODE_JSON:
        forced["stream"] = False
    else:
        forced |= {"stream": True, "stream_options": {"include_usage": True}}
    return params | extra | forced
