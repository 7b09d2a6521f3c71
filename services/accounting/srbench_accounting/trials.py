"""Repeated trials of one task."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb

# A reward counts as success when it is 1 up to rounding.
_TOLERANCE = 1e-6


def success_count(rewards: Sequence[float]) -> int:
    """How many trials got the whole reward; half a reward is none."""
    return sum(abs(reward - 1) <= _TOLERANCE for reward in rewards)


def pass_hat(successes: int, trials: int, k: int) -> float | None:
    """The chance that `k` trials drawn without replacement all succeed, `C(c, k) / C(n, k)`; `None` for `k` above `n`.

    Unbiased for the chance that `k` independent trials all succeed. Source: Yao et al., tau-bench (arXiv 2406.12045).
    """
    if not 1 <= k <= trials:
        return None
    return float(Fraction(comb(successes, k), comb(trials, k)))
