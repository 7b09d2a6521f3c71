"""Percentiles of times."""

from __future__ import annotations

import numpy as np

from srbench_accounting.columns import Floats


def percentiles(values: Floats, *shares: float) -> tuple[float | None, ...]:
    """The `shares` quantiles of what is known in `values`, in the order asked; `None` each when nothing is.

    Position `(n - 1) * q` in the sorted values, linear between neighbours (type 7 of Hyndman and Fan, 1996).
    """
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return (None,) * len(shares)
    return tuple(_at(known, (len(known) - 1) * share) for share in shares)


def _at(ordered: Floats, position: float) -> float:
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    low, high = float(ordered[below]), float(ordered[above])
    return low + (high - low) * (position - below)
