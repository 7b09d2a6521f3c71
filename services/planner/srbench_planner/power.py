"""What a number of cases can show, before any of them is asked. Pure; the formulas hold for large samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist

DISCORDANCE = 0.15
POWER = 0.8
ALPHA = 0.05
# The interval in a comparison is always a 95 % one.
_Z95 = NormalDist().inv_cdf(0.975)
_ROUNDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """What is assumed of a comparison.

    Attributes:
        discordance: share of the cases on which the two targets disagree, the same in every benchmark.
        power: wanted chance to establish a true difference, above one half.
        alpha: two-sided error level.
        singles: single models; a verdict's interval pays for each of them.
    """

    discordance: float = DISCORDANCE
    power: float = POWER
    alpha: float = ALPHA
    singles: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharpness:
    """How finely a set of cases tells two targets apart; parts of one, `None` where no difference can be established."""

    hoeffding_half_width: float
    expected_half_width: float
    detectable_difference: float | None
    hoeffding_detectable_difference: float | None
    verdict_half_width: float
    verdict_detectable_difference: float | None


def sharpness(sizes: Mapping[str, int], weights: Mapping[str, float], design: Design) -> Sharpness:
    """What `sizes` cases by benchmark can show of a weighted difference.

    With v = Σ w²/n over the benchmarks, w adding up to 1, a paired difference of variance `discordance - δ²` a case has
    variance `(discordance - δ²)·v`:

    - expected half width of the 95 % interval: `1.96·√(discordance·v)`;
    - detectable difference: `δ = z(1-alpha/2)·√(discordance·v) + z(power)·√((discordance - δ²)·v)`, which for one benchmark
      is the sample size formula of McNemar's test;
    - Hoeffding's half width: `√(2·ln(2/alpha)·v)`, and the difference that it establishes: the same with it in place of
      the first term;
    - half the width of the variance-adaptive interval at `alpha/singles`, by which verdicts go, and the difference that it
      establishes likewise.

    Sources: Connor, Biometrics 43 (1987) 207-211; Hoeffding, JASA 58 (1963) 13-30, theorem 2.
    """
    spread = variance_factor(sizes, weights)
    noise = NormalDist().inv_cdf(1 - design.alpha / 2) * sqrt(design.discordance * spread)
    wide = sqrt(2 * log(2 / design.alpha) * spread)
    adaptive = _verdict_half_width(sizes, weights, design)
    return Sharpness(
        hoeffding_half_width=min(1.0, sqrt(2 * log(2 / ALPHA) * spread)),
        expected_half_width=min(1.0, _Z95 * sqrt(design.discordance * spread)),
        detectable_difference=_smallest(noise, spread, design),
        hoeffding_detectable_difference=_smallest(wide, spread, design),
        verdict_half_width=adaptive,
        verdict_detectable_difference=_smallest(adaptive, spread, design),
    )


def _verdict_half_width(sizes: Mapping[str, int], weights: Mapping[str, float], design: Design) -> float:
    # Here and not above: NumPy takes longer to import than the service may take to start.
    from srbench_kit.adaptive import expected_half_width

    used = _shares(sizes, weights)
    own = [size for size, _ in used], [weight for _, weight in used]
    return expected_half_width(*own, design.alpha / design.singles, design.discordance)


def variance_factor(sizes: Mapping[str, int], weights: Mapping[str, float]) -> float:
    """`Σ w²/n` over the benchmarks with cases; the weights are made to add up to 1, equal ones when all are 0."""
    return sum(weight**2 / size for size, weight in _shares(sizes, weights))


def _shares(sizes: Mapping[str, int], weights: Mapping[str, float]) -> list[tuple[int, float]]:
    """(cases, weight) of the benchmarks with cases, the weights adding up to 1; equal ones when all are 0."""
    used = [(size, weights.get(name, 1.0)) for name, size in sizes.items() if size]
    total = sum(weight for _, weight in used)
    if not total:
        used, total = [(size, 1.0) for size, _ in used], float(len(used))
    return [(size, weight / total) for size, weight in used]


def _smallest(threshold: float, spread: float, design: Design) -> float | None:
    """The δ with `δ = threshold + z(power)·√((discordance - δ²)·spread)`; `None` when it exceeds the discordance.

    The right side falls as δ rises, so there is one such δ, and halving finds it.
    """
    z = NormalDist().inv_cdf(design.power)
    low, high = threshold, design.discordance
    if low >= high:
        return None

    def short(delta: float) -> bool:
        return delta < threshold + z * sqrt(max(0.0, design.discordance - delta * delta) * spread)

    if short(high):
        return None
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if short(middle) else (low, middle)
    return high
