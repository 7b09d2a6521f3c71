"""Laws of usage objects that hold whatever a provider sends."""

from __future__ import annotations

import json
from dataclasses import astuple
from functools import reduce
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from srbench_accounting.dialects import Dialect
from srbench_accounting.usage import Usage, read_usage
from srbench_kit.chatparts import merge_usage


def buckets(usage: Usage) -> tuple[int | None, int | None, int | None, int | None]:
    return usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens, usage.output_tokens


counts = st.one_of(st.none(), st.integers(0, 5000))
odd = st.one_of(
    counts,
    st.integers(-3, 10**20),
    st.floats(),
    st.booleans(),
    st.sampled_from(["", "3", "x"]),
    st.lists(st.none(), max_size=1),
)
NAMES = [
    "prompt_tokens",
    "input_tokens",
    "completion_tokens",
    "output_tokens",
    "total_tokens",
    "cached_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "prompt_cache_hit_tokens",
    "prompt_cache_miss_tokens",
    "reasoning_tokens",
]
DETAILS = {
    "prompt_tokens_details": ("cached_tokens", "cache_write_tokens", "cache_creation_tokens", "created_cache_tokens"),
    "input_tokens_details": ("cached_tokens", "cache_write_tokens"),
    "completion_tokens_details": ("reasoning_tokens",),
    "output_tokens_details": ("reasoning_tokens",),
    "cache_creation": ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"),
}


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    details = {
        name: st.one_of(st.none(), st.fixed_dictionaries({}, optional=dict.fromkeys(parts, values)))
        for name, parts in DETAILS.items()
    }
    return st.fixed_dictionaries({}, optional={**dict.fromkeys(NAMES, values), **details})


options = st.fixed_dictionaries(
    {
        "dialect": st.sampled_from(list(Dialect)),
        "silent_cache": st.booleans(),
        "final": st.booleans(),
        "prompt_sent": st.booleans(),
        "output_seen": st.booleans(),
    }
)


@given(objects(odd), options)
def test_buckets_are_exclusive_and_add_up_whatever_comes(raw: dict[str, Any], how: dict[str, Any]) -> None:
    usage = read_usage(raw, **how).usage
    known = [value for value in astuple(usage) if value is not None]
    assert all(isinstance(value, int) and value >= 0 for value in known)
    prompt = buckets(usage)[:3]
    if usage.prompt_tokens is not None:
        assert sum(part for part in prompt if part is not None) <= usage.prompt_tokens
        if None not in prompt:
            assert sum(part for part in prompt if part is not None) == usage.prompt_tokens
    if usage.cache_write_1h_tokens is not None:
        assert usage.cache_write_tokens is not None
        assert usage.cache_write_1h_tokens <= usage.cache_write_tokens


@given(objects(counts), options, st.randoms())
def test_the_order_of_keys_changes_nothing(raw: dict[str, Any], how: dict[str, Any], chance: Any) -> None:
    keys = list(raw)
    chance.shuffle(keys)
    assert read_usage({key: raw[key] for key in keys}, **how) == read_usage(raw, **how)


@given(objects(odd), options)
def test_null_is_the_same_as_absent(raw: dict[str, Any], how: dict[str, Any]) -> None:
    padded = {**dict.fromkeys([*NAMES, *DETAILS, "service_tier"]), **raw}
    for name, parts in DETAILS.items():
        if isinstance(raw.get(name), dict):
            padded[name] = {**dict.fromkeys(parts), **raw[name]}
    bare = {key: value for key, value in raw.items() if value is not None}
    assert (read_usage(padded, **how).usage == read_usage(bare, **how).usage) or not bare


@given(objects(counts), options)
def test_silence_never_becomes_a_zero_without_a_declaration(raw: dict[str, Any], how: dict[str, Any]) -> None:
    usage = read_usage(raw, **{**how, "silent_cache": False}).usage
    text = json.dumps(raw)
    said = any(f'"{name}": {value}' in text for name in ("cached_tokens",) for value in range(10))
    if usage.cached_input_tokens == 0 and not said:
        assert any(isinstance(raw.get(name), int) for name in NAMES if "cache" in name)


@given(st.lists(objects(counts), min_size=1, max_size=5))
def test_merging_takes_the_last_value_that_is_not_null_and_sums_nothing(events: list[Any]) -> None:
    merged = reduce(merge_usage, events)
    for name in NAMES:
        values = [event[name] for event in events if event.get(name) is not None]
        assert merged.get(name) == (values[-1] if values else None)
    for name, parts in DETAILS.items():
        for part in parts:
            values = [event[name][part] for event in events if event.get(name) and event[name].get(part) is not None]
            assert (merged.get(name) or {}).get(part) == (values[-1] if values else None)


def test_merging_survives_what_is_no_usage() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert merge_usage(merge_usage({"b": 1}, deep), deep)["b"] == 1
    assert reduce(merge_usage, [{"a": {"b": 1}}, {"a": 3}, {"a": {"c": 2}}]) == {"a": {"c": 2}}
