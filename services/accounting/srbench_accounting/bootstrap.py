"""Stratified paired bootstrap of a weighted mean difference, for any number of candidates at once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from srbench_accounting.columns import Floats, Ints

RELEASED_SEED = 20260918
RELEASED_RESAMPLES = 2000
# Doubles made at a time; large enough to keep NumPy busy, small enough to stay in the cache.
_BLOCK = 2**16
# Several candidates share one 64-bit word, 16 bits each, so that one gather serves them all.
_LANE_BITS = 16
_LANES = 64 // _LANE_BITS
_LARGEST_LANE = 2**_LANE_BITS - 1


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


def released_interval(
    strata: Strata, seed: int = RELEASED_SEED, resamples: int = RELEASED_RESAMPLES
) -> list[tuple[float, float]]:
    """The 95 % percentile interval of each candidate, with the very draws of sr-bench 1.0.

    Every candidate sees the stream of `random.Random(seed)`: resample by resample and stratum by stratum, in the given
    order, one draw a case, index `⌊random() · n⌋`. Source: Efron, Ann. Statist. 7 (1979) 1-26.
    """
    sums = _resampled_sums(strata, _python_stream(seed), resamples)
    return [_ends(means) for means in _weighted(sums, strata)]


def multinomial_interval(strata: Strata, seed: int, resamples: int = 100_000) -> list[tuple[float, float]]:
    """The same interval from draws of the counts instead of the cases.

    A resample of a stratum with w wins, l losses and t ties has Multinomial(n, (w, l, t)/n) counts: the same distribution
    as drawing cases, at a cost that does not grow with n.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    starts = strata.starts()
    sums = np.empty((len(strata.differences), resamples, len(strata.sizes)))
    for candidate, row in enumerate(strata.differences):
        for stratum, size in enumerate(strata.sizes):
            part = row[starts[stratum] : starts[stratum] + size]
            wins, losses = int((part > 0).sum()), int((part < 0).sum())
            chances = np.array([wins, losses, size - wins - losses]) / size
            counts = generator.multinomial(size, chances, size=resamples)
            sums[candidate, :, stratum] = counts[:, 0] - counts[:, 1]
    return [_ends(means) for means in _weighted(sums, strata)]


def _python_stream(seed: int) -> np.random.Generator:
    """A generator whose doubles are those of `random.Random(seed).random()`: both are MT19937 with 53-bit doubles."""
    words = random.Random(seed).getstate()[1]
    twister = np.random.MT19937()
    twister.state = {
        "bit_generator": "MT19937",
        "state": {"key": np.array(words[:-1], dtype=np.uint32), "pos": int(words[-1])},
    }
    return np.random.Generator(twister)


def _resampled_sums(strata: Strata, stream: np.random.Generator, resamples: int) -> Floats:
    """(candidate, resample, stratum) → sum of the differences drawn."""
    total = int(sum(strata.sizes))
    starts, counts = strata.starts(), np.repeat(np.asarray(strata.sizes, dtype=np.float64), strata.sizes)
    offsets = np.repeat(starts, strata.sizes)
    lanes = 1 if 2 * max(strata.sizes) > _LARGEST_LANE else _LANES
    words = _packed(strata.differences, lanes)
    sums = np.empty((len(words) * lanes, resamples, len(strata.sizes)))
    block = max(1, _BLOCK // total)
    draws, index = np.empty((block, total)), np.empty((block, total), dtype=np.int64)
    for first in range(0, resamples, block):
        last = min(resamples, first + block)
        some, at = draws[: last - first], index[: last - first]
        stream.random(out=some)
        np.multiply(some, counts, out=some)
        np.copyto(at, some, casting="unsafe")
        np.add(at, offsets, out=at)
        for word, packed in enumerate(words):
            drawn = np.add.reduceat(packed.take(at), starts, axis=1)
            for lane in range(lanes):
                field = (drawn >> (lane * _LANE_BITS)) & _LARGEST_LANE if lanes > 1 else drawn
                sums[word * lanes + lane, first:last] = field - np.asarray(strata.sizes)
    return sums[: len(strata.differences)]


def _packed(differences: Ints, lanes: int) -> NDArray[np.int64]:
    """Rows of up to `lanes` candidates in one word; each difference is shifted to 0, 1 or 2 so that sums stay in a lane."""
    words = np.zeros((ceil(len(differences) / lanes), differences.shape[1]), dtype=np.int64)
    for candidate, row in enumerate(differences):
        words[candidate // lanes] += (row + 1) << (candidate % lanes * _LANE_BITS)
    return words


def _weighted(sums: Floats, strata: Strata) -> Floats:
    """(candidate, resample) → weighted mean difference."""
    weighted: Floats = (sums / np.asarray(strata.sizes)) @ np.asarray(strata.weights)
    return weighted


def _ends(means: Floats) -> tuple[float, float]:
    """The 2.5 % and 97.5 % order statistics; of 2000, the 50th and the 1950th."""
    ordered = np.sort(means)
    low = round(len(ordered) * 0.025) - 1
    return float(ordered[max(low, 0)]), float(ordered[round(len(ordered) * 0.975) - 1])
