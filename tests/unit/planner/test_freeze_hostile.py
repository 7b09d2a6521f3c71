"""Whatever stands at whatever place of a manifest: frozen, or refused in one sentence."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from srbench_kit.errors import SrBenchError
from srbench_planner.freeze import Registry

from tests.unit.planner.planner_doubles import PRICE, case, freezer, manifest, target

ODD: list[Any] = [
    None, True, 0, -1, 1.5, 1e308, 5e-324, 10**30, 2**63, "", " ", "x", "\0", "💩", "a" * 9000, "../x", "http://u:p@h/",
    [], [[]], [None], [{}], ["x", "x"], {}, {"": {}}, {"id": []}, {"id": "a", "judge": [{}]},
]  # fmt: skip
ROUTER = {
    "kind": "mom", "model": "auto", "max_inference_calls": 2, "config_hash": "a" * 64, "prices": {"m": PRICE},
    "preview_url": "http://127.0.0.1:1/api/v1/routing/preview", "capture_recipe": True,
}  # fmt: skip
WHOLE = manifest(
    targets=[target("a", prices={"m": PRICE}, request_params={"temperature": 1}), target("r", **ROUTER), {"id": "known"}],
    auxiliary_targets={"j": target("j", prices={"m": PRICE})},
    cases=[case("q1"), case("q2", "hle", answer="x", metadata={"stratum": "s"})],
    benchmark_options={"hle": {"judge": "j"}},
    execution_cells=[{"case_id": name, "target_id": where} for name in ("q1", "q2") for where in ("a", "r", "known")],
    experiment={"id": "exp-" + "0" * 32, "role": "initial", "hypothesis": "h"},
    claims=[{"kind": "non_inferiority", "margin": 0.1, "target_id": "r"}],
    limits={"concurrency": 2, "max_cost_usd": 1},
    sampling={"stop": ["a"], "chat_template_kwargs": {"a": 1}},
    limitations=["x"],
)
KNOWN = target("known", prices={"m": PRICE})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each part of `value`."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in members:
        yield (*path, key)
        yield from places(item, (*path, key))


def changed(path: tuple[Any, ...], odd: Any, whole: dict[str, Any] = WHOLE) -> dict[str, Any]:
    """`whole` with `odd` at `path`."""
    found: dict[str, Any] = copy.deepcopy(whole)
    place: Any = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = odd
    return found


REGISTERED = [KNOWN, *WHOLE["targets"][:2], target("j", prices={"m": PRICE})]


def refusal(value: Any, registry: Registry) -> SrBenchError | None:
    """Why `value` is refused; `None` when it is frozen. Anything else that is raised is a bug."""
    try:
        freezer().freeze(value, registry, collect=True)
    except SrBenchError as error:
        return error
    return None


@pytest.mark.parametrize("options", [{}, {"hle": {"judge": "known"}}])
def test_odd_values_anywhere_are_sentences(options: dict[str, Any]) -> None:
    registry = Registry(targets=REGISTERED, options=options, binding=False)
    assert refusal(WHOLE, registry) is None
    for path in places(WHOLE):
        for odd in ODD:
            error = refusal(changed(path, odd), registry)
            if error is not None:
                assert error.kind in ("invalid_input", "not_found"), (path, odd, error)
                assert "\n" not in error.message


def test_odd_values_of_callers_who_are_bound_to_the_registry_are_sentences() -> None:
    own = manifest(targets=[{"id": "a"}, {"id": "r"}], cases=WHOLE["cases"], benchmark_options={"hle": {"judge": "j"}})
    registry = Registry(targets=REGISTERED, options={"hle": {"judge": "j"}}, binding=True)
    assert refusal(own, registry) is None
    for path in places(own):
        for odd in ODD:
            error = refusal(changed(path, odd, own), registry)
            if error is not None:
                assert error.kind in ("invalid_input", "not_found", "forbidden"), (path, odd, error)
                assert "\n" not in error.message
