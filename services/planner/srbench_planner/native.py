"""What `output_policy: native` asks of a plan: no artificial output cap, but each model's real window."""

from __future__ import annotations

from srbench_kit.values import Json

from srbench_planner import checks


def native_ceiling(targets: list[tuple[str, dict[str, Json]]], given_limit: Json, *, priced: bool) -> int:
    """The largest native output of all `targets`, (path, target) each; `limits.max_output_tokens` takes it.

    Raises: `InvalidInput` (`MISSING_FIELD`, `BAD_FIELD`).
    """
    windows: dict[str, tuple[str, Json]] = {}
    ceiling = 0
    for path, target in targets:
        native = target.get("native_limits")
        if not isinstance(native, dict):
            raise checks.missing(
                f"{path}.native_limits", "the window of each physical model, as output_policy native needs it"
            )
        if target["kind"] == "single":
            own = target.get("expected_response_model", target["model"])
            if list(native) != [own]:
                raise checks.bad(f"{path}.native_limits", list(native), f"exactly the model {own}")
        else:
            _check_router(path, target)
        for model, limit in native.items():
            first, seen = windows.setdefault(model, (path, limit))
            if seen != limit:
                raise checks.bad(f"{path}.native_limits.{model}", limit, f"the same as in {first}")
            prices = target.get("prices")
            if priced and not (isinstance(prices, dict) and model in prices):
                raise checks.missing(f"{path}.prices.{model}", "the price of each model in native_limits")
            assert isinstance(limit, dict)
            output = limit["max_output_tokens"]
            assert isinstance(output, int)
            ceiling = max(ceiling, output)
    if given_limit is not None and given_limit != ceiling:
        raise checks.bad("limits.max_output_tokens", given_limit, f"absent, or the largest native output, {ceiling}")
    return ceiling


def _check_router(path: str, target: dict[str, Json]) -> None:
    if target.get("max_inference_calls") != 1:
        raise checks.bad(f"{path}.max_inference_calls", target.get("max_inference_calls"), "1 under output_policy native")
    if target.get("capture_recipe") is not True:
        raise checks.bad(f"{path}.capture_recipe", target.get("capture_recipe"), "true under output_policy native")
