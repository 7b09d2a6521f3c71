"""Routers that look at no question, beside a real one, and where the real one's wrong answers come from.

Everything follows from the single models' saved answers to the same cases: no model is asked again. It assumes that a
model behind the router would have answered as it did by itself; where it did not, the regret calls that execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from srbench_kit.saying import Saying

from srbench_accounting.columns import Floats, Ints, Labels

PERMUTATIONS = 499
SEED = 20260918
NOT_CHEAP_ENOUGH = Saying("MIX_TOO_DEAR", "every single model costs more than the router")
ROUTER_COST_UNKNOWN = Saying("MIX_ROUTER_COST_UNKNOWN", "the router's cost is unknown")
NO_POOL_COST = Saying("MIX_NO_POOL_COST", "no single model's cost is known")
NOTES = (
    Saying("NULL_MODEL_ALONE", "a model behind the router is taken to answer as it did by itself"),
    Saying("NULL_COSTS", "costs are those of the subjects' calls; a single model of unknown cost is in no mix"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The single models' saved answers.

    Attributes:
        right: (model, case) → 1 right, 0 wrong or failed.
        cost: (model, case) → picodollars, NaN where unknown.
        weight: by case; adds up to 1.
    """

    names: tuple[str, ...]
    right: Ints
    cost: Floats
    weight: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """What a router did.

    Attributes:
        right: by case, 1 right, 0 wrong or failed.
        cost: picodollars over all cases; `None` when unknown.
        choice: by case, the position of the chosen model in the pool; -1 where it is none of them or not known.
        decision: by case.
    """

    name: str
    right: Ints
    cost: int | None
    choice: Ints
    decision: Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Quality and cost of one policy; `shares` is the part of the cases that each model gets, for mixes."""

    name: str
    quality: float
    cost: int | None
    shares: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitTest:
    """The router's choices against the same choices dealt out at random; fields as in `srbench.v1.SplitTest`."""

    known_choices: int
    observed_quality: float
    shuffled_quality: float
    permutation_p: float
    permutations: int
    shares: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NullRouters:
    """Fields as in `srbench.v1.NullRouters`."""

    router: Policy
    always: tuple[Policy, ...]
    static_mix: Policy | None
    static_mix_reason: str | None
    split: SplitTest | None
    oracle: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretParts:
    """Weighted shares; `correct` and the four causes add up to `weight`."""

    decision: str
    cases: int
    weight: float
    correct: float
    pool_limit: float
    selection_error: float
    execution_failure: float
    unattributed: float


def null_routers(pool: Pool, routed: Routed) -> NullRouters:
    """Always one model, the best mix at the router's spend, the router's own split shuffled, and the oracle."""
    always = tuple(
        Policy(name=name, quality=_quality(pool.right[row], pool.weight), cost=_sum(pool.cost[row]))
        for row, name in enumerate(pool.names)
    )
    mix, reason = static_mix(always, routed.cost)
    return NullRouters(
        router=Policy(name=routed.name, quality=_quality(routed.right, pool.weight), cost=routed.cost),
        always=always,
        static_mix=mix,
        static_mix_reason=reason,
        split=split_test(pool, routed.choice),
        oracle=oracle(pool),
    )


def static_mix(always: Sequence[Policy], spend: int | None) -> tuple[Policy | None, str | None]:
    """The mix of highest expected quality whose expected cost is at most `spend`; else why there is none.

    Maximise `Σ p·q` with `Σ p·c ≤ spend`, `Σ p = 1`: a linear programme with two constraints, so one or two models carry
    the best mix, and trying all pairs finds it. Source: Dantzig, Linear Programming and Extensions (1963), chapter 4.
    """
    if spend is None:
        return None, ROUTER_COST_UNKNOWN
    priced = [(one, one.cost) for one in always if one.cost is not None]
    if not priced:
        return None, NO_POOL_COST
    mixes = [_mixed([(one, 1.0)]) for one, cost in priced if cost <= spend]
    for (one, low), (other, high) in combinations(sorted(priced, key=lambda item: item[1]), 2):
        if low <= spend < high:
            part = (spend - low) / (high - low)
            mixes.append(_mixed([(one, 1 - part), (other, part)]))
    if not mixes:
        return None, NOT_CHEAP_ENOUGH
    return max(mixes, key=lambda mix: (mix.quality, -(mix.cost or 0))), None


