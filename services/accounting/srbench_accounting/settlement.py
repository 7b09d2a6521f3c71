"""From what came back of one call to its tokens and its money: the only place where both are derived."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from srbench_accounting.dialects import Dialect
from srbench_accounting.pricing import NO_PRICE, Cost, Price, PriceList, cache_neutral_cost, cost_of, total_cost
from srbench_accounting.receipts import BadReceipt, ReceiptCall, RouterReceipt, read_receipt
from srbench_accounting.usage import Reading, Usage, read_usage

if TYPE_CHECKING:
    from srbench_kit.values import Json

_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """How one target's calls are metered, frozen in the plan.

    Attributes:
        router: whether several models stand behind it.
        model: the name that is asked for; prices a single model's call when the answer names none.
        dialect: the declared shape of its usage object.
        silent_cache: whether silence about cached input is a declared zero.
        max_inference_calls: most calls a router may make for one request; `None` for no limit.
    """

    router: bool
    model: str
    price_list: PriceList
    dialect: Dialect = Dialect.DETECT
    silent_cache: bool = False
    max_inference_calls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What came back of one call, as far as it bears on tokens and money.

    Attributes:
        usage_json: the usage object, merged over the stream; empty when none came.
        usage_final: whether the stream came to its own end.
        router_receipt_json: the router's receipt; empty when none came.
        response_model: the model name in the answer; empty when none came.
        selected_model: the physical model that a router says it chose; empty when it says nothing.
        inference_call_count: the router's own count of calls.
        output_seen: whether any text arrived.
    """

    usage_json: bytes = b""
    usage_final: bool = True
    router_receipt_json: bytes = b""
    response_model: str = ""
    selected_model: str = ""
    inference_call_count: int | None = None
    output_seen: bool = False


