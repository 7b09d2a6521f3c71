"""What callers who come through an authenticated gateway may freeze: the operator's targets and options, unchanged."""

from __future__ import annotations

from srbench_kit.errors import Forbidden, InvalidInput
from srbench_kit.values import Json

from srbench_planner import benchmark_options, checks, targets


def apply_registry(
    found: dict[str, Json], registered: list[dict[str, Json]], operator_options: dict[str, Json], benchmarks: set[str]
) -> dict[str, Json]:
    """The manifest `found` with registered targets in place of the submitted ones, and the operator's options merged in.

    A submitted target names a registered id and may repeat, but not change, registered values. `benchmarks` are those of
    the cases. Raises: `Forbidden` (`TARGET_NOT_REGISTERED`, `TARGET_CHANGED`, `OPTIONS_CHANGED`).
    """
    by_id = {str(target["id"]): target for target in registered}
    replaced = dict(found)
    submitted = checks.items(found.get("targets"), "targets")
    replaced["targets"] = [_registered(item, by_id, f"targets[{index}]") for index, item in enumerate(submitted)]
    options = _options(found.get("benchmark_options"), operator_options, benchmarks)
    replaced["benchmark_options"] = options
    auxiliary = checks.obj(found.get("auxiliary_targets") or {}, "auxiliary_targets")
    kept: dict[str, Json] = {}
    for name, item in auxiliary.items():
        kept[name] = _registered(item, by_id, f"auxiliary_targets.{name}")
    own = {str(checks.obj(target, "targets")["id"]) for target in checks.items(replaced["targets"], "targets")}
    for path, name in benchmark_options.referenced(options):
        if name not in own and name not in kept:
            kept[name] = _registered({"id": name}, by_id, path)
    replaced["auxiliary_targets"] = kept
    return replaced


def apply_defaults(
    found: dict[str, Json], registered: list[dict[str, Json]], operator_options: dict[str, Json], benchmarks: set[str]
) -> dict[str, Json]:
    """The manifest `found` with the operator's options for benchmarks that it gives none, and the judges they name.

    For callers who may freeze what they like; a name that is registered nowhere is left for the later checks.
    """
    given = checks.obj(found.get("benchmark_options") or {}, "benchmark_options")
    options = {name: value for name, value in operator_options.items() if name in benchmarks} | given
    auxiliary = dict(checks.obj(found.get("auxiliary_targets") or {}, "auxiliary_targets"))
    own = found.get("targets")
    listed = [item.get("id") for item in own if isinstance(item, dict)] if isinstance(own, list) else []
    # An id may still be anything.
    present = {name for name in listed if isinstance(name, str)}
    by_id = {str(target["id"]): target for target in registered}
    for _, name in benchmark_options.referenced(options):
        if name not in present and name not in auxiliary and name in by_id:
            auxiliary[name] = by_id[name]
    changed: dict[str, Json] = {"benchmark_options": options or None, "auxiliary_targets": auxiliary or None}
    return found | {key: value for key, value in changed.items() if value}


def fill_in(found: dict[str, Json], registered: list[dict[str, Json]]) -> dict[str, Json]:
    """The manifest `found` with each target that is only an id replaced by the registered one.

    Raises: `InvalidInput` (`TARGET_NOT_REGISTERED`).
    """
    by_id = {str(target["id"]): target for target in registered}
    filled: list[Json] = []
    for index, item in enumerate(checks.items(found.get("targets"), "targets")):
        bare = isinstance(item, dict) and set(item) == {"id"}
        if bare and isinstance(item, dict) and (not isinstance(item["id"], str) or item["id"] not in by_id):
            known = ", ".join(sorted(by_id)) or "none"
            raise InvalidInput(
                "TARGET_NOT_REGISTERED",
                f"targets[{index}].id is {checks.show(item['id'])}; expected a whole target, or a registered id: {known}",
                field=f"targets[{index}].id",
            )
        filled.append(by_id[str(item["id"])] if bare and isinstance(item, dict) else item)
    return found | {"targets": filled}


def _registered(value: Json, by_id: dict[str, dict[str, Json]], path: str) -> Json:
    item = checks.obj(value, path)
    name = item.get("id")
    known = by_id.get(name) if isinstance(name, str) else None
    if known is None:
        raise Forbidden(
            "TARGET_NOT_REGISTERED", f"{path}.id is {checks.show(name)}; expected a target that the operator registered"
        )
    try:
        same = targets.freeze_target(known | item, path) == known
    except InvalidInput:
        same = False
    if not same:
        raise Forbidden(
            "TARGET_CHANGED", f"{path} changes values of the registered target {name!r}; expected them as registered"
        )
    return known


def _options(value: Json, operator: dict[str, Json], benchmarks: set[str]) -> dict[str, Json]:
    for benchmark, given in checks.obj(value or {}, "benchmark_options").items():
        if given and given != operator.get(benchmark):
            raise Forbidden(
                "OPTIONS_CHANGED",
                f"benchmark_options.{benchmark} differs from the operator's options; expected them as they are",
            )
    return {benchmark: given for benchmark, given in operator.items() if benchmark in benchmarks}
