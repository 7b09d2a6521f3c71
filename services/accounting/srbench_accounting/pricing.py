"""Token buckets to money, in exact integers of picodollars (1e-12 US dollars); a price is picodollars a token.

One picodollar a token is one micro-dollar per million tokens, so list prices are integers and no call is rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from srbench_accounting.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What one model costs, in picodollars a token; `None` is a price that nobody declared.

    Attributes:
        cache_write_1h: writes to a cache that lives an hour; `None` where the provider has no such class.
    """

    input: int | None
    cached_input: int | None
    cache_write: int | None
    output: int | None
    cache_write_1h: int | None = None

    def highest_prompt_rate(self) -> int | None:
        """The dearest way in which a prompt token can be charged; `None` when a class has no price."""
        rates = (self.input, self.cached_input, self.cache_write)
        known = [rate for rate in rates if rate is not None]
        return max(*known, self.cache_write_1h or 0) if len(known) == len(rates) else None


NO_PRICE = Price(input=None, cached_input=None, cache_write=None, output=None)


@dataclass(frozen=True, slots=True)
class Cost:
    """What something cost, between two bounds in picodollars; `upper` is `None` when nothing bounds it."""

    lower: int
    upper: int | None

    @property
    def exact(self) -> int | None:
        """The cost, when it does not depend on what is unknown."""
        return self.lower if self.lower == self.upper else None

    def __add__(self, other: Cost) -> Cost:
        upper = None if self.upper is None or other.upper is None else self.upper + other.upper
        return Cost(self.lower + other.lower, upper)


FREE = Cost(0, 0)


def total_cost(costs: Iterable[Cost]) -> Cost:
    """The sum of `costs`; exact when all are."""
    return sum(costs, FREE)


def cost_of(usage: Usage, price: Price) -> Cost:
    """The cost of `usage` at `price`.

    Known when no unknown count or price can move it: empty buckets need no price, a rate of zero needs no count, and a
    prompt of known size needs no split when the rates of the unknown parts are equal.
    """
    return _prompt_cost(usage, price) + _output_cost(usage, price.output)


def cache_neutral_cost(usage: Usage, price: Price) -> int | None:
    """The cost had no cache been there: every prompt token at the fresh price. `None` when size or price is unknown."""
    return (_charge(usage.prompt_tokens, [price.input]) + _output_cost(usage, price.output)).exact


def _output_cost(usage: Usage, rate: int | None) -> Cost:
    if usage.output_tokens is not None:
        return _charge(usage.output_tokens, [rate])
    return Cost(usage.output_tokens_at_least * (rate or 0), 0 if rate == 0 else None)


def _prompt_cost(usage: Usage, price: Price) -> Cost:
    write_rates, write_known = _write_rates(usage, price)
    rates: dict[str, list[int | None]] = {"input": [price.input], "cached": [price.cached_input], "write": write_rates}
    counts = {"input": usage.input_tokens, "cached": usage.cached_input_tokens, "write": usage.cache_write_tokens}
    if counts["write"] is None and not usage.write_charged:
        counts["write"] = 0
    elif counts["write"] is None and usage.prompt_tokens is not None:
        # The fresh count was made as if nothing had been written; some of it may have been.
        counts["input"] = None
    known = {name: count for name, count in counts.items() if count is not None}
    unknown = [rate for name, count in counts.items() if count is None for rate in rates[name]]
    costs = [write_known if name == "write" and write_known else _charge(n, rates[name]) for name, n in known.items()]
    if unknown:
        rest = None if usage.prompt_tokens is None else usage.prompt_tokens - sum(known.values())
        costs.append(_charge(rest, unknown))
    return total_cost(costs)


def _write_rates(usage: Usage, price: Price) -> tuple[list[int | None], Cost | None]:
    """The rates at which a cache write may be charged, and what the writes cost where their lifetimes are known."""
    written, hour = usage.cache_write_tokens, usage.cache_write_1h_tokens
    if written is not None and hour is not None:
        known = _charge(written - hour, [price.cache_write]) + _charge(hour, [price.cache_write_1h])
        return [price.cache_write], known
    if price.cache_write_1h is None:
        return [price.cache_write], None
    return [price.cache_write, price.cache_write_1h], None


def _charge(count: int | None, rates: list[int | None]) -> Cost:
    """What `count` tokens cost when each is charged at one of `rates`; an unknown count is anything from zero."""
    known = [rate for rate in rates if rate is not None]
    highest = max(known) if len(known) == len(rates) else None
    if count is None:
        return Cost(0, 0 if highest == 0 else None)
    if count == 0:
        return FREE
    return Cost(count * (min(known) if highest is not None else 0), None if highest is None else count * highest)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """The prices of one target.

    Attributes:
        prices: by model name.
        aliases: names that a provider may answer with, each with the priced model that it stands for.
    """

    prices: Mapping[str, Price]
    aliases: Mapping[str, str]

    def find(self, model: str) -> Price | None:
        """The price of the model that calls itself `model`: its own, or its declared alias's.

        A name that only looks like a priced one, such as a dated snapshot of it, has no price: a guess could prove a
        saving that is none. The operator declares such names once, in `model_aliases`.
        """
        return self.prices.get(model) or self.prices.get(self.aliases.get(model, ""))

    def looks_like_snapshot(self, model: str) -> bool:
        """Whether `model` is an unpriced name that extends a priced one, as `gpt-x-2026-01-01` extends `gpt-x`."""
        names = (*self.prices, *self.aliases)
        return self.find(model) is None and any(model.startswith((f"{name}-", f"{name}@")) for name in names)
