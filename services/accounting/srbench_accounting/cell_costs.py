"""What a target cost on each case, with the bounds that unknown costs leave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srbench_accounting.columns import CallColumns, CallEnd, Floats, Ints, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseCosts:
    """One target's cost by case, in whole picodollars as floats, exact up to $9,007 a case; their sum may be larger.

    Attributes:
        low, high: bounds by case; equal where every cost is known, `high` infinite where nothing was reserved.
        unknown_calls: calls whose cost is unknown.
        covered: whether every case has a call of the subject.
    """

    low: Floats
    high: Floats
    unknown_calls: int
    covered: bool

    @property
    def total(self) -> int | None:
        """The cost of all cases; `None` when it is not known exactly."""
        return int(self.low.astype(np.int64).sum()) if self.covered and not self.unknown_calls else None


def case_costs(calls: CallColumns, target: int, cases: Ints, case_count: int, *, subject_only: bool) -> CaseCosts:
    """The costs of `target`, by case, in the order of `cases`, which are positions in a plan of `case_count` cases.

    An unknown cost lies between nothing and what was reserved for it.
    """
    own = calls.where((calls.target == target) & (calls.end != CallEnd.NOT_ACCEPTED))
    subject = own.where(own.role == Role.SUBJECT)
    counted = subject if subject_only else own
    unknown = counted.cost < 0
    spent = np.where(unknown, 0, counted.cost).astype(np.float64)
    reserved = np.where(counted.reserved < 0, np.inf, counted.reserved)
    low = np.bincount(counted.case, weights=spent, minlength=case_count).astype(np.float64)
    high = np.bincount(counted.case, weights=np.where(unknown, reserved, spent), minlength=case_count).astype(np.float64)
    called = np.bincount(subject.case, minlength=case_count)
    return CaseCosts(
        low=low[cases], high=high[cases], unknown_calls=int(unknown.sum()), covered=bool((called[cases] > 0).all())
    )
