"""Usage objects of every provider as four exclusive buckets."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
from srbench_accounting.dialects import Dialect
from srbench_accounting.usage import Usage, read_usage
from srbench_kit.chatparts import merge_usage

from tests.goldens import shared_cases

Buckets = tuple[int | None, int | None, int | None, int | None]
UNKNOWN: Buckets = (None, None, None, None)


def buckets(usage: Usage) -> Buckets:
    return usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens, usage.output_tokens


def openai(
    prompt: int, completion: int, cached: int | None = None, write: int | None = None, **more: Any
) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if cached is not None:
        details["cached_tokens"] = cached
    if write is not None:
        details["cache_write_tokens"] = write
    raw = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **more}
    return {**raw, "prompt_tokens_details": details} if details else raw


def anthropic(fresh: int, read: int | None, created: int | None, output: int, **more: Any) -> dict[str, Any]:
    given_ = {"cache_read_input_tokens": read, "cache_creation_input_tokens": created}
    return {"input_tokens": fresh, "output_tokens": output, **{k: v for k, v in given_.items() if v is not None}, **more}


def responses(total: int, cached: int, output: int, **more: Any) -> dict[str, Any]:
    return {"input_tokens": total, "output_tokens": output, "input_tokens_details": {"cached_tokens": cached}, **more}


def deepseek(hit: int, miss: int, prompt: int, output: int) -> dict[str, Any]:
    counters = {"prompt_cache_hit_tokens": hit, "prompt_cache_miss_tokens": miss}
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output, **counters}


REASONED = {"completion_tokens_details": {"reasoning_tokens": 60}}
LITELLM = {**openai(3972, 77, 3400), "cache_read_input_tokens": 3400, "cache_creation_input_tokens": 560}

DETECTED: list[tuple[str, Any, Buckets, set[str]]] = [
    ("cached is part of the prompt", openai(1000, 20, 800), (200, 800, 0, 20), set()),
    ("cached and written are parts of it", openai(10, 3, 4, 2), (4, 4, 2, 3), set()),
    ("no details: the split is unknown", openai(90, 4), (None, None, None, 4), set()),
    ("null details: the same", openai(90, 4, prompt_tokens_details=None), (None, None, None, 4), set()),
    ("empty details: the same", openai(90, 4, prompt_tokens_details={}), (None, None, None, 4), set()),
    (
        "null cached tokens: the same",
        openai(90, 4, prompt_tokens_details={"cached_tokens": None}),
        (None, None, None, 4),
        set(),
    ),
    (
        "a cached part alone is kept",
        {"completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 7}},
        (None, 7, 0, 4),
        set(),
    ),
    ("anthropic is exclusive", anthropic(12, 3400, 560, 77), (12, 3400, 560, 77), set()),
    ("anthropic without a read count", anthropic(12, None, 560, 77), (12, None, 560, 77), set()),
    ("anthropic without a write count", anthropic(12, 30, None, 77), (12, 30, None, 77), set()),
    ("anthropic with nothing of caches", anthropic(12, None, None, 77), (12, None, None, 77), set()),
    ("anthropic fully cached", anthropic(0, 3400, 0, 77), (0, 3400, 0, 77), set()),
    ("anthropic with a total of all", anthropic(12, 30, 5, 77, total_tokens=124), (12, 30, 5, 77), set()),
    ("a total shows that input includes the rest", anthropic(100, 30, 5, 77, total_tokens=177), (65, 30, 5, 77), set()),
    (
        "write classes add up to the whole",
        anthropic(5, 0, 1500, 9, cache_creation={"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 500}),
        (5, 0, 1500, 9),
        set(),
    ),
    (
        "write classes without a whole",
        anthropic(5, 0, None, 9, cache_creation={"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 500}),
        (5, 0, 1500, 9),
        set(),
    ),
    (
        "write classes that do not add up",
        anthropic(5, 0, 1500, 9, cache_creation={"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 501}),
        (5, 0, None, 9),
        {"contradictory_written"},
    ),
    ("responses shape is inclusive", responses(100, 60, 8), (40, 60, 0, 8), set()),
    ("responses shape with a total", responses(100, 60, 8, total_tokens=108), (40, 60, 0, 8), set()),
    (
        "input and output with a total are not anthropic's",
        {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10},
        (None, None, None, 1),
        set(),
    ),
    ("hits and misses", deepseek(64, 36, 100, 5), (36, 64, 0, 5), set()),
    ("hits alone", {"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 64}, (36, 64, 0, 5), set()),
    ("misses alone", {"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_miss_tokens": 36}, (36, 64, 0, 5), set()),
    (
        "hits and misses without a prompt",
        {"completion_tokens": 5, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 6},
        (6, 4, 0, 5),
        set(),
    ),
    ("hits and misses that do not add up", deepseek(64, 37, 100, 5), (None, None, None, 5), {"contradictory_prompt"}),
    (
        "hits twice under two names",
        {**deepseek(64, 36, 100, 5), "prompt_tokens_details": {"cached_tokens": 64}},
        (36, 64, 0, 5),
        set(),
    ),
    ("one number under two names is one fact", LITELLM, (12, 3400, 560, 77), set()),
    ("prompt includes, input does not", {**LITELLM, "input_tokens": 12, "output_tokens": 77}, (12, 3400, 560, 77), set()),
    ("the same prompt twice", {**openai(100, 5, 60), "input_tokens": 100, "output_tokens": 5}, (40, 60, 0, 5), set()),
    (
        "two prompts that disagree",
        {**openai(100, 5, 60), "input_tokens": 90},
        (None, None, None, 5),
        {"contradictory_prompt"},
    ),
    (
        "two cached counts that disagree",
        {**openai(100, 5, 0), "cache_read_input_tokens": 50},
        (None, None, None, 5),
        {"contradictory_cached"},
    ),
    ("two outputs that disagree", {**openai(100, 5, 0), "output_tokens": 6}, (100, 0, 0, None), {"contradictory_output"}),
    (
        "a total shows that prompt excludes the cached",
        {
            "prompt_tokens": 12,
            "completion_tokens": 77,
            "total_tokens": 4049,
            "cache_read_input_tokens": 3400,
            "cache_creation_input_tokens": 560,
        },
        (12, 3400, 560, 77),
        set(),
    ),
    (
        "reasoning is part of the output",
        openai(50, 400, 0, 0, completion_tokens_details={"reasoning_tokens": 380}),
        (50, 0, 0, 400),
        set(),
    ),
    (
        "reasoning beside the output, proved by the total",
        openai(21, 0, 0, 0) | REASONED | {"total_tokens": 81},
        (21, 0, 0, 60),
        set(),
    ),
    ("reasoning and text beside each other", openai(21, 7, 0, 0) | REASONED | {"total_tokens": 88}, (21, 0, 0, 67), set()),
    (
        "a gap that reasoning does not fill",
        openai(21, 7, 0, 0) | REASONED | {"total_tokens": 90},
        (21, 0, 0, None),
        {"contradictory_total"},
    ),
    ("a gap that nothing explains", openai(10, 5, 0, 0, total_tokens=100), (10, 0, 0, None), {"contradictory_total"}),
    (
        "a total below its parts",
        openai(10, 5, 0, 0, total_tokens=12),
        UNKNOWN,
        {"contradictory_numbers", "contradictory_total"},
    ),
    (
        "more reasoning than output",
        {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}} | REASONED,
        (10, 0, 0, None),
        {"reasoning_exceeds_output"},
    ),
    ("more reasoning than output within the total", openai(10, 5, 0) | REASONED, (10, 0, 0, None), {"contradictory_total"}),
    (
        "an empty prompt is impossible",
        {"prompt_tokens": 0, "completion_tokens": 44, "total_tokens": 44},
        (None, None, None, 44),
        {"impossible_zero_prompt"},
    ),
    ("an empty prompt with details, too", openai(0, 44, 0, 0), (None, None, None, 44), {"impossible_zero_prompt"}),
    ("an empty anthropic prompt, too", anthropic(0, 0, 0, 44), (None, None, None, 44), {"impossible_zero_prompt"}),
    ("more cached than prompt", openai(10, 5, 11), (None, None, None, 5), {"cached_exceeds_prompt"}),
    ("more cached and written than prompt", openai(10, 5, 6, 5), (None, None, None, 5), {"cached_exceeds_prompt"}),
    ("negative", openai(-5, 3, 0), (None, 0, 0, 3), {"negative"}),
    ("a float", openai(10, 3, 0) | {"prompt_tokens": 10.0}, (None, 0, 0, 3), {"not_an_integer"}),
    ("a half", openai(10, 3, 0) | {"completion_tokens": 2.5}, (10, 0, 0, None), {"not_an_integer"}),
    ("text", openai(10, 3, 0) | {"completion_tokens": "3"}, (10, 0, 0, None), {"not_an_integer"}),
    ("true", openai(10, 3, 0) | {"completion_tokens": True}, (10, 0, 0, None), {"not_an_integer"}),
    ("not a number", openai(10, 3, 0) | {"completion_tokens": float("nan")}, (10, 0, 0, None), {"not_an_integer"}),
    ("a list", openai(10, 3, 0) | {"completion_tokens": [3]}, (10, 0, 0, None), {"not_an_integer"}),
    ("huge", openai(10, 3, 0) | {"completion_tokens": 10**30}, (10, 0, 0, None), {"out_of_range"}),
    (
        "large and exact",
        {"prompt_tokens": 2**53 + 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}},
        (2**53 + 1, 0, 0, 1),
        set(),
    ),
    ("a negative cached part", openai(10, 3, -1), (None, None, None, 3), {"negative"}),
    (
        "details that are no object",
        openai(10, 3) | {"prompt_tokens_details": [1]},
        (None, None, None, 3),
        {"malformed_details"},
    ),
    (
        "a total that is no number proves nothing",
        openai(10, 3, 0) | {"total_tokens": "13"},
        (10, 0, 0, 3),
        {"not_an_integer"},
    ),
    ("no usage", None, UNKNOWN, {"no_usage"}),
    ("an empty usage", {}, UNKNOWN, {"no_usage"}),
    ("a usage that is no object", [1], UNKNOWN, {"malformed_usage"}),
    ("nothing but zeros", openai(0, 0), (None, None, None, 0), {"impossible_zero_prompt"}),
    ("nothing but nulls", {"prompt_tokens": None, "completion_tokens": None}, UNKNOWN, set()),
    ("names of another interface", {"promptTokenCount": 9, "totalTokenCount": 11}, UNKNOWN, {"unknown_usage_names"}),
    ("a search beside the tokens", openai(9, 2, 0, num_search_queries=1), (9, 0, 0, 2), {"charged_beside_tokens"}),
    (
        "a search by the server's own tool",
        anthropic(9, 0, 0, 2, server_tool_use={"web_search_requests": 3}),
        (9, 0, 0, 2),
        {"charged_beside_tokens"},
    ),
    (
        "sound has prices of its own",
        openai(9, 2, 0, completion_tokens_details={"audio_tokens": 1}),
        (9, 0, 0, 2),
        {"charged_beside_tokens"},
    ),
    (
        "no search and no sound",
        openai(9, 2, 0, num_sources_used=0, server_tool_use=None, completion_tokens_details={"audio_tokens": 0}),
        (9, 0, 0, 2),
        set(),
    ),
]


@pytest.mark.parametrize(("raw", "expected", "flags"), [row[1:] for row in DETECTED], ids=[row[0] for row in DETECTED])
def test_the_shape_is_told_by_the_names(raw: Any, expected: Buckets, flags: set[str]) -> None:
    reading = read_usage(raw)
    assert buckets(reading.usage) == expected
    assert set(reading.flags) == flags


DECLARED: list[tuple[Dialect, Any, Buckets, set[str]]] = [
    (Dialect.OPENAI, openai(10, 3, 4), (6, 4, 0, 3), set()),
    (Dialect.OPENAI, responses(100, 60, 8), (40, 60, 0, 8), set()),
    (Dialect.OPENAI, anthropic(12, 3400, 560, 77), UNKNOWN, {"dialect_violated"}),
    (
        Dialect.OPENAI,
        anthropic(12, 3, 0, 77, prompt_tokens=12, total_tokens=92),
        UNKNOWN,
        {"dialect_violated"},
    ),
    (Dialect.OPENAI, {"input_tokens": 9, "output_tokens": 2}, (None, None, None, 2), set()),
    (Dialect.ANTHROPIC, anthropic(12, 3400, 560, 77), (12, 3400, 560, 77), set()),
    (Dialect.ANTHROPIC, anthropic(100, 30, 5, 77, total_tokens=177), UNKNOWN, {"dialect_violated"}),
    (Dialect.ANTHROPIC, openai(10, 3, 4), UNKNOWN, {"dialect_violated"}),
    (Dialect.ANTHROPIC, responses(100, 60, 8), UNKNOWN, {"dialect_violated"}),
    (Dialect.DEEPSEEK, deepseek(64, 36, 100, 5), (36, 64, 0, 5), set()),
    (Dialect.DEEPSEEK, openai(100, 5), (None, None, None, 5), set()),
    (Dialect.DEEPSEEK, anthropic(1, 2, 3, 4), UNKNOWN, {"dialect_violated"}),
    (Dialect.GEMINI, openai(21, 7, 0) | REASONED | {"total_tokens": 88}, (21, 0, 0, 67), set()),
    (
        Dialect.GEMINI,
        {"prompt_tokens": 21, "completion_tokens": 70} | REASONED,
        (None, None, None, None),
        {"reasoning_unplaced"},
    ),
    (
        Dialect.ROUTER,
        {"input_tokens": 100, "cached_input_tokens": 60, "cache_write_tokens": 10, "output_tokens": 5},
        (30, 60, 10, 5),
        set(),
    ),
    (Dialect.ROUTER, {"prompt_tokens": 100, "completion_tokens": 5, "cached_input_tokens": 60}, (40, 60, None, 5), set()),
    (
        Dialect.ROUTER,
        {"input_tokens": 100, "output_tokens": 5, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 0},
        (40, 60, 0, 5),
        set(),
    ),
    (Dialect.ROUTER, {"input_tokens": 100, "output_tokens": 5}, (None, None, None, 5), set()),
]


@pytest.mark.parametrize(("dialect", "raw", "expected", "flags"), DECLARED)
def test_a_declared_dialect_is_kept_or_the_buckets_are_unknown(
    dialect: Dialect, raw: Any, expected: Buckets, flags: set[str]
) -> None:
    reading = read_usage(raw, dialect=dialect)
    assert buckets(reading.usage) == expected
    assert set(reading.flags) == flags


def test_declared_silence_is_a_zero_and_is_not_called_reported() -> None:
    for raw in (openai(90, 4), openai(90, 4, prompt_tokens_details=None), {"prompt_tokens": 90, "completion_tokens": 4}):
        reading = read_usage(raw, silent_cache=True)
        assert buckets(reading.usage) == (90, 0, 0, 4)
        assert reading.cache_read_reported is False
    assert buckets(read_usage(openai(90, 4, -1), silent_cache=True).usage) == (None, None, None, 4)
    assert buckets(read_usage(anthropic(9, None, None, 4), silent_cache=True).usage) == (9, 0, 0, 4)


def test_what_was_reported_of_caches_is_told() -> None:
    assert read_usage(openai(90, 4, 0)).cache_read_reported is True
    assert read_usage(openai(90, 4)).cache_read_reported is False
    assert read_usage(openai(90, 4, 91)).cache_read_reported is False
    assert read_usage(None).cache_read_reported is None


def test_the_prompt_is_known_though_its_split_is_not() -> None:
    assert read_usage(openai(90, 4)).usage.prompt_tokens == 90
    assert read_usage(anthropic(12, 3400, 560, 77)).usage.prompt_tokens == 3972
    assert read_usage(anthropic(12, 3400, None, 77)).usage.prompt_tokens is None


def test_a_cut_stream_has_no_final_output() -> None:
    reading = read_usage(openai(40, 3, 0, 0), final=False)
    assert buckets(reading.usage) == (40, 0, 0, None)
    assert reading.usage.output_tokens_at_least == 3
    assert reading.flags == ("usage_not_final",)


def test_an_answer_with_text_has_an_output() -> None:
    reading = read_usage(openai(40, 0, 0), output_seen=True)
    assert buckets(reading.usage) == (40, 0, 0, None)
    assert reading.flags == ("impossible_zero_output",)
    assert buckets(read_usage(openai(40, 0, 0)).usage) == (40, 0, 0, 0)


def test_an_empty_prompt_is_possible_when_nothing_was_sent() -> None:
    assert buckets(read_usage(openai(0, 4, 0), prompt_sent=False).usage) == (0, 0, 0, 4)


def test_writes_for_an_hour_are_told_apart() -> None:
    raw = anthropic(5, 0, 1500, 9, cache_creation={"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 500})
    assert read_usage(raw).usage.cache_write_1h_tokens == 500
    assert read_usage(anthropic(5, 0, 1500, 9)).usage.cache_write_1h_tokens is None


def test_litellm_tells_them_apart_inside_the_details_of_the_prompt() -> None:
    lifetimes = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 4803}
    details = {"cached_tokens": 0, "cache_creation_tokens": 4803, "cache_creation_token_details": lifetimes}
    raw = openai(4818, 47, prompt_tokens_details=details, cache_creation_input_tokens=4803, cache_read_input_tokens=0)
    usage = read_usage(raw).usage
    assert (*buckets(usage), usage.cache_write_1h_tokens) == (15, 0, 4803, 47, 4803)
    lifetimes["ephemeral_5m_input_tokens"] = 1
    assert read_usage(raw).flags == ("contradictory_written",)
    raw["prompt_tokens_details"] = {"cached_tokens": 0, "cache_creation_token_details": {"ephemeral_1h_input_tokens": "x"}}
    assert read_usage(raw).usage.input_tokens is None


def test_every_shared_usage_case_gives_its_expected_buckets() -> None:
    for case in shared_cases("usage"):
        final = case["input"]["stream_end"] == "done"
        objects = [event for event in case["input"]["usage_events"] if isinstance(event, dict)]
        reading = read_usage(reduce(merge_usage, objects) if objects else None, final=final)
        got = dict(zip(("input", "cached_input", "cache_write", "output"), buckets(reading.usage), strict=True))
        accepted = [case["expected"]["buckets"], *case["expected"].get("also_accept", [])]
        assert got in accepted, case["id"]
        assert got not in case["expected"].get("must_not", []), case["id"]
        assert set(case["expected"].get("flags", [])) <= set(reading.flags), case["id"]
        assert ("usage_not_final" in reading.flags) is not case["expected"]["final"], case["id"]
