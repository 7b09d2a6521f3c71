"""How sure a saving is: what unknown costs leave open, and what the choice of cases adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from srbench_accounting.bootstrap import ends, resampled_totals
from srbench_accounting.cell_costs import CaseCosts
from srbench_accounting.columns import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingInterval:
    """Savings in percent of the baseline's cost; negative when the candidate costs more.

    Attributes:
        low, high: the saving when every unknown cost is as bad, and as good, for the candidate as its bounds allow.
        ci95: from the lower end of the bootstrap interval of `low` to the upper end of that of `high`; `None` when the
            baseline of a resample cost nothing.
        unknown_calls: calls of both sides whose cost is unknown.
    """

    low: float
    high: float
    ci95: tuple[float, float] | None
    unknown_calls: int


def saving_intervals(
    baseline: CaseCosts, candidates: Sequence[CaseCosts], sizes: Sequence[int]
) -> list[SavingInterval | None]:
    """The interval of each candidate; `None` where a side has cases without a call, a cost has no upper bound, or the
    baseline may have cost nothing.

    Stratified paired percentile bootstrap of `1 - Σ candidate / Σ baseline` with the draws of the quality interval. A
    ratio of sums is biased in small samples; with few cases the interval is too narrow. Source: Efron and Tibshirani, An
    Introduction to the Bootstrap (1993), chapters 10 and 13.

    Args:
        sizes: cases of each stratum, stratum after stratum in the order of the costs.
    """
    usable = [one for one in candidates if _bounded(one)]
    if not _bounded(baseline) or not usable or baseline.low.sum() <= 0:
        return [None] * len(candidates)
    totals = resampled_totals(np.stack([row for side in (baseline, *usable) for row in _rows(side)]), sizes)
    places, at = [], 0
    for side in (baseline, *usable):
        places.append((at, at + len(_rows(side)) - 1))
        at += len(_rows(side))
    made = iter([_interval(baseline, one, totals, places[0], place) for one, place in zip(usable, places[1:], strict=True)])
    return [next(made) if _bounded(one) else None for one in candidates]


def _bounded(side: CaseCosts) -> bool:
    return side.covered and bool(np.isfinite(side.high).all())


def _rows(side: CaseCosts) -> list[Floats]:
    """The rows to resample: one where all costs are known."""
    return [side.low, side.high] if side.unknown_calls else [side.low]


def _interval(
    baseline: CaseCosts, one: CaseCosts, totals: Floats, base: tuple[int, int], own: tuple[int, int]
) -> SavingInterval:
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = 100 * (1 - totals[own[1]] / totals[base[0]])
        best = 100 * (1 - totals[own[0]] / totals[base[1]])
    spread = ends(worst)[0], ends(best)[1]
    finite = bool(np.isfinite(worst).all() and np.isfinite(best).all())
    return SavingInterval(
        low=100 * (1 - float(one.high.sum()) / float(baseline.low.sum())),
        high=100 * (1 - float(one.low.sum()) / float(baseline.high.sum())),
        ci95=spread if finite else None,
        unknown_calls=baseline.unknown_calls + one.unknown_calls,
    )
