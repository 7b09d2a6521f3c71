"""The variance-adaptive interval: valid by enumeration and simulation, its ends found another way, and narrow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from srbench_accounting.intervals import hoeffding_radius
from srbench_kit.adaptive import DESIGNS, Counts, adaptive_intervals, more_cases

# The whole suite at its standard and quick counts, the demo's two benchmarks, and single benchmarks.
SUITE = [0.10, 0.15, 0.15, 0.10, 0.10, 0.10, 0.10, 0.10, 0.10]
LAYOUTS: dict[str, tuple[list[int], list[float]]] = {
    "standard": ([2000, 158, 200, 150, 20, 15, 500, 80, 60], SUITE),
    "quick": ([500, 40, 40, 30, 3, 3, 100, 12, 12], SUITE),
    "two": ([600, 120], [0.5, 0.5]),
    "198": ([198], [1.0]),
    "500": ([500], [1.0]),
    "2000": ([2000], [1.0]),
}


def rates(sizes: Sequence[int], discordance: float, gain: float = 0.0) -> Counts:
    """One row in which every stratum has the same share of wins and of losses."""
    own = np.asarray(sizes, dtype=np.float64)[None]
    share = (discordance + gain) / 2, (discordance - gain) / 2
    return Counts(own * share[0], own * share[1], own * (1 - discordance))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_at_15_percent_discordance_it_is_at_most_half_as_wide_as_hoeffdings(layout: str) -> None:
    sizes, weights = LAYOUTS[layout]
    ((low, high),) = adaptive_intervals(rates(sizes, 0.15), sizes, weights)
    assert (high - low) / 2 <= 0.5 * hoeffding_radius(weights, sizes)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_it_gets_narrower_the_less_the_sides_disagree_and_never_much_wider_than_hoeffdings(layout: str) -> None:
    sizes, weights = LAYOUTS[layout]
    made = [adaptive_intervals(rates(sizes, share), sizes, weights)[0] for share in (0.0, 0.05, 0.15, 0.4, 1.0)]
    widths = [high - low for low, high in made]
    assert widths == sorted(widths)
    assert widths[-1] / 2 <= 1.25 * hoeffding_radius(weights, sizes)


def trinomial(size: int, win: float, loss: float) -> list[tuple[int, int, float]]:
    """Every (wins, losses) of a stratum with its chance."""
    found = []
    for wins in range(size + 1):
        for losses in range(size + 1 - wins):
            chance = stats.multinomial.pmf([wins, losses, size - wins - losses], size, [win, loss, 1 - win - loss])
            found.append((wins, losses, float(chance)))
    return found


@pytest.mark.parametrize("alpha", [0.05, 0.3])
@pytest.mark.parametrize(
    "chances",
    [
        [(0.1, 0.05), (0.05, 0.1)],
        [(0.5, 0.5), (0.5, 0.5)],
        [(0.02, 0.0), (0.0, 0.3)],
        [(0.9, 0.05), (0.3, 0.3)],
        [(0.0, 0.03), (0.0, 0.03)],
    ],
)
def test_each_end_misses_no_oftener_than_half_its_error_level_by_enumeration(
    alpha: float, chances: list[tuple[float, float]]
) -> None:
    sizes, weights = [5, 9], [0.3, 0.7]
    truth = sum(weight * (win - loss) for weight, (win, loss) in zip(weights, chances, strict=True))
    every = list(itertools.product(*(trinomial(size, *one) for size, one in zip(sizes, chances, strict=True))))
    wins = np.array([[part[0] for part in row] for row in every], dtype=np.float64)
    losses = np.array([[part[1] for part in row] for row in every], dtype=np.float64)
    made = adaptive_intervals(Counts(wins, losses, np.asarray(sizes) - wins - losses), sizes, weights, alpha)
    chance = [math.prod(part[2] for part in row) for row in every]
    assert sum(chance) == pytest.approx(1)
    assert sum(p for p, (low, _) in zip(chance, made, strict=True) if low > truth) <= alpha / 2
    assert sum(p for p, (_, high) in zip(chance, made, strict=True) if high < truth) <= alpha / 2


@pytest.mark.parametrize("layout", ["quick", "two", "198"])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_it_covers_the_truth_in_simulations_of_cases_that_are_not_alike(layout: str, alpha: float) -> None:
    sizes, weights = LAYOUTS[layout]
    source = np.random.default_rng(3)
    # Every case has chances of its own: some hard for the one side, some for the other, most for neither.
    count = sum(sizes)
    win, loss = source.beta(0.3, 3, count) / 2, source.beta(0.3, 2, count) / 2
    truth = float(np.repeat(np.asarray(weights) / np.asarray(sizes), sizes) @ (win - loss))
    draw = source.random((4000, count))
    made = adaptive_intervals(
        Counts.of(np.where(draw < win, 1, np.where(draw < win + loss, -1, 0)), sizes), sizes, weights, alpha
    )
    covered = np.mean([low <= truth <= high for low, high in made])
    assert covered >= 1 - alpha


def by_root(wins: list[int], losses: list[int], sizes: list[int], weights: list[float], alpha: float) -> float:
    """The lower end the slow way: the best bets by a fine grid and SciPy's optimiser, case after case, SciPy's root."""
    parts = [weight / size for weight, size in zip(weights, sizes, strict=True)]
    spread = sum(weight * part for weight, part in zip(weights, parts, strict=True))

    def gain(stake: float, centre: float, difference: int) -> float:
        inside = 1 + stake * (difference - centre)
        return math.log(inside) + stake * centre if inside > 0 else -math.inf

    def centre_of(stake: float, share: float) -> float:
        def loss(centre: float) -> float:
            both = gain(stake, centre, 1) + gain(stake, centre, -1)
            return -(share / 2 * both + (1 - share) * gain(stake, centre, 0))

        highest = min(0.0, 1 / stake - 1) - 1e-12
        return float(optimize.minimize_scalar(loss, bounds=(-1.0, highest), method="bounded", options={"xatol": 1e-12}).x)

    bets = []
    for share in DESIGNS:
        best: tuple[float, float, list[float]] | None = None
        for factor in np.geomspace(0.05, 2.0, 28).tolist():
            bet = math.sqrt(2 * math.log(2 / alpha) / (share * spread)) * factor
            centres = [centre_of(bet * part, share) for part in parts]
            expected = sum(
                size
                * (
                    share / 2 * (gain(bet * part, centre, 1) + gain(bet * part, centre, -1))
                    + (1 - share) * gain(bet * part, centre, 0)
                )
                for size, part, centre in zip(sizes, parts, centres, strict=True)
            )
            width = (math.log(2 * len(DESIGNS) / alpha) - expected) / bet
            if best is None or width < best[0]:
                best = width, bet, centres
        assert best is not None
        capital = 0.0
        for size, part, centre, won, lost in zip(sizes, parts, best[2], wins, losses, strict=True):
            for difference in [1] * won + [-1] * lost + [0] * (size - won - lost):
                capital += gain(best[1] * part, centre, difference)
        bets.append((best[1], capital))

    def excess(delta: float) -> float:
        return math.log(sum(math.exp(capital - bet * delta) for bet, capital in bets) / len(bets)) - math.log(2 / alpha)

    return float(optimize.brentq(excess, -5, 5, xtol=1e-13))


@pytest.mark.parametrize(
    ("sizes", "weights", "wins", "losses"),
    [
        ([40, 7], [0.4, 0.6], [5, 1], [2, 0]),
        ([120], [1.0], [9], [9]),
        ([30, 30, 4], [0.2, 0.5, 0.3], [0, 0, 4], [3, 12, 0]),
    ],
)
def test_its_ends_are_those_of_the_formula(
    sizes: list[int], weights: list[float], wins: list[int], losses: list[int]
) -> None:
    won, lost = np.array([wins], dtype=np.float64), np.array([losses], dtype=np.float64)
    ((low, high),) = adaptive_intervals(Counts(won, lost, np.asarray(sizes) - won - lost), sizes, weights)
    assert low == pytest.approx(max(-1, by_root(wins, losses, sizes, weights, 0.05)), abs=1e-6)
    assert high == pytest.approx(min(1, -by_root(losses, wins, sizes, weights, 0.05)), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 60)), min_size=1, max_size=4))
def test_it_holds_the_observed_difference_mirrors_and_nests(parts: list[tuple[int, int, int]]) -> None:
    sizes = [sum(part) for part in parts]
    weights = [size / sum(sizes) for size in sizes]
    wins, losses, ties = (np.array([[float(part[at]) for part in parts]]) for at in range(3))
    ((low, high),) = adaptive_intervals(Counts(wins, losses, ties), sizes, weights)
    observed = float((wins - losses).sum() / sum(sizes))
    assert -1 <= low <= observed + 1e-12
    assert observed - 1e-12 <= high <= 1
    ((mirrored_low, mirrored_high),) = adaptive_intervals(Counts(losses, wins, ties), sizes, weights)
    assert (mirrored_low, mirrored_high) == (-high, -low)
    ((wide_low, wide_high),) = adaptive_intervals(Counts(wins, losses, ties), sizes, weights, 0.005)
    assert wide_low <= low
    assert high <= wide_high


def test_counts_are_those_of_the_differences_in_whatever_order() -> None:
    differences = np.array([[1, -1, 0, 1, 0], [0, 0, 0, -1, -1]])
    made = Counts.of(differences, [3, 2])
    assert made.wins.tolist() == [[1, 1], [0, 0]]
    assert made.losses.tolist() == [[1, 0], [0, 2]]
    assert made.ties.tolist() == [[1, 1], [3, 0]]
    assert Counts.of(differences[:, [2, 0, 1, 4, 3]], [3, 2]).wins.tolist() == made.wins.tolist()


def test_a_benchmark_without_weight_does_not_matter() -> None:
    with np.errstate(all="raise"):
        made = [
            adaptive_intervals(
                Counts(np.array([[5.0, won]]), np.zeros((1, 2)), np.array([[45.0, 10 - won]])), [50, 10], [1.0, 0.0]
            )
            for won in (0.0, 10.0)
        ]
    assert made[0] == made[1]
    alone = adaptive_intervals(Counts(np.array([[5.0]]), np.zeros((1, 1)), np.array([[45.0]])), [50], [1.0])
    assert made[0][0] == pytest.approx(alone[0])


def test_so_many_more_cases_decide_and_fewer_do_not() -> None:
    sizes, weights, margin = [300, 100], [0.5, 0.5], 0.05
    own = rates(sizes, 0.1, 0.0)
    ((low, high),) = adaptive_intervals(own, sizes, weights)
    assert low < -margin < high
    more = more_cases(own, sizes, weights, 0.05, -margin)
    assert more is not None

    def decided(total: float) -> bool:
        factor = total / sum(sizes)
        grown = [size * factor for size in sizes]
        ((lower, upper),) = adaptive_intervals(own.times(factor), grown, weights)
        return lower >= -margin or upper < -margin

    assert decided(sum(sizes) + more)
    assert not decided(sum(sizes) + more * 0.95)


def test_no_number_of_cases_decides_what_lies_exactly_on_the_bound() -> None:
    assert more_cases(rates([100], 0.2, -0.02), [100], [1.0], 0.05, -0.02) is None
