"""From what came back to tokens and money: single models, routers with and without receipts, and hostile ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_accounting.dialects import Dialect
from srbench_accounting.pricing import Price, PriceList
from srbench_accounting.settlement import Meter, Returned, Settlement, settle
from srbench_accounting.usage import Usage

PRICES = {
    "alpha": Price(input=100, cached_input=10, cache_write=125, output=400),
    "beta": Price(input=4, cached_input=4, cache_write=4, output=16),
}
PRICE_LIST = PriceList(prices=PRICES, aliases={"alpha-2026-01-01": "alpha"})
SINGLE = Meter(router=False, model="alpha", price_list=PRICE_LIST)
ROUTER = Meter(router=True, model="auto", price_list=PRICE_LIST, max_inference_calls=3)
USAGE = b'{"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13, "prompt_tokens_details": {"cached_tokens": 4}}'
COST = 6 * 100 + 4 * 10 + 3 * 400


def receipt(*calls: Any, complete: Any = True, version: Any = 1) -> bytes:
    return json.dumps({"version": version, "complete": complete, "calls": list(calls)}).encode()


def child(model: str, total: int = 10, cached: int = 4, output: int = 3) -> dict[str, Any]:
    counts = {"input_tokens": total, "cached_input_tokens": cached, "cache_write_tokens": 0, "output_tokens": output}
    return {"model": model, "usage": counts, "latency_ms": 5}


def test_a_single_model_is_priced_at_the_name_in_its_answer() -> None:
    assert settle(Returned(usage_json=USAGE, response_model="beta"), SINGLE).cost.exact == 10 * 4 + 3 * 16
    made = settle(Returned(usage_json=USAGE, response_model="alpha-2026-01-01"), SINGLE)
    assert (made.cost.exact, made.inference_call_count, made.flags) == (COST, 1, ())


def test_a_single_model_whose_answer_names_none_is_priced_at_its_own() -> None:
    made = settle(Returned(usage_json=USAGE), SINGLE)
    assert (made.cost.exact, made.cache_neutral_picodollars) == (COST, 10 * 100 + 3 * 400)


@pytest.mark.parametrize(
    ("model", "flag"),
    [("alpha-2027-01-01", "undeclared_snapshot"), ("gamma", "unpriced_model"), ("Alpha", "unpriced_model")],
)
def test_a_name_without_a_price_costs_an_unknown_amount(model: str, flag: str) -> None:
    made = settle(Returned(usage_json=USAGE, response_model=model), SINGLE)
    assert (made.cost.exact, made.cache_neutral_picodollars, made.flags) == (None, None, (flag,))
    assert made.usage.output_tokens == 3


def test_an_answer_without_usage_costs_an_unknown_amount() -> None:
    made = settle(Returned(response_model="alpha"), SINGLE)
    assert (made.cost.lower, made.cost.upper, made.usage, made.flags) == (0, None, Usage(), ("no_usage",))
    assert made.cache_read_reported is None


def test_what_is_charged_beside_tokens_leaves_a_lower_bound() -> None:
    searched = json.loads(USAGE) | {"num_search_queries": 2}
    made = settle(Returned(usage_json=json.dumps(searched).encode()), SINGLE)
    assert (made.cost.lower, made.cost.upper, made.cache_neutral_picodollars) == (COST, None, None)
    assert (made.usage.output_tokens, made.flags) == (3, ("charged_beside_tokens",))
    told = child("alpha")
    told["usage"]["server_tool_use"] = {"web_search_requests": 1}
    routed = settle(Returned(router_receipt_json=receipt(child("beta"), told)), ROUTER)
    assert (routed.cost.lower, routed.cost.upper) == (COST + 6 * 4 + 4 * 4 + 3 * 16, None)


@pytest.mark.parametrize(
    "raw", [b"[1]", b'"text"', b"3", b"{", b"\xff\xfe", b"[" * 100_000, b'{"prompt_tokens": ' + b"9" * 5000 + b"}", b"NaN"]
)
def test_hostile_usage_is_unknown_and_never_an_error(raw: bytes) -> None:
    for returned in (Returned(usage_json=raw), Returned(usage_json=raw, selected_model="alpha", inference_call_count=1)):
        for meter in (SINGLE, ROUTER):
            made = settle(returned, meter)
            assert made.cost.exact is None
            assert made.flags


def test_a_receipt_prices_each_call_at_its_own_model() -> None:
    made = settle(Returned(router_receipt_json=receipt(child("alpha"), child("beta")), usage_json=USAGE), ROUTER)
    assert [share.cost.exact for share in made.model_usage] == [COST, 10 * 4 + 3 * 16]
    assert made.cost.exact == COST + 88
    assert made.cache_neutral_picodollars == 10 * 100 + 3 * 400 + 88
    assert (made.usage.input_tokens, made.usage.cached_input_tokens, made.usage.output_tokens) == (12, 8, 6)
    assert (made.inference_call_count, made.cache_read_reported, made.flags) == (2, True, ())


def test_an_incomplete_receipt_proves_a_lower_bound_and_no_more() -> None:
    returned = Returned(router_receipt_json=receipt(child("alpha"), complete=False), inference_call_count=2)
    made = settle(returned, ROUTER)
    assert (made.cost.lower, made.cost.upper, made.cost.exact) == (COST, None, None)
    assert (made.usage, made.cache_neutral_picodollars, made.inference_call_count) == (Usage(), None, 2)
    assert made.flags == ("receipt_incomplete",)
    assert (
        settle(Returned(router_receipt_json=receipt(child("alpha"), complete=False)), ROUTER).inference_call_count is None
    )


def test_a_receipt_whose_header_counts_other_calls_is_not_believed() -> None:
    made = settle(Returned(router_receipt_json=receipt(child("alpha")), inference_call_count=2), ROUTER)
    assert (made.cost.exact, made.inference_call_count, made.flags) == (None, None, ("contradictory_call_count",))


def test_a_child_without_usage_or_price_makes_the_whole_unknown() -> None:
    for bad in ({"model": "alpha"}, {"model": "alpha", "usage": None}, {"model": "alpha", "usage": []}, child("gamma")):
        made = settle(Returned(router_receipt_json=receipt(child("beta"), bad)), ROUTER)
        assert made.cost.exact is None
        assert made.cost.lower >= 88
        assert made.inference_call_count == 2
        assert made.flags


def test_a_silent_child_is_unknown_unless_its_rates_are_equal_or_silence_was_declared() -> None:
    def silent(model: str) -> Returned:
        return Returned(router_receipt_json=receipt({"model": model, "usage": {"input_tokens": 10, "output_tokens": 3}}))

    assert settle(silent("alpha"), ROUTER).cost.exact is None
    assert settle(silent("beta"), ROUTER).cost.exact == 88
    assert settle(silent("beta"), ROUTER).cache_read_reported is False
    declared = Meter(router=True, model="auto", price_list=PRICE_LIST, silent_cache=True)
    assert settle(silent("alpha"), declared).cost.exact == 10 * 100 + 3 * 400


def test_more_calls_than_allowed_are_flagged_and_still_priced() -> None:
    made = settle(Returned(router_receipt_json=receipt(*[child("beta")] * 4)), ROUTER)
    assert (made.cost.exact, made.flags) == (4 * 88, ("too_many_inference_calls",))


def test_without_a_receipt_one_call_to_a_named_model_prices_the_stream() -> None:
    made = settle(Returned(usage_json=USAGE, selected_model="beta", inference_call_count=1, response_model="alpha"), ROUTER)
    assert (made.cost.exact, made.inference_call_count) == (88, 1)


@pytest.mark.parametrize(
    ("selected", "count"), [("", 1), ("beta", None), ("beta", 2), ("beta", 0), ("beta", -1), ("", None)]
)
def test_a_routers_usage_is_never_priced_at_the_name_in_its_stream(selected: str, count: int | None) -> None:
    returned = Returned(usage_json=USAGE, selected_model=selected, inference_call_count=count, response_model="alpha")
    made = settle(returned, ROUTER)
    assert (made.cost.exact, made.usage) == (None, Usage())
    assert "no_receipt" in made.flags
    assert made.inference_call_count == (count if count and count > 0 else None)


HOSTILE: list[bytes] = [
    b"[]",
    b"null",
    b"3",
    b'"x"',
    b"{}",
    b"{",
    b"[" * 50_000,
    receipt(),
    receipt(*[child("beta")] * 257),
    receipt(child("beta"), version=2),
    receipt(child("beta"), version=True),
    receipt(child("beta"), version="1"),
    receipt(child("beta"), version=1.0),
    receipt(child("beta"), complete=None),
    receipt(child("beta"), complete=1),
    receipt(None),
    receipt([]),
    receipt({"usage": {}}),
    receipt({"model": None, "usage": {}}),
    receipt({"model": 5}),
    receipt({"model": ""}),
    b'{"version": 1, "complete": true, "calls": {"0": {}}}',
]


@pytest.mark.parametrize("raw", HOSTILE)
def test_a_hostile_receipt_is_unknown_and_never_an_error(raw: bytes) -> None:
    made = settle(Returned(router_receipt_json=raw, usage_json=USAGE, selected_model="beta"), ROUTER)
    assert (made.cost.exact, made.usage, made.model_usage, made.flags) == (None, Usage(), (), ("receipt_invalid",))


def test_amounts_beyond_64_bits_are_unknown_not_an_overflow() -> None:
    huge = b'{"prompt_tokens": 9000000000000000000, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}}'
    made = settle(Returned(usage_json=huge), SINGLE)
    assert (made.cost.exact, made.cost.upper, made.usage) == (None, None, Usage())
    assert "out_of_range" in made.flags
    two = settle(Returned(router_receipt_json=receipt(child("beta", 2**62), child("beta", 2**62))), ROUTER)
    assert two.usage == Usage()
    assert two.model_usage == ()


def test_a_declared_dialect_holds_for_children_too() -> None:
    meter = Meter(router=True, model="auto", price_list=PRICE_LIST, dialect=Dialect.ANTHROPIC)
    usage = {"input_tokens": 6, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 0, "output_tokens": 3}
    made = settle(Returned(router_receipt_json=receipt({"model": "alpha", "usage": usage})), meter)
    assert made.cost.exact == COST


KEYS = ("version", "complete", "calls", "model", "usage", "input_tokens")
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False), st.sampled_from("ab1")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["version", "complete", "calls", "model", "usage", "input_tokens"]), inner, max_size=4
        ),
    ),
    max_leaves=12,
)


@given(json_values, json_values, st.one_of(st.none(), st.integers(-2, 10**18)), st.booleans())
def test_whatever_comes_is_settled(receipt_: Any, usage: Any, count: int | None, router: bool) -> None:
    returned = Returned(
        usage_json=json.dumps(usage).encode(),
        router_receipt_json=json.dumps(receipt_).encode() if router else b"",
        inference_call_count=count,
        selected_model="beta",
    )
    made = settle(returned, ROUTER if router else SINGLE)
    assert isinstance(made, Settlement)
    assert made.cost.lower >= 0
    assert made.cost.upper is None or made.cost.lower <= made.cost.upper < 2**63
