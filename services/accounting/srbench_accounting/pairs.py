"""The questions of a comparison, one by one: who had it right, chosen and ordered for reading."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srbench_accounting.columns import Floats, Ints

OUTCOMES = ("win", "loss", "tie", "both_right", "both_wrong")
SORTS = ("case", "outcome", "cost_delta", "latency_delta")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairColumns:
    """Two targets on the same cases, a row each in plan order.

    Attributes:
        first, second: 1 where the baseline's, and the candidate's, target has the case right.
        benchmark: code of the benchmark.
        cost_delta, latency_delta: candidate less baseline; NaN where unknown.
    """

    first: Ints
    second: Ints
    benchmark: Ints
    cost_delta: Floats
    latency_delta: Floats


def chosen(pairs: PairColumns, *, outcome: str, benchmark: int | None, sort: str, descending: bool) -> Ints:
    """The rows that fit, in order. What is unknown stands last either way; equal rows stay in plan order.

    Args:
        outcome: one of `OUTCOMES`, or empty for all.
        sort: one of `SORTS`.
    """
    rows = np.flatnonzero(_fits(pairs, outcome) & (True if benchmark is None else pairs.benchmark == benchmark))
    keys = {
        "case": np.arange(len(pairs.first), dtype=np.float64),
        "outcome": (pairs.second - pairs.first).astype(np.float64),
        "cost_delta": pairs.cost_delta,
        "latency_delta": pairs.latency_delta,
    }[sort][rows]
    # NaN sorts last by itself, and stays last when the known keys are turned round.
    order = np.argsort(-keys if descending else keys, kind="stable")
    return rows[order]


def counts(pairs: PairColumns, benchmark: int | None) -> dict[str, int]:
    """How many rows are wins, losses, right on both sides and wrong on both."""
    inside = np.ones(len(pairs.first), dtype=bool) if benchmark is None else pairs.benchmark == benchmark
    return {name: int((_fits(pairs, name) & inside).sum()) for name in ("win", "loss", "both_right", "both_wrong")}


def word(first: int, second: int) -> str:
    """`win`, `loss` or `tie`, as the candidate sees it."""
    return "tie" if first == second else "win" if second > first else "loss"


def _fits(pairs: PairColumns, outcome: str) -> NDArray[np.bool_]:
    first, second = pairs.first, pairs.second
    masks: dict[str, NDArray[np.bool_]] = {
        "": np.ones(len(first), dtype=bool),
        "win": second > first,
        "loss": second < first,
        "tie": second == first,
        "both_right": (first == 1) & (second == 1),
        "both_wrong": (first == 0) & (second == 0),
    }
    return masks[outcome]