def split_test(pool: Pool, choice: Ints, permutations: int = PERMUTATIONS, seed: int = SEED) -> SplitTest | None:
    """Whether the choices fit the cases better than the same choices dealt out at random; `None` when no known one weighs.

    One-sided permutation test of the weighted quality of the chosen models' saved answers: `p = (1 + #{random ≥
    observed}) / (1 + permutations)`, which is valid for any number of permutations. Source: Phipson and Smyth, Stat.
    Appl. Genet. Mol. Biol. 9 (2010) 39.
    """
    known = np.flatnonzero(choice >= 0)
    known_weight = pool.weight[known].sum()
    if not known_weight:
        return None
    made, right = choice[known], pool.right[:, known]
    weight = pool.weight[known] / known_weight
    counts = np.bincount(made, minlength=len(pool.names))
    observed = _quality(right[made, np.arange(len(known))], weight)
    # A deal puts the cases in random order and gives the first model the first of them, as many as it chose, and so on.
    deals, ends, scores = _deals(len(known), permutations, seed), np.cumsum(counts), np.zeros(permutations)
    for row in np.flatnonzero(counts).tolist():
        scores += (right[row] * weight).take(deals[:, ends[row] - counts[row] : ends[row]]).sum(axis=1)
    as_good = int((scores >= observed - 1e-12).sum())
    return SplitTest(
        known_choices=len(known),
        observed_quality=observed,
        shuffled_quality=float((counts / len(known)) @ (right @ weight)),
        permutation_p=(1 + as_good) / (1 + permutations),
        permutations=permutations,
        shares=tuple((name, count / len(known)) for name, count in zip(pool.names, counts.tolist(), strict=True) if count),
    )


@lru_cache(maxsize=2)
def _deals(cases: int, permutations: int, seed: int) -> Ints:
    """(deal, place) → case; every order of the cases is as likely. The same for all routers over as many cases."""
    generator = np.random.Generator(np.random.PCG64(seed))
    orders = np.broadcast_to(np.arange(cases), (permutations, cases))
    return generator.permuted(orders, axis=1)


def oracle(pool: Pool) -> Policy:
    """The cheapest right answer of every case; the cheapest answer where none is right.

    Its cost is unknown when an answer of unknown cost might be the cheapest: when no other one was free.
    """
    any_right: NDArray[np.bool_] = np.asarray(pool.right.any(axis=0))
    among = (pool.right == 1) | ~any_right
    cheapest = np.where(among & ~np.isnan(pool.cost), pool.cost, np.inf).min(axis=0)
    open_cases = (among & np.isnan(pool.cost)).any(axis=0) & (cheapest > 0)
    cost = None if open_cases.any() else _sum(cheapest)
    return Policy(name="oracle", quality=_quality(any_right, pool.weight), cost=cost)


def regret(pool: Pool, routed: Routed) -> tuple[RegretParts, tuple[RegretParts, ...]]:
    """(over all cases, by decision with most weight first)."""
    wrong, possible = routed.right == 0, pool.right.any(axis=0)
    known = routed.choice >= 0
    chosen_right = np.zeros(len(wrong), dtype=bool)
    chosen_right[known] = pool.right[routed.choice[known], np.flatnonzero(known)] == 1
    causes = {
        "correct": ~wrong,
        "pool_limit": wrong & ~possible,
        "selection_error": wrong & possible & known & ~chosen_right,
        "execution_failure": wrong & chosen_right,
        "unattributed": wrong & possible & ~known,
    }

    def parts(decision: str, cases: Ints) -> RegretParts:
        weight = pool.weight[cases]
        shares = {name: float(weight @ mask[cases]) for name, mask in causes.items()}
        return RegretParts(decision=decision, cases=len(cases), weight=float(weight.sum()), **shares)

    codes = routed.decision.codes
    names = ("", *routed.decision.vocabulary)
    rows = [parts(names[code + 1], np.flatnonzero(codes == code)) for code in np.unique(codes).tolist()]
    rows.sort(key=lambda row: (-row.weight, row.decision))
    return parts("", np.arange(len(codes))), tuple(rows)


def _quality(right: NDArray[Any], weight: Floats) -> float:
    """The weighted share of right answers; rounding makes it no more than all of them."""
    return min(1.0, float(right @ weight))


def _mixed(parts: Sequence[tuple[Policy, float]]) -> Policy:
    return Policy(
        name="static mix",
        quality=sum(part * one.quality for one, part in parts),
        cost=round(sum(part * (one.cost or 0) for one, part in parts)),
        shares=tuple((one.name, part) for one, part in parts if part > 0),
    )


def _sum(costs: Floats) -> int | None:
    """The exact sum of whole picodollars; `None` when one is unknown."""
    return None if np.isnan(costs).any() else int(costs.astype(np.int64).sum())
