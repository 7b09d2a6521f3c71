"""A targets file for `sr-bench target register` that points at a testbed."""

from __future__ import annotations

from srbench_kit.values import Json

from srbench_testbed.config import Config, Model, Price, Router

# What the testbed calls a dialect and the target schema calls otherwise, or finds out by itself.
_DIALECTS = {"anthropic": "anthropic", "deepseek": "deepseek", "gemini": "gemini"}


def targets_document(config: Config, base_url: str) -> dict[str, Json]:
    """All models as `single` targets and all routers as `mom` targets."""
    singles: list[Json] = [_single(model, base_url) for model in config.models]
    routers: list[Json] = [_mom(router, config, base_url) for router in config.routers]
    return {"targets": singles + routers}


def _single(model: Model, base_url: str) -> dict[str, Json]:
    names = dict.fromkeys([model.id, model.response_model or model.id])
    target: dict[str, Json] = {
        "id": model.id,
        "kind": "single",
        "model": model.id,
        "base_url": base_url,
        "prices": {name: _price(model.price) for name in names},
    }
    if model.response_mode == "json":
        target["response_mode"] = "json"
    if model.usage in _DIALECTS:
        target["usage_dialect"] = _DIALECTS[model.usage]
    return target


def _mom(router: Router, config: Config, base_url: str) -> dict[str, Json]:
    called = {call for route in router.routes for call in route.calls}
    return {
        "id": router.id,
        "kind": "mom",
        "model": router.id,
        "base_url": base_url,
        "prices": {model.id: _price(model.price) for model in config.models if model.id in called},
        "max_inference_calls": router.max_inference_calls,
        "config_hash": router.config_hash,
        "preview_url": base_url.removesuffix("/v1") + "/api/v1/routing/preview",
    }


def _price(price: Price) -> dict[str, Json]:
    return {
        "input": price.input,
        "cached_input": price.cached_input,
        "cache_write": price.cache_write,
        "output": price.output,
    }
