"""A confidence interval for a weighted paired difference that is narrow where the two sides seldom disagree.

Take cases i with differences Dᵢ in {-1, 0, 1}, independent, with means μᵢ of their own, and the weighted mean
`Δ = Σ aᵢ·μᵢ` with `aᵢ = wᵦ/nᵦ`. For every bet λ > 0 and every centre c with `λ·aᵢ·(1 + c) < 1`

    E[1 + λ·aᵢ·(Dᵢ - c)] = 1 + λ·aᵢ·(μᵢ - c) ≤ exp(λ·aᵢ·(μᵢ - c)),

so `exp(G - λ·Δ)` with `G = Σ log(1 + λ·aᵢ·(Dᵢ - c)) + λ·aᵢ·c` has an expectation of at most 1, and so has its mean over any
bets that were chosen without looking at the answers. By Markov's inequality that mean is below `2/alpha` but with
probability `alpha/2`; the smallest Δ for which it is, is the lower end. The upper end is the same with the sides exchanged.
G counts wins, losses and ties by stratum, so the order of the cases does not matter.

The bets are the best ones, by number of cases and weights alone, for three shares of disagreement. The interval is valid
for every number of cases and whatever the true share is; it is narrow when that is small, and up to a fifth wider than
Hoeffding's when the sides disagree nearly everywhere.

Assumption: independent cases, as for Hoeffding's; they need not be alike.

Sources: Waudby-Smith and Ramdas, J. R. Stat. Soc. B 86 (2024) 1-27 (betting, fixed n); Robbins, Ann. Math. Statist.
41 (1970) 1397-1409 (mixtures of bets).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
METHOD = "mixture-betting"
# Shares of the cases on which two sides disagree, for which the bets are made.
DESIGNS = (0.03, 0.125, 0.5)
MOST_TIMES = 10_000
_BETS = np.geomspace(0.05, 2.0, 28)
_CENTRE_ROUNDS, _END_ROUNDS = 30, 60
_NO_STAKE = 1e-300


@dataclass(frozen=True, slots=True)
class Counts:
    """Wins, losses and ties by (row, stratum); real numbers, so that a larger set of the same kind can be thought of."""

    wins: Floats
    losses: Floats
    ties: Floats

    @classmethod
    def of(cls, differences: Ints, sizes: Sequence[int]) -> Counts:
        """Counts of each row of (row, case) differences, the cases stratum after stratum."""
        starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
        wins = np.add.reduceat(differences > 0, starts, axis=1, dtype=np.float64)
        losses = np.add.reduceat(differences < 0, starts, axis=1, dtype=np.float64)
        return cls(wins, losses, np.asarray(sizes) - wins - losses)

    def times(self, factor: float) -> Counts:
        """The same shares of `factor` times as many cases."""
        return Counts(self.wins * factor, self.losses * factor, self.ties * factor)


def adaptive_intervals(
    counts: Counts, sizes: Sequence[float], weights: Sequence[float], alpha: float = 0.05
) -> list[tuple[float, float]]:
    """The `1 - alpha` interval of each row's weighted mean difference; the derivation stands at the head of this file.

    Args:
        sizes: cases of each stratum.
        weights: of the strata; they add up to 1.
        alpha: two-sided error level; divide it by the number of rows for a band that holds for all at once.
    """
    return _intervals(counts, _kept_bets(tuple(sizes), tuple(weights), alpha), alpha)


def expected_half_width(sizes: Sequence[int], weights: Sequence[float], alpha: float, share: float) -> float:
    """Half the width of the interval when a share of the cases differs in every stratum, as often one way as the other."""
    own = np.asarray(sizes, dtype=np.float64)[None]
    ((low, high),) = adaptive_intervals(Counts(own * share / 2, own * share / 2, own * (1 - share)), sizes, weights, alpha)
    return (high - low) / 2


def more_cases(counts: Counts, sizes: Sequence[int], weights: Sequence[float], alpha: float, bound: float) -> int | None:
    """How many more cases would put the interval of the only row on one side of `bound`, were wins, losses and ties to come
    as often as so far in every stratum: a projection, no promise. Right within a hundredth; `None` when no number below
    `MOST_TIMES` times as many does, because the difference lies on the bound."""

    def decided(factor: float) -> bool:
        grown = tuple(size * factor for size in sizes)
        ((low, high),) = _intervals(counts.times(factor), _bets(grown, tuple(weights), alpha), alpha)
        return low >= bound or high < bound

    few, many = 1.0, 2.0
    while not decided(many):
        few, many = many, many * 2
        if many > MOST_TIMES:
            return None
    while many - few > 0.005 * many:
        middle = (few + many) / 2
        few, many = (few, middle) if decided(middle) else (middle, many)
    return ceil(sum(sizes) * (many - 1))


def _intervals(counts: Counts, made: tuple[Floats, Floats], alpha: float) -> list[tuple[float, float]]:
    bets, gains = made
    low = _lower_ends(bets, _capital(gains, counts.wins, counts.losses, counts.ties), alpha)
    high = -_lower_ends(bets, _capital(gains, counts.losses, counts.wins, counts.ties), alpha)
    return [(max(-1.0, one), min(1.0, other)) for one, other in zip(low.tolist(), high.tolist(), strict=True)]


def _capital(gains: Floats, wins: Floats, losses: Floats, ties: Floats) -> Floats:
    """G by (row, bet)."""
    capital: Floats = wins @ gains[0] + losses @ gains[1] + ties @ gains[2]
    return capital


def _lower_ends(bets: Floats, capital: Floats, alpha: float) -> Floats:
    """By row the Δ where the mean of `exp(G - λ·Δ)` over the bets is 2/alpha; it falls as Δ rises, so halving finds it."""
    threshold = log(2 * len(bets) / alpha)
    # Any single bet alone, with its part of the mean, reaches it no later; all of them together gain at most log(bets).
    low = ((capital - threshold) / bets).max(axis=1)
    high = low + log(len(bets)) / bets.min()
    for _ in range(_END_ROUNDS):
        middle = (low + high) / 2
        reached = np.logaddexp.reduce(capital - np.outer(middle, bets), axis=1) >= threshold
        low, high = np.where(reached, middle, low), np.where(reached, high, middle)
    return np.asarray(low)


def _bets(sizes: tuple[float, ...], weights: tuple[float, ...], alpha: float) -> tuple[Floats, Floats]:
    """(λ by bet, what a win, a loss and a tie in each stratum add to G: (3, stratum, bet))."""
    counts, parts = np.asarray(sizes, dtype=np.float64), np.asarray(weights) / np.asarray(sizes)
    spread = float(parts @ np.asarray(weights))
    chosen, gains = [], []
    for share in DESIGNS:
        # Around the best bet of the normal approximation; small strata of much weight want a smaller one.
        bets = sqrt(2 * log(2 / alpha) / (share * spread)) * _BETS
        gain = _gains(np.outer(parts, bets), share)
        expected = counts @ (share / 2 * (gain[0] + gain[1]) + (1 - share) * gain[2])
        best = int(((log(2 * len(DESIGNS) / alpha) - expected) / bets).argmin())
        chosen.append(float(bets[best]))
        gains.append(gain[:, :, best])
    return np.array(chosen), np.stack(gains, axis=2)


_kept_bets = lru_cache(maxsize=32)(_bets)


def _gains(stakes: Floats, share: float) -> Floats:
    """`log(1 + x·(D - c)) + x·c` for D = 1, -1, 0 and stakes x, with the c in [-1, 0] that is best in expectation when a
    share of the cases differs, as often one way as the other. The slope falls as c rises, so halving finds it."""
    # A stratum without weight has no stake, and nothing that happens in it counts.
    low, high = np.full_like(stakes, -1.0), np.minimum(0.0, 1 / np.maximum(stakes, _NO_STAKE) - 1)
    for _ in range(_CENTRE_ROUNDS):
        middle = (low + high) / 2
        falls = share / 2 * (1 / (1 + stakes * (1 - middle)) + 1 / (1 - stakes * (1 + middle)))
        rising = falls + (1 - share) / (1 - stakes * middle) < 1
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    # The lower end is inside the range where every logarithm exists.
    rest = stakes * low
    return np.stack([np.log1p(stakes - rest), np.log1p(-stakes - rest), np.log1p(-rest)]) + rest
