"""The short way of deriving a call's tokens and money gives what the long way gives, or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import target_pb2
from srbench_accounting.derived import Derived
from srbench_accounting.deriving import CoreTarget, _derived, _returned
from srbench_accounting.settlement import settle

few = st.integers(0, 40) | st.sampled_from([2**62, 2**63 - 1, 2**63])
odd = few | st.none() | st.booleans() | st.floats() | st.sampled_from(["3", [], {}, -1])


def tokens(value: int) -> st.SearchStrategy[Any]:
    """`value`, or now and then something else."""
    return st.just(value) | st.just(value) | st.just(value) | odd


@st.composite
def usages(draw: st.DrawFn) -> Any:
    prompt, cached, output = draw(few), draw(st.integers(0, 45)), draw(st.integers(0, 40))
    raw: dict[str, Any] = {
        "prompt_tokens": draw(tokens(prompt)),
        "completion_tokens": draw(tokens(output)),
        "total_tokens": draw(tokens(prompt + output)),
        "prompt_tokens_details": draw(st.just({"cached_tokens": draw(tokens(cached)), "audio_tokens": draw(odd)}) | odd),
        "completion_tokens_details": draw(
            st.just({"reasoning_tokens": draw(tokens(output // 2)), "audio_tokens": draw(odd)}) | odd
        ),
        "cost": draw(odd),
    }
    extra = ("input_tokens", "cached_tokens", "prompt_cache_hit_tokens", "cache_write_tokens", "reasoning_tokens")
    extra = (*extra, "num_search_queries", "server_tool_use")
    raw |= {name: draw(odd) for name in draw(st.sets(st.sampled_from(extra), max_size=1)) if draw(st.booleans())}
    if isinstance(raw["prompt_tokens_details"], dict) and draw(st.integers(0, 9)) == 0:
        raw["prompt_tokens_details"] = raw["prompt_tokens_details"] | {"cache_creation_tokens": draw(odd)}
    kept = draw(st.sets(st.sampled_from(sorted(raw))))
    return {name: value for name, value in raw.items() if name in kept or draw(st.booleans())}


@st.composite
def targets(draw: st.DrawFn) -> CoreTarget:
    target = target_pb2.Target(
        id="t",
        kind=draw(st.sampled_from([target_pb2.TARGET_KIND_SINGLE] * 4 + [target_pb2.TARGET_KIND_MOM])),
        model="own",
        usage_dialect=draw(st.sampled_from(list(target_pb2.UsageDialect.values()))),
        cache_reporting=draw(st.sampled_from(list(target_pb2.CacheReporting.values()))),
        model_aliases={"other": "own"},
    )
    for name, value in (
        *(("input", draw(st.integers(0, 9))), ("cached_input", draw(st.integers(0, 9)))),
        *(("cache_write", draw(st.integers(0, 9))), ("output", draw(st.integers(0, 9)))),
    ):
        setattr(target.prices["own"], f"{name}_picodollars", value)
    if draw(st.booleans()):
        target.prices["own"].cache_write_1h_picodollars = 7
    return CoreTarget(target)


def long_way(target: CoreTarget, receipt: pb.Receipt) -> Derived:
    return _derived(settle(_returned(receipt), target._meter))


@settings(max_examples=500)
@given(usages(), targets(), st.data())
def test_both_ways_agree_whatever_comes(raw: Any, target: CoreTarget, data: st.DataObject) -> None:
    receipt = pb.Receipt(
        status=pb.CALL_STATUS_COMPLETED,
        usage_json=json.dumps(raw).encode(),
        usage_final=data.draw(st.sampled_from([True, True, False])),
        response_model=data.draw(st.sampled_from(["", "own", "other", "stranger", "own-2026"])),
        content_chars=data.draw(st.sampled_from([0, 5])),
    )
    assert target.price(receipt) == long_way(target, receipt)


def single(**fields: Any) -> CoreTarget:
    target = target_pb2.Target(id="t", kind=target_pb2.TARGET_KIND_SINGLE, model="own", **fields)
    for name, value in (("input", 5), ("cached_input", 2), ("cache_write", 6), ("output", 20)):
        setattr(target.prices["own"], f"{name}_picodollars", value)
    return CoreTarget(target)


@pytest.mark.parametrize(
    "raw",
    [
        {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13, "prompt_tokens_details": {"cached_tokens": 4}},
        {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13, "prompt_tokens_details": None, "cost": 0.1},
        {"prompt_tokens": 10, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 2}},
        {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13, "prompt_tokens_details": {"audio_tokens": 0}},
    ],
)
@pytest.mark.parametrize("silent", [target_pb2.CACHE_REPORTING_NONE, target_pb2.CACHE_REPORTING_UNSPECIFIED])
def test_common_usage_objects_take_the_short_way(raw: Any, silent: Any) -> None:
    receipt = pb.Receipt(usage_json=json.dumps(raw).encode(), usage_final=True, content_chars=5)
    target = single(cache_reporting=silent)
    found = target._plain(receipt)
    assert found is not None
    assert found == long_way(target, receipt)


@pytest.mark.parametrize("text", [b"", b"null", b"[]", b"{", b'{"prompt_tokens": NaN}', b'"text"'])
def test_what_is_no_usage_object_takes_the_long_way(text: bytes) -> None:
    receipt = pb.Receipt(usage_json=text, usage_final=True, content_chars=5)
    assert single()._plain(receipt) is None
    assert single().price(receipt) == long_way(single(), receipt)
