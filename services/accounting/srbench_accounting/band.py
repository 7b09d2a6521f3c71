"""A candidate less every single model at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from srbench_kit.adaptive import METHOD, Counts, adaptive_intervals

from srbench_accounting.columns import Ints

BAND_METHOD = f"{METHOD}, Bonferroni"


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleDifference:
    """A candidate less one single model: difference of weighted quality and its interval in the band."""

    target_id: str
    quality_delta: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Intervals that hold all at once.

    Attributes:
        alpha: error level of each.
        counts: wins, losses and ties against each single model, by stratum.
    """

    singles: tuple[SingleDifference, ...]
    alpha: float
    counts: Counts

    @property
    def best_single(self) -> tuple[float, float]:
        """The interval of the candidate less the single model that is truly the best.

        That difference is the smallest of all true ones, `q - max qⱼ = min (q - qⱼ)`, so the smallest lower and the
        smallest upper end hold it whenever the band holds. Source: Hsu, Multiple Comparisons (1996), chapter 4.
        """
        return min(one.interval[0] for one in self.singles), min(one.interval[1] for one in self.singles)

    def against(self, target_id: str) -> tuple[SingleDifference, Counts]:
        """The row of one single model with its counts."""
        for row, one in enumerate(self.singles):
            if one.target_id == target_id:
                own = self.counts
                return one, Counts(own.wins[[row]], own.losses[[row]], own.ties[[row]])
        raise KeyError(target_id)


def band(
    names: Sequence[str],
    differences: Ints,
    deltas: Sequence[float],
    sizes: Sequence[int],
    weights: Sequence[float],
    alpha: float,
) -> Band:
    """The band of one candidate: variance-adaptive intervals, each at the error level `alpha`.

    Bonferroni: with m intervals at `0.05/m` the chance that any of them misses is at most 0.05, however they depend on
    each other. Source: Dunn, JASA 56 (1961) 52-64.

    Args:
        differences: (single model, case) → -1, 0 or 1, the cases stratum after stratum.
        deltas: difference of weighted quality by single model.
    """
    counts = Counts.of(differences, sizes)
    intervals = adaptive_intervals(counts, sizes, weights, alpha)
    rows = [
        SingleDifference(target_id=name, quality_delta=delta, interval=interval)
        for name, delta, interval in zip(names, deltas, intervals, strict=True)
    ]
    return Band(singles=tuple(rows), alpha=alpha, counts=counts)
