"""The bounds of a run: defaults, ranges, and the few that must fit each other."""

from __future__ import annotations

from decimal import Decimal

from srbench_kit.values import Json

from srbench_planner import checks

PICODOLLARS = 10**12
MAX_SECONDS = 10**9
MAX_BUDGET_USD = 9_000_000
CELLS_PER_FAILURE = 10
LEAST_TOLERATED = 25

_COUNTS = {
    "concurrency": 1,
    "max_output_tokens": 4096,
    "max_output_chars": 131_072,
    "max_log_bytes": 8_388_608,
    "repetition_window": 128,
    "repetition_limit": 5,
    "max_calls_per_case": 32,
}
_SECONDS = {"total_timeout_s": 180, "idle_timeout_s": 30, "max_run_seconds": 1800, "case_timeout_s": 600}
ORDER = (
    "concurrency",
    "total_timeout_s",
    "idle_timeout_s",
    "max_output_tokens",
    "max_output_chars",
    "max_log_bytes",
    "repetition_window",
    "repetition_limit",
    "max_cost_usd",
    "max_run_seconds",
    "max_calls_per_case",
    "case_timeout_s",
    "max_failed_cells",
    "admission_wait_s",
)


def frozen_limits(given: Json) -> dict[str, Json]:
    """All limits but `max_failed_cells`, whose default needs the number of cells; see `tolerance`.

    Raises: `InvalidInput` (`BAD_FIELD`, `UNKNOWN_FIELD`).
    """
    found = checks.obj({} if given is None else given, "limits")
    checks.known_keys(found, ORDER, "limits")
    limits: dict[str, Json] = {}
    for key, default in _COUNTS.items():
        limits[key] = checks.integer(found.get(key, default), f"limits.{key}", 1)
    for key, default in _SECONDS.items():
        value = found.get(key, default)
        limits[key] = checks.number(value, f"limits.{key}", "seconds above 0", 0, MAX_SECONDS, above=True)
    limits["max_cost_usd"] = _budget(found.get("max_cost_usd", 5))
    wait = found.get("admission_wait_s", 20)
    limits["admission_wait_s"] = checks.number(wait, "limits.admission_wait_s", "seconds, 0 or more", 0, MAX_SECONDS)
    if "max_failed_cells" in found:
        limits["max_failed_cells"] = checks.integer(found["max_failed_cells"], "limits.max_failed_cells", 1)
    _fits(limits, found, "total_timeout_s", "max_run_seconds")
    _fits(limits, found, "idle_timeout_s", "total_timeout_s")
    return {key: limits[key] for key in ORDER if key in limits}


def tolerance(cell_count: int) -> int:
    """How many failed cells end a run of `cell_count` cells by default: 25, or one in ten if that is more."""
    return max(LEAST_TOLERATED, -(-cell_count // CELLS_PER_FAILURE))


def picodollars(usd: Json) -> int:
    """US dollars as picodollars, exact; more than twelve decimals are rounded to the nearest."""
    return round(Decimal(repr(usd)) * PICODOLLARS)


def _budget(value: Json) -> Json:
    checks.number(value, "limits.max_cost_usd", f"dollars above 0, at most {MAX_BUDGET_USD}", 0, MAX_BUDGET_USD, above=True)
    if picodollars(value) < 1:
        raise checks.bad("limits.max_cost_usd", value, "at least one picodollar")
    return value


def _fits(limits: dict[str, Json], found: dict[str, Json], key: str, bound: str) -> None:
    value, most = limits[key], limits[bound]
    assert isinstance(value, int | float)
    assert isinstance(most, int | float)
    if value > most:
        origin = "" if key in found else " (the default)"
        raise checks.bad(
            f"limits.{key}", value, f"at most limits.{bound}, {checks.show(most)}{origin and '; ' + key + ' is' + origin}"
        )
