"""The route that says what saved calls would have cost at other prices."""

from __future__ import annotations

from decimal import Decimal

import orjson
from srbench.v1 import price_estimate_pb2, usage_pb2
from srbench_kit import views
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_gateway.params import Param
from srbench_gateway.reading_routes import REPORT_TIMEOUT_S
from srbench_gateway.routes import Ask, Object, Route
from srbench_gateway.schema import ref

MAX_PRICES_CHARS = 16_384
KINDS = ("input", "cached_input", "cache_write", "output")
LONG_WRITE = "cache_write_1h"
MAX_USD = 1_000_000
# One picodollar a token is one micro-dollar a million tokens.
_MICRO = 10**6


async def price_estimate(ask: Ask) -> Object:
    request = price_estimate_pb2.EstimatePricesRequest(run_id=await ask.visible_run())
    for model, price in prices(ask.text("prices")).items():
        request.prices[model].CopyFrom(price)
    found = await ask.accounting(ask.facts.EstimatePrices, request, REPORT_TIMEOUT_S)
    return views.plain(found)


def prices(text: str) -> dict[str, usage_pb2.Price]:
    """Prices by model, written as in targets. Raises: `InvalidInput` (`BAD_PRICE`)."""
    try:
        given: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        raise InvalidInput("BAD_PRICE", "prices is not JSON; expected an object of prices by model", field="prices")
    return {model: _price(model[:100], price) for model, price in given.items()}


def _price(model: str, given: Json) -> usage_pb2.Price:
    if not isinstance(given, dict) or not set(KINDS) <= given.keys() <= {*KINDS, LONG_WRITE}:
        raise InvalidInput("BAD_PRICE", f"prices.{model} is not a price; expected {', '.join(KINDS)}", field="prices")
    amounts = {f"{kind}_picodollars": _picodollars(f"prices.{model}.{kind}", value) for kind, value in given.items()}
    return usage_pb2.Price(**amounts)


def _picodollars(path: str, value: Json) -> int:
    expected = f"US dollars per million tokens from 0 to {MAX_USD}, with at most 6 decimals"
    if not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value <= MAX_USD:
        exact = Decimal(repr(value)) * _MICRO
        if exact == exact.to_integral_value():
            return int(exact)
    raise InvalidInput("BAD_PRICE", f"{path} is {str(value)[:40]}; expected {expected}", field="prices")


ROUTES = [
    Route(
        method="GET",
        path="/runs/{run_id}/price-estimate",
        about="Estimates what a run's saved calls would have cost at other prices. Nothing is called.",
        answer=price_estimate,
        params=(
            Param(
                "prices",
                "text",
                "Prices by model as in targets, in US dollars per million tokens, as a JSON object.",
                high=MAX_PRICES_CHARS,
                required=True,
            ),
        ),
        shows=ref(price_estimate_pb2.PriceEstimate),
    ),
]
