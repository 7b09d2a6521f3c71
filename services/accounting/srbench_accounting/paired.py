"""Tests on paired right-or-wrong answers to the same cases."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Two-sided exact p-value of McNemar's test: `min(1, 2·P(X ≤ min(b, c)))` with X ~ Binomial(b + c, 1/2).

    Only cases on which the two disagree carry weight; 1 when there are none. Assumes independent cases. Source: McNemar,
    Psychometrika 12 (1947) 153-157.

    Args:
        only_first: cases that only the first has right (b).
        only_second: cases that only the second has right (c).
    """
    trials, fewer = only_first + only_second, min(only_first, only_second)
    return float(min(Fraction(1), Fraction(2 * _binomial_tail(trials, fewer), 2**trials)))


def mcnemar_mid_p(only_first: int, only_second: int) -> float:
    """The mid-p form: the exact p-value less the chance of the very outcome seen; less conservative, nearly exact.

    Source: Fagerland, Lydersen and Laake, BMC Med. Res. Methodol. 13 (2013) 91.
    """
    trials, fewer = only_first + only_second, min(only_first, only_second)
    if only_first == only_second:
        return float(1 - Fraction(comb(trials, fewer), 2 * 2**trials)) if trials else 1.0
    tail = 2 * _binomial_tail(trials, fewer) - comb(trials, fewer)
    return float(Fraction(tail, 2**trials))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for having made several comparisons, in the order given.

    Step-down: the i-th smallest of m times `m - i + 1`, never below its predecessor, never above 1. Keeps the chance of
    any false claim below alpha whatever the dependence. Source: Holm, Scand. J. Statist. 6 (1979) 65-70.
    """
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted


def _binomial_tail(trials: int, most: int) -> int:
    """Σ C(trials, k) for k up to `most`; each term from the one before, so that large counts stay quick."""
    term = total = 1
    for k in range(most):
        term = term * (trials - k) // (k + 1)
        total += term
    return total