@dataclass(frozen=True, slots=True)
class ModelShare:
    """One inference call's part: tokens and cost at its own model's price."""

    model: str
    usage: Usage
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Tokens and money of one call.

    Attributes:
        flags: why something is unknown, as stable words in alphabetical order.
        cache_read_reported: whether every count of cached input came from the endpoint; `None` without usage.
        cache_neutral_picodollars: the cost with every prompt token at the fresh price; `None` when unknown.
        model_usage: a router's calls; empty for a single model and without a receipt.
        inference_call_count: model calls behind the request; `None` when unknown.
    """

    usage: Usage
    cost: Cost
    flags: tuple[str, ...]
    cache_read_reported: bool | None
    cache_neutral_picodollars: int | None
    model_usage: tuple[ModelShare, ...] = ()
    inference_call_count: int | None = None


def settle(returned: Returned, meter: Meter) -> Settlement:
    """The tokens and the money of one call; never raises for anything that came from outside.

    A single model is priced at the name in its answer, a router at its receipt, or, without one, at the selected model
    when it says that it made one call. A router's usage is never priced at the name in its stream.
    """
    if not meter.router:
        return _bounded(_settle_stream(returned, meter, returned.response_model or meter.model, 1))
    if returned.router_receipt_json:
        return _bounded(_settle_receipt(returned, meter))
    count = _believed_count(returned.inference_call_count)
    if count == 1 and returned.selected_model:
        return _bounded(_settle_stream(returned, meter, returned.selected_model, 1))
    flags = ("no_receipt",) if returned.inference_call_count == count else ("no_receipt", "receipt_invalid")
    return _unknown(count, flags)


def _settle_stream(returned: Returned, meter: Meter, model: str, call_count: int) -> Settlement:
    raw = parse_json(returned.usage_json)
    reading = read_usage(
        raw,
        dialect=meter.dialect,
        silent_cache=meter.silent_cache,
        final=returned.usage_final,
        output_seen=returned.output_seen,
    )
    price, price_flags = _price(meter.price_list, model)
    cost, neutral = _money(reading, price)
    return Settlement(
        usage=reading.usage,
        cost=cost,
        flags=_joined(reading.flags, price_flags),
        cache_read_reported=reading.cache_read_reported,
        cache_neutral_picodollars=neutral,
        inference_call_count=call_count,
    )


def _settle_receipt(returned: Returned, meter: Meter) -> Settlement:
    stated = _believed_count(returned.inference_call_count)
    try:
        raw = parse_json(returned.router_receipt_json)
        receipt = read_receipt(raw, dialect=meter.dialect, silent_cache=meter.silent_cache)
    except BadReceipt:
        return _unknown(stated, ("receipt_invalid",))
    shares, flags, neutral = _shares(receipt.calls, meter.price_list)
    complete = receipt.complete and stated in (None, len(receipt.calls))
    if not receipt.complete:
        flags = _joined(flags, ("receipt_incomplete",))
    elif not complete:
        flags = _joined(flags, ("contradictory_call_count",))
    if meter.max_inference_calls is not None and len(shares) > meter.max_inference_calls:
        flags = _joined(flags, ("too_many_inference_calls",))
    cost = total_cost(share.cost for share in shares)
    return Settlement(
        usage=_summed([share.usage for share in shares]) if complete else Usage(),
        cost=cost if complete else Cost(cost.lower, None),
        flags=flags,
        cache_read_reported=_all_reported([call.reading for call in receipt.calls]),
        cache_neutral_picodollars=neutral if complete else None,
        model_usage=shares,
        inference_call_count=len(shares) if complete else _count_of_partial(receipt, stated),
    )


def _shares(calls: Sequence[ReceiptCall], prices: PriceList) -> tuple[tuple[ModelShare, ...], tuple[str, ...], int | None]:
    shares: list[ModelShare] = []
    neutral: int | None = 0
    flags: tuple[str, ...] = ()
    for call in calls:
        price, price_flags = _price(prices, call.model)
        cost, fresh = _money(call.reading, price)
        shares.append(ModelShare(call.model, call.reading.usage, cost))
        neutral = None if neutral is None or fresh is None else neutral + fresh
        flags = _joined(flags, call.reading.flags, price_flags)
    return tuple(shares), flags, neutral


def _money(reading: Reading, price: Price) -> tuple[Cost, int | None]:
    """What the tokens cost, and would have without a cache; a lower bound and unknown where more than tokens is charged."""
    cost = cost_of(reading.usage, price)
    if reading.charged_beside:
        return Cost(cost.lower, None), None
    return cost, cache_neutral_cost(reading.usage, price)


def _count_of_partial(receipt: RouterReceipt, stated: int | None) -> int | None:
    """An incomplete receipt proves no count; a header that exceeds what it lists may."""
    return stated if not receipt.complete and stated is not None and stated >= len(receipt.calls) else None


def _price(prices: PriceList, model: str) -> tuple[Price, tuple[str, ...]]:
    price = prices.find(model)
    if price is not None:
        return price, ()
    return NO_PRICE, ("undeclared_snapshot" if prices.looks_like_snapshot(model) else "unpriced_model",)


def _summed(usages: Sequence[Usage]) -> Usage:
    """The buckets of several calls together; a bucket that one of them does not know is unknown."""

    def total(counts: list[int | None]) -> int | None:
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    return Usage(
        input_tokens=total([usage.input_tokens for usage in usages]),
        cached_input_tokens=total([usage.cached_input_tokens for usage in usages]),
        cache_write_tokens=total([usage.cache_write_tokens for usage in usages]),
        output_tokens=total([usage.output_tokens for usage in usages]),
        prompt_tokens=total([usage.prompt_tokens for usage in usages]),
        cache_write_1h_tokens=total([usage.cache_write_1h_tokens for usage in usages]),
    )


def _all_reported(readings: Sequence[Reading]) -> bool | None:
    said = [reading.cache_read_reported for reading in readings]
    return None if all(word is None for word in said) else all(said)


def _believed_count(count: int | None) -> int | None:
    return count if count is not None and count >= 1 else None


def _unknown(call_count: int | None, flags: tuple[str, ...]) -> Settlement:
    return Settlement(
        usage=Usage(),
        cost=Cost(0, None),
        flags=flags,
        cache_read_reported=None,
        cache_neutral_picodollars=None,
        inference_call_count=call_count,
    )


def _bounded(settlement: Settlement) -> Settlement:
    """The settlement with amounts that the ledger's 64 bits hold; what does not fit cannot be true and is unknown."""
    if not _too_large(settlement):
        return settlement
    return _unknown(settlement.inference_call_count, _joined(settlement.flags, ("out_of_range",)))


def _too_large(settlement: Settlement) -> bool:
    cost, usage = settlement.cost, settlement.usage
    shares = [amount for share in settlement.model_usage for amount in (share.cost.lower, share.cost.upper)]
    buckets = (usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens, usage.output_tokens)
    amounts = [cost.lower, cost.upper, settlement.cache_neutral_picodollars, *shares, usage.prompt_tokens, *buckets]
    return any(amount is not None and amount > _INT64_MAX for amount in amounts)


def _joined(*flags: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({flag for group in flags for flag in group}))


def parse_json(text: bytes) -> Json:
    """JSON that came from outside; `None` for nothing, and a plain string, which fits no schema, for what is no JSON."""
    if not text:
        return None
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return "not JSON"
    return value
