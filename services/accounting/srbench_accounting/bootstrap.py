"""Stratified paired bootstrap of a weighted mean difference, for any number of candidates at once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from srbench_accounting.columns import Floats, Ints

RELEASED_SEED = 20260918
RELEASED_RESAMPLES = 2000
# Doubles made at a time; large enough to keep NumPy busy, small enough to stay in the cache.
_BLOCK = 2**16
_SMALL_PRODUCT = 2**17
# Layouts whose draws are kept: one takes a byte a case and resample, 6 MB for the whole suite.
_KEPT_LAYOUTS = 2


@dataclass(frozen=True, slots=True)
class Strata:
    """Paired differences of every candidate, stratum after stratum.

    Attributes:
        differences: (candidate, case) → -1, 0 or 1; the cases of a stratum stand together.
        sizes: cases of each stratum, none empty.
        weights: weight of each stratum; they add up to 1.
    """

    differences: Ints
    sizes: Sequence[int]
    weights: Sequence[float]

    def starts(self) -> Ints:
        """Where each stratum begins."""
        return np.concatenate(([0], np.cumsum(self.sizes)[:-1])).astype(np.int64)


@lru_cache(maxsize=_KEPT_LAYOUTS)
def released_draws(
    sizes: tuple[int, ...], seed: int = RELEASED_SEED, resamples: int = RELEASED_RESAMPLES
) -> NDArray[np.uint8]:
    """(case, resample) → how often the case is drawn, with the very draws of sr-bench 1.0.

    The stream of `random.Random(seed)`: resample by resample and stratum by stratum, one draw a case, index
    `⌊random() · n⌋`. It depends on nothing but the sizes, so it is made once for all comparisons of a layout.
    Source: Efron, Ann. Statist. 7 (1979) 1-26.
    """
    stream, total = _python_stream(seed), sum(sizes)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    counts, offsets = np.repeat(np.asarray(sizes, dtype=np.float64), sizes), np.repeat(starts, sizes)
    block = max(1, _BLOCK // total)
    # Where each draw of a block is counted, less the place within its stratum.
    base = offsets + np.arange(block)[:, None] * total
    draws, index = np.empty((block, total)), np.empty((block, total), dtype=np.int64)
    # A byte holds every count: up to 255 cases by their number, beyond that because no case is drawn 256 times in n.
    times = np.empty((total, resamples), dtype=np.uint8)
    for first in range(0, resamples, block):
        rows = min(block, resamples - first)
        some, at = draws[:rows], index[:rows]
        stream.random(out=some)
        np.multiply(some, counts, out=some)
        np.copyto(at, some, casting="unsafe")
        np.add(at, base[:rows], out=at)
        times[:, first : first + rows] = np.bincount(at.ravel(), minlength=rows * total).reshape(rows, total).T
    times.flags.writeable = False
    return times


def released_interval(
    strata: Strata, seed: int = RELEASED_SEED, resamples: int = RELEASED_RESAMPLES
) -> list[tuple[float, float]]:
    """The 95 % percentile interval of each candidate; all of them see the same draws, `released_draws`.

    Cases on which both agree add nothing to any sum, so only the others are looked up.
    """
    times = released_draws(tuple(strata.sizes), seed, resamples)
    bounds = np.append(strata.starts(), len(times))
    sums = np.zeros((len(strata.differences), resamples, len(strata.sizes)))
    for candidate, row in enumerate(strata.differences):
        for sign in (1, -1):
            cases = np.flatnonzero(row == sign)
            places = np.searchsorted(cases, bounds)
            for stratum in range(len(strata.sizes)):
                some = cases[places[stratum] : places[stratum + 1]]
                if len(some):
                    sums[candidate, :, stratum] += sign * times[some].sum(axis=0, dtype=np.int32)
    return [ends(means) for means in _weighted(sums, strata)]


def resampled_totals(values: Floats, sizes: Sequence[int]) -> Floats:
    """(row, resample) → sum of each row's values over the cases drawn, with the released draws.

    Args:
        values: (row, case), the cases stratum after stratum.
    """
    times = released_draws(tuple(sizes))
    totals = np.zeros((len(values), times.shape[1]))
    # Products so small that the linear algebra library starts no threads for them: those cost more than they save.
    block = max(1, _SMALL_PRODUCT // totals.size)
    for first in range(0, len(times), block):
        totals += values[:, first : first + block] @ times[first : first + block].astype(np.float64)
    return totals


def _python_stream(seed: int) -> np.random.Generator:
    """A generator whose doubles are those of `random.Random(seed).random()`: both are MT19937 with 53-bit doubles."""
    words = random.Random(seed).getstate()[1]
    twister = np.random.MT19937()
    twister.state = {
        "bit_generator": "MT19937",
        "state": {"key": np.array(words[:-1], dtype=np.uint32), "pos": int(words[-1])},
    }
    return np.random.Generator(twister)


def _weighted(sums: Floats, strata: Strata) -> Floats:
    """(candidate, resample) → weighted mean difference."""
    weighted: Floats = (sums / np.asarray(strata.sizes)) @ np.asarray(strata.weights)
    return weighted


def ends(means: Floats) -> tuple[float, float]:
    """The 2.5 % and 97.5 % order statistics; of 2000, the 50th and the 1950th."""
    ordered = np.sort(means)
    low = round(len(ordered) * 0.025) - 1
    return float(ordered[max(low, 0)]), float(ordered[round(len(ordered) * 0.975) - 1])
