"""The `claims` of a manifest: what the run is to show, written down before it. Pure."""

from __future__ import annotations

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import checks

KINDS = ("non_inferiority",)
FIELDS = ("kind", "margin", "target_id")


def freeze_claims(value: Json, target_ids: list[str]) -> list[Json]:
    """The claims in the order given, each complete. `target_ids` are the plan's targets.

    Raises: `InvalidInput` with the field at fault; `LISTED_TWICE` for two claims of a kind about one target.
    """
    frozen: list[Json] = []
    seen: set[tuple[str, Json]] = set()
    for index, item in enumerate(checks.items([] if value is None else value, "claims")):
        path = f"claims[{index}]"
        found = checks.obj(item, path)
        checks.known_keys(found, FIELDS, path)
        claim: dict[str, Json] = {
            "kind": checks.one_of(found.get("kind"), f"{path}.kind", KINDS),
            "margin": _margin(found, path),
        }
        target = found.get("target_id")
        if target is not None:
            claim["target_id"] = checks.one_of(target, f"{path}.target_id", tuple(target_ids))
        about = str(claim["kind"]), target
        if about in seen:
            raise InvalidInput("LISTED_TWICE", f"{path} claims again what an earlier claim does; say it once", field=path)
        seen.add(about)
        frozen.append(claim)
    return frozen


def _margin(found: dict[str, Json], path: str) -> Json:
    if "margin" not in found:
        raise checks.missing(f"{path}.margin", "a part of one above 0 and below 1, such as 0.02")
    margin = found["margin"]
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 < margin < 1:
        raise checks.bad(f"{path}.margin", margin, "a part of one above 0 and below 1, such as 0.02")
    return margin
