"""Money: exact, unknown when it must be, known when nothing unknown can move it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from srbench_accounting.columns import exact_sum
from srbench_accounting.pricing import NO_PRICE, Cost, Price, PriceList, cache_neutral_cost, cost_of, total_cost
from srbench_accounting.reservation import DearestRates, dearest_rates, reserve_at
from srbench_accounting.usage import Usage, read_usage

from tests.goldens import shared_cases

SONNET = Price(input=3_000_000, cached_input=300_000, cache_write=3_750_000, output=15_000_000)
FLAT = Price(input=2, cached_input=2, cache_write=2, output=5)


def usage(fresh: int | None, cached: int | None, write: int | None, output: int | None, **more: Any) -> Usage:
    known = [part for part in (fresh, cached, write) if part is not None]
    prompt = sum(known) if len(known) == 3 else None
    return Usage(
        input_tokens=fresh,
        cached_input_tokens=cached,
        cache_write_tokens=write,
        output_tokens=output,
        **{"prompt_tokens": prompt, **more},
    )


def test_each_bucket_is_charged_at_its_own_rate() -> None:
    assert cost_of(usage(1, 200_000, 0, 1000), SONNET).exact == 3_000_000 + 60_000_000_000 + 15_000_000_000
    assert cost_of(usage(5, 0, 1500, 9), SONNET).exact == 15_000_000 + 5_625_000_000 + 135_000_000


def test_a_million_small_calls_add_up_without_rounding() -> None:
    price = Price(input=150_000, cached_input=0, cache_write=0, output=600_000)
    one = cost_of(usage(1, 0, 0, 0), price)
    assert one.exact == 150_000
    assert exact_sum(np.full(1_000_000, one.exact)) == 150_000_000_000


def test_no_price_gives_no_cost_and_an_explicit_zero_gives_zero() -> None:
    assert cost_of(usage(100, 0, 0, 50), NO_PRICE) == Cost(0, None)
    free = Price(input=0, cached_input=0, cache_write=0, output=0)
    assert cost_of(usage(100, 0, 0, 50), free).exact == 0
    assert cost_of(Usage(), free).exact == 0


def test_an_empty_bucket_needs_no_price() -> None:
    price = Price(input=2, cached_input=None, cache_write=None, output=5)
    assert cost_of(usage(10, 0, 0, 1), price).exact == 25
    assert cost_of(usage(10, 1, 0, 1), price) == Cost(25, None)


def test_one_unknown_bucket_makes_the_cost_unknown_between_its_bounds() -> None:
    assert cost_of(usage(10, 0, 0, None), FLAT) == Cost(20, None)
    assert cost_of(usage(10, 0, None, 4), FLAT) == Cost(40, None)
    assert cost_of(Usage(), FLAT) == Cost(0, None)


def test_a_prompt_of_unknown_split_lies_between_its_cheapest_and_dearest_rate() -> None:
    openai = read_usage({"prompt_tokens": 90, "completion_tokens": 4}).usage
    assert cost_of(openai, SONNET) == Cost(90 * 300_000 + 60_000_000, 90 * 3_000_000 + 60_000_000)
    charged = Usage(prompt_tokens=90, output_tokens=4)
    assert cost_of(charged, SONNET) == Cost(90 * 300_000 + 60_000_000, 90 * 3_750_000 + 60_000_000)


def test_equal_rates_make_the_cost_exact_without_the_split() -> None:
    openai = read_usage({"prompt_tokens": 90, "completion_tokens": 4}).usage
    assert cost_of(openai, FLAT).exact == 200
    dear_writes = Price(input=2, cached_input=2, cache_write=9, output=5)
    assert cost_of(openai, dear_writes).exact == 200


def test_an_unknown_write_count_makes_the_fresh_count_doubtful() -> None:
    router = {"prompt_tokens": 100, "completion_tokens": 0, "cached_input_tokens": 60, "cache_read_input_tokens": 60}
    doubtful = read_usage(router).usage
    assert (doubtful.input_tokens, doubtful.cache_write_tokens) == (40, None)
    assert cost_of(doubtful, SONNET) == Cost(60 * 300_000 + 40 * 3_000_000, 60 * 300_000 + 40 * 3_750_000)
    assert cost_of(doubtful, Price(input=3, cached_input=1, cache_write=3, output=0)).exact == 180


def test_a_cut_stream_costs_at_least_what_it_had_counted() -> None:
    cut = read_usage(
        {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 0}}, final=False
    )
    assert cost_of(cut.usage, FLAT) == Cost(20 + 15, None)


def test_writes_for_an_hour_have_their_own_rate() -> None:
    hourly = Price(
        input=3_000_000, cached_input=300_000, cache_write=3_750_000, output=15_000_000, cache_write_1h=6_000_000
    )
    split = usage(5, 0, 1500, 9, cache_write_1h_tokens=500)
    assert cost_of(split, hourly).exact == 6_900_000_000
    assert cost_of(split, SONNET).exact is None
    unsplit = cost_of(usage(5, 0, 1500, 9), hourly)
    assert unsplit.exact is None
    assert (unsplit.lower, unsplit.upper) == (5_775_000_000, 150_000_000 + 9_000_000_000)
    assert cost_of(usage(5, 0, 0, 9), hourly).exact == 150_000_000
    assert cost_of(usage(5, 0, 1500, 9, cache_write_1h_tokens=0), SONNET).exact == 5_775_000_000


def test_without_caches_every_prompt_token_costs_the_fresh_price() -> None:
    assert cache_neutral_cost(usage(1, 2, 3, 4), SONNET) == 6 * 3_000_000 + 4 * 15_000_000
    assert cache_neutral_cost(Usage(prompt_tokens=6, output_tokens=4), SONNET) == 78_000_000
    assert cache_neutral_cost(usage(1, 2, None, 4), SONNET) is None
    assert cache_neutral_cost(usage(1, 2, 3, None), SONNET) is None
    assert cache_neutral_cost(usage(1, 2, 3, 4), NO_PRICE) is None


def test_a_model_is_priced_by_its_own_name_or_a_declared_alias_and_never_by_a_guess() -> None:
    prices = PriceList(prices={"gpt-x": FLAT}, aliases={"gpt-x-2026-01-01": "gpt-x", "lost": "nowhere"})
    assert prices.find("gpt-x") is FLAT
    assert prices.find("gpt-x-2026-01-01") is FLAT
    for name in ("gpt-x-2026-02-02", "gpt-y", "lost", "", "GPT-X"):
        assert prices.find(name) is None
    assert prices.looks_like_snapshot("gpt-x-2026-02-02")
    assert not prices.looks_like_snapshot("gpt-y")
    assert not prices.looks_like_snapshot("gpt-x-2026-01-01")


BUCKETS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")
tokens = st.integers(0, 10**7)
rates = st.integers(0, 10**8)
prices_ = st.builds(Price, input=rates, cached_input=rates, cache_write=rates, output=rates)
usages = st.builds(usage, tokens, tokens, tokens, tokens)


@given(
    usages,
    prices_,
    st.sets(st.sampled_from(["input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens"])),
)
def test_the_bounds_hold_the_true_cost_whatever_is_hidden(true: Usage, price: Price, hidden: set[str]) -> None:
    exact = cost_of(true, price).exact
    assert exact is not None
    known = {name: getattr(true, name) for name in Usage.__slots__ if name not in hidden}
    for prompt in (true.prompt_tokens, None):
        cost = cost_of(Usage(**{**known, "prompt_tokens": prompt}), price)
        assert cost.lower <= exact
        assert cost.upper is None or exact <= cost.upper
        assert cost.exact in (None, exact)


@given(usages, usages, prices_)
def test_cost_is_additive_so_the_order_of_calls_never_matters(a: Usage, b: Usage, price: Price) -> None:
    both = usage(
        (a.input_tokens or 0) + (b.input_tokens or 0),
        (a.cached_input_tokens or 0) + (b.cached_input_tokens or 0),
        (a.cache_write_tokens or 0) + (b.cache_write_tokens or 0),
        (a.output_tokens or 0) + (b.output_tokens or 0),
    )
    assert cost_of(both, price) == cost_of(a, price) + cost_of(b, price)


def test_a_single_model_reserves_its_dearest_prompt_and_all_its_output() -> None:
    rates = dearest_rates({"m": SONNET})
    assert rates == DearestRates(prompt=3_750_000, output=15_000_000)
    expected = (1000 + 2 * 64 + 256) * 3_750_000 + 4096 * 15_000_000
    assert reserve_at(rates, body_bytes=1000, messages=2, max_output_tokens=4096) == expected


def test_a_router_reserves_for_calls_that_read_what_others_wrote() -> None:
    price = Price(input=1_250_000, cached_input=125_000, cache_write=1_250_000, output=4_000_000)
    rates = dearest_rates({"m": price, "n": FLAT})
    assert rates is not None
    made = reserve_at(rates, body_bytes=900, messages=1, max_output_tokens=4096, inference_calls=3)
    prompt = 900 + 64 + 256 + 2 * 4096
    assert made == 3 * (prompt * 1_250_000 + 4096 * 4_000_000)
    assert made < 5 * 10**12 / 50


def test_nothing_is_reserved_where_a_price_is_missing() -> None:
    assert dearest_rates({}) is None
    half = Price(input=1, cached_input=1, cache_write=None, output=1)
    assert dearest_rates({"m": FLAT, "h": half}) is None


@given(prices_, st.integers(1, 10**5), st.integers(1, 20), st.integers(1, 10**4), st.integers(1, 5), st.data())
def test_no_request_that_keeps_its_bounds_costs_more_than_was_reserved(
    price: Price, body: int, messages: int, output: int, calls: int, data: st.DataObject
) -> None:
    rates = dearest_rates({"m": price})
    assert rates is not None
    reserved = reserve_at(rates, body_bytes=body, messages=messages, max_output_tokens=output, inference_calls=calls)
    spent = 0
    for call in range(calls):
        prompt = body + call * output
        cached = data.draw(st.integers(0, prompt))
        write = data.draw(st.integers(0, prompt - cached))
        spent += cost_of(usage(prompt - cached - write, cached, write, output), price).exact or 0
    assert spent <= reserved


def picodollars(text: str | None) -> int | None:
    return None if text is None else int(Decimal(text) * 10**6)


def shared_items(cases: list[dict[str, Any]]) -> list[Any]:
    found = []
    for case in cases:
        expected = {item["label"]: item for item in case["expected"]["items"]}
        found += [(case["id"], item, expected[item["label"]]) for item in case["input"]["items"]]
    return found


def test_every_shared_cost_case_gives_its_expected_cost() -> None:
    for name, item, expected in shared_items(shared_cases("cost")):
        extra = item.get("extra", {})
        rates = {rate: picodollars(text) for rate, text in item["prices"].items()}
        above = extra.get("tier")
        counts = item["buckets"]
        split = extra.get("cache_write_split", {})
        hour = {"cache_write_1h_tokens": split["1h"]} if split else {}
        tokens_used = usage(counts["input"], counts["cached_input"], counts["cache_write"], counts["output"], **hour)
        if above and (tokens_used.prompt_tokens or 0) > above["threshold_prompt_tokens"]:
            # Prices by tier are refused when a target is registered; see `docs/compatibility.md`.
            assert "tier rejected at configuration time" in expected["also_accept"], name
            continue
        price = Price(**rates, cache_write_1h=picodollars(extra.get("cache_write_1h_price")))
        one = cost_of(tokens_used, price).exact
        cost = None if one is None else exact_sum(np.full(extra.get("repeat", 1), one))
        wanted = None if expected["cost"] is None else Decimal(expected["cost"])
        assert (None if cost is None else Decimal(cost) / 10**12) == wanted, name


def test_a_cost_of_nothing_is_zero() -> None:
    assert total_cost([]).exact == 0
