"""Generation parameters: what may be sent, and how a target's own overlay the plan's.

Beside the released list there is `max_completion_tokens`, and a null in a target's `request_params` removes a parameter,
because some models refuse `temperature` or `max_tokens` altogether.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import checks

MAX_BYTES = 65_536
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
CAPS = ("max_tokens", "max_completion_tokens")


def _range(least: float, most: float, *, above: bool = False) -> Callable[[Json, str], object]:
    expected = f"a number above {least:g}" if above else f"a number from {least:g} to {most:g}"
    return lambda value, path: checks.number(value, path, expected, least, most, above=above)


def _exactly_one(value: Json, path: str) -> None:
    if not checks.is_int(value) or value != 1:
        raise checks.bad(path, value, "1; several answers to one request are not compared")


def _top_k(value: Json, path: str) -> None:
    if not checks.is_int(value) or not (value == -1 or 1 <= value <= checks.MAX_INT):
        raise checks.bad(path, value, "-1 or an integer of at least 1")


def _stop(value: Json, path: str) -> None:
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(item, str) for item in listed):
        raise checks.bad(path, value, "a text or a list of texts")


_INT64 = 2**63 - 1
RULES: dict[str, Callable[[Json, str], object]] = {
    "n": _exactly_one,
    "temperature": _range(0, 2),
    "top_p": _range(0, 1),
    "top_k": _top_k,
    "min_p": _range(0, 1),
    "presence_penalty": _range(-2, 2),
    "frequency_penalty": _range(-2, 2),
    "repetition_penalty": _range(0, float("inf"), above=True),
    "length_penalty": _range(0, float("inf"), above=True),
    "stop": _stop,
    "seed": lambda value, path: checks.integer(value, path, -_INT64, _INT64),
    "max_tokens": lambda value, path: checks.integer(value, path, 1),
    "max_completion_tokens": lambda value, path: checks.integer(value, path, 1),
    "min_tokens": lambda value, path: checks.integer(value, path, 0),
    "reasoning_effort": lambda value, path: checks.one_of(value, path, EFFORTS),
    "chat_template_kwargs": checks.obj,
    "ignore_eos": checks.boolean,
    "skip_special_tokens": checks.boolean,
    "spaces_between_special_tokens": checks.boolean,
}


def check_shape(value: Json, path: str, *, removals: bool) -> dict[str, Json]:
    """`value` as generation parameters, each in its own range. `removals` allows nulls.

    Raises: `InvalidInput` (`BAD_FIELD`, `UNKNOWN_FIELD`, `TOO_LARGE`).
    """
    found = checks.obj(value, path)
    checks.known_keys(found, RULES, path)
    for key, item in found.items():
        if item is None and removals:
            continue
        if item is None:
            raise checks.bad(f"{path}.{key}", item, "a value; only a target's request_params may remove a parameter")
        RULES[key](item, f"{path}.{key}")
    size = len(json.dumps(found))
    if size > MAX_BYTES:
        raise InvalidInput("TOO_LARGE", f"{path} has {size} bytes as JSON; expected at most {MAX_BYTES}", field=path)
    return found


def frozen_sampling(given: Json, max_output_tokens: int, *, bounded: bool) -> dict[str, Json]:
    """The plan's sampling with the defaults: temperature 0 and, when bounded, the output limit."""
    found = check_shape({} if given is None else given, "sampling", removals=False)
    defaults: dict[str, Json] = {"temperature": 0}
    if bounded and "max_completion_tokens" not in found:
        defaults["max_tokens"] = max_output_tokens
    sampling = defaults | found
    _check_together(sampling, "sampling", max_output_tokens, bounded=bounded)
    return sampling


def effective(sampling: Mapping[str, Json], request_params: Mapping[str, Json]) -> dict[str, Json]:
    """What is sent to a target: its parameters over the plan's; a null removes a parameter."""
    return {key: value for key, value in {**sampling, **request_params}.items() if value is not None}


def check_effective(
    sampling: Mapping[str, Json], request_params: Mapping[str, Json], path: str, max_output_tokens: int, *, bounded: bool
) -> None:
    """Refuses parameters that cannot be sent together. `path` names the target's `request_params`."""
    _check_together(effective(sampling, request_params), path, max_output_tokens, bounded=bounded)


def output_cap(parameters: Mapping[str, Json]) -> int | None:
    """The most output tokens that `parameters` ask for; `None` when they set no cap."""
    for key in CAPS:
        value = parameters.get(key)
        if checks.is_int(value):
            return value
    return None


def _check_together(merged: Mapping[str, Json], path: str, limit: int, *, bounded: bool) -> None:
    caps = [key for key in CAPS if key in merged]
    if not bounded and caps:
        raise checks.bad(f"{path}.{caps[0]}", merged[caps[0]], "no output cap under output_policy native", "CAP_FORBIDDEN")
    if bounded and len(caps) != 1:
        problem = "no output cap is" if not caps else "both max_tokens and max_completion_tokens are"
        raise InvalidInput(
            "BAD_CAP",
            f"{path}: {problem} sent; expected exactly one of the two, with the other set to null in request_params",
            field=path,
        )
    cap = output_cap(merged)
    if cap is not None and cap > limit:
        raise checks.bad(f"{path}.{caps[0]}", cap, f"at most limits.max_output_tokens, {limit}")
    least = merged.get("min_tokens")
    if checks.is_int(least) and least > (cap or limit):
        raise checks.bad(f"{path}.min_tokens", least, f"at most the output cap, {cap or limit}")
