"""One target: its fields, their rules, and its canonical form.

In the canonical form a field that says no more than its default is left out, so that two spellings of one target are equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from urllib.parse import urlsplit

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import base_url, checks, sampling

MAX_INFERENCE_CALLS = 256
MAX_PRICE_USD = 1_000_000
MAX_CONFIG_HASH = 512
PRICE_DECIMALS = 6
PRICE_KEYS = ("input", "cached_input", "cache_write", "output")
LONG_WRITE_KEY = "cache_write_1h"
DIALECTS = ("openai", "anthropic", "deepseek", "gemini")
SECRETS = ("api_key", "authorization", "headers")
PREVIEW_PATH = "/api/v1/routing/preview"
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_VISIBLE = re.compile(r"[!-~]+\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def freeze_target(value: Json, path: str) -> dict[str, Json]:
    """The canonical form of the target `value`.

    Raises: `InvalidInput` (`UNKNOWN_FIELD`, `MISSING_FIELD`, `BAD_FIELD`, `BAD_URL`, `SECRET_IN_TARGET`, `BAD_PRICE`).
    """
    found = checks.obj(value, path)
    for key in SECRETS:
        if key in found:
            raise InvalidInput(
                "SECRET_IN_TARGET",
                f"{path}.{key} may hold a secret, which no plan may; name its variable in {path}.api_key_env",
                field=f"{path}.{key}",
            )
    checks.known_keys(found, FIELDS, path)
    for key in ("id", "kind", "model", "base_url"):
        if found.get(key) is None:
            raise checks.missing(f"{path}.{key}", _REQUIRED[key])
    frozen: dict[str, Json] = {}
    for key, rule in FIELDS.items():
        if found.get(key) is not None:
            item = rule(found[key], f"{path}.{key}")
            if item is not None and item != {} and item is not False:
                frozen[key] = item
    _check_kind(frozen, path)
    return frozen


def price_picodollars(value: Json, path: str) -> int:
    """A price in US dollars per million tokens as picodollars a token. Raises: `InvalidInput` (`BAD_PRICE`)."""
    expected = f"US dollars per million tokens from 0 to {MAX_PRICE_USD}, with at most {PRICE_DECIMALS} decimals"
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_PRICE_USD:
        raise checks.bad(path, value, expected, "BAD_PRICE")
    exact = Decimal(repr(value)) * 10**PRICE_DECIMALS
    if exact != exact.to_integral_value():
        raise checks.bad(path, value, expected, "BAD_PRICE")
    return int(exact)


def _prices(value: Json, path: str) -> Json:
    prices = checks.obj(value, path)
    frozen: dict[str, Json] = {}
    for model, given in prices.items():
        here = f"{path}.{checks.text(model, path)}"
        price = checks.obj(given, here)
        checks.known_keys(price, (*PRICE_KEYS, LONG_WRITE_KEY), here)
        for key in PRICE_KEYS:
            if key not in price:
                raise checks.missing(f"{here}.{key}", "US dollars per million tokens; 0 when it is free")
        kept = [key for key in (*PRICE_KEYS, LONG_WRITE_KEY) if price.get(key) is not None or key in PRICE_KEYS]
        for key in kept:
            price_picodollars(price[key], f"{here}.{key}")
        frozen[model] = {key: price[key] for key in kept}
    return frozen


def _aliases(value: Json, path: str) -> Json:
    aliases = checks.obj(value, path)
    return {checks.text(name, path): checks.text(model, f"{path}.{name}") for name, model in aliases.items()}


def _native_limits(value: Json, path: str) -> Json:
    frozen: dict[str, Json] = {}
    for model, given in checks.obj(value, path).items():
        here = f"{path}.{checks.text(model, path)}"
        limit = checks.obj(given, here)
        checks.known_keys(limit, ("context_window", "max_output_tokens"), here)
        window = checks.integer(limit.get("context_window"), f"{here}.context_window", 1)
        output = checks.integer(limit.get("max_output_tokens"), f"{here}.max_output_tokens", 1)
        if output > window:
            raise checks.bad(f"{here}.max_output_tokens", output, f"at most {here}.context_window, {window}")
        frozen[model] = {"context_window": window, "max_output_tokens": output}
    return frozen


def _variable(value: Json, path: str) -> Json:
    name = value if value == "" else checks.text(value, path, most=128)
    if name and not _VARIABLE.match(str(name)):
        # The value is not shown: somebody may have put the key itself here.
        raise InvalidInput("BAD_FIELD", f"{path} is not the name of an environment variable", field=path)
    return name or None


def _maybe(rule: Callable[[Json, str], Json]) -> Callable[[Json, str], Json]:
    """An empty text counts as absent."""
    return lambda value, path: None if value == "" else rule(value, path)


def _word(*words: str) -> Callable[[Json, str], Json]:
    return _maybe(lambda value, path: checks.one_of(value, path, words))


def _default_word(default: str, other: str) -> Callable[[Json, str], Json]:
    return lambda value, path: None if checks.one_of(value, path, (default, other)) == default else value


def _config_hash(value: Json, path: str) -> Json:
    """It travels in a header, where a line end would begin another one."""
    found = checks.text(value, path, most=MAX_CONFIG_HASH)
    if not _VISIBLE.match(found):
        raise checks.bad(path, found, f"1 to {MAX_CONFIG_HASH} visible ASCII characters")
    return found


def _count(value: Json, path: str) -> Json:
    return checks.integer(value, path, 1)


def _request_params(value: Json, path: str) -> Json:
    return sampling.check_shape(value, path, removals=True)


_REQUIRED = {
    "id": "a name that is unique over all targets",
    "kind": "single or mom",
    "model": "the name that is sent as model",
    "base_url": "an http or https address such as http://127.0.0.1:8000/v1",
}

# In the order in which a frozen target shows them.
FIELDS: dict[str, Callable[[Json, str], Json]] = {
    "id": lambda value, path: checks.text(value, path, most=256),
    "kind": lambda value, path: checks.one_of(value, path, ("single", "mom")),
    "model": lambda value, path: checks.text(value, path, most=512),
    "base_url": base_url.base_url,
    "api_key_env": _variable,
    "request_params": _request_params,
    "prices": _prices,
    "model_aliases": _aliases,
    "max_inference_calls": lambda value, path: checks.integer(value, path, 1, MAX_INFERENCE_CALLS),
    "config_hash": _maybe(_config_hash),
    "preview_url": _maybe(base_url.web_url),
    "preview_api_key_env": _variable,
    "capture_recipe": checks.boolean,
    "expected_response_model": _maybe(lambda value, path: checks.text(value, path, most=512)),
    "usage_dialect": _word(*DIALECTS),
    "cache_reporting": _word("none"),
    "response_mode": _default_word("stream", "json"),
    "session_mode": _default_word("none", "session_aware"),
    "max_concurrency": _count,
    "requests_per_minute": _count,
    "tokens_per_minute": _count,
    "native_limits": _native_limits,
    # Allowed by the released registry and never read by it; kept so that its files load.
    "cost_mode": lambda value, path: checks.text(value, path, most=64),
}


def _check_kind(frozen: dict[str, Json], path: str) -> None:
    if frozen["kind"] == "single":
        for key in ("max_inference_calls", "preview_url", "preview_api_key_env", "capture_recipe"):
            if key in frozen:
                raise checks.bad(f"{path}.{key}", frozen[key], "absent; only a target of kind mom has it")
    if "capture_recipe" in frozen:
        _check_capture(frozen, path)
    aliases, prices = frozen.get("model_aliases"), frozen.get("prices")
    if isinstance(aliases, dict) and isinstance(prices, dict) and prices:
        for name, model in aliases.items():
            if model not in prices:
                raise checks.bad(f"{path}.model_aliases.{name}", model, "a model that has a price in the same target")


def _check_capture(frozen: dict[str, Json], path: str) -> None:
    """A recipe is read from the router itself, so its address and the hash it must have are needed."""
    if not isinstance(frozen.get("config_hash"), str) or not _DIGEST.match(str(frozen["config_hash"])):
        raise checks.bad(
            f"{path}.config_hash", frozen.get("config_hash"), "64 lower-case hex digits, which capture_recipe needs"
        )
    if urlsplit(str(frozen.get("preview_url", ""))).path != PREVIEW_PATH:
        raise checks.bad(
            f"{path}.preview_url", frozen.get("preview_url"), f"an address whose path is {PREVIEW_PATH}, for capture_recipe"
        )


def check_live(frozen: dict[str, Json], path: str, *, priced: bool) -> None:
    """What a target needs beyond its shape to be called. `priced` stands for cost policy `require_priced`.

    Raises: `InvalidInput` (`MISSING_FIELD`).
    """
    mom = frozen["kind"] == "mom"
    if mom and "config_hash" not in frozen:
        raise checks.missing(f"{path}.config_hash", "the hash of the router configuration under test")
    if not priced:
        return
    prices = frozen.get("prices")
    if not isinstance(prices, dict):
        raise checks.missing(f"{path}.prices", "prices by model, or cost_policy capability_only")
    if not mom and str(frozen["model"]) not in prices:
        raise checks.missing(f"{path}.prices.{frozen['model']}", "the price of the target's own model")
    if mom and "max_inference_calls" not in frozen:
        raise checks.missing(
            f"{path}.max_inference_calls", f"1 to {MAX_INFERENCE_CALLS}, which bounds the cost of a request"
        )


def unique_ids(targets: list[dict[str, Json]], path: str) -> None:
    """Refuses two targets of one id. Raises: `InvalidInput` (`DUPLICATE_TARGET`)."""
    seen: set[str] = set()
    for target in targets:
        name = str(target["id"])
        if name in seen:
            raise InvalidInput(
                "DUPLICATE_TARGET", f"{path} has the id {name!r} twice; expected unique ids", field=path, value=name
            )
        seen.add(name)
