"""Confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

# The 97.5 % point of the standard normal distribution.
Z95 = 1.959963984540054


def wilson(successes: int, trials: int, z: float = Z95) -> tuple[float, float] | None:
    """Wilson's score interval for a share; `None` without trials.

    `(p + z²/2n ± z·√(p(1-p)/n + z²/4n²)) / (1 + z²/n)`. The end at nothing right is exactly 0, at all right exactly 1.
    Assumes independent trials with one chance. Source: Wilson, JASA 22 (1927) 209-212.
    """
    if trials == 0:
        return None
    share, spread = successes / trials, z * z / trials
    centre = share + spread / 2
    half = z * sqrt(share * (1 - share) / trials + spread / (4 * trials))
    low = 0.0 if successes == 0 else max(0.0, (centre - half) / (1 + spread))
    high = 1.0 if successes == trials else min(1.0, (centre + half) / (1 + spread))
    return low, high


def hoeffding_radius(weights: Sequence[float], sizes: Sequence[int], alpha: float = 0.05) -> float:
    """Half the width of Hoeffding's interval for a weighted mean of paired differences in [-1, 1].

    `√(2·ln(2/alpha)·Σ wᵦ²/nᵦ)`; the weights add up to 1. Holds for every sample size and needs nothing but
    independence of the cases, which is why it is wide. Source: Hoeffding, JASA 58 (1963) 13-30, theorem 2.
    """
    return sqrt(2 * log(2 / alpha) * sum(weight * weight / size for weight, size in zip(weights, sizes, strict=True)))


def clipped(centre: float, radius: float, bound: float = 1.0) -> tuple[float, float]:
    """`centre ± radius` within `±bound`."""
    return max(-bound, centre - radius), min(bound, centre + radius)
