"""The money of a run: may a reservation be made, and what an end does to it. Integer picodollars; pure.

At all times `spent + open + held <= limit`, as long as no call costs more than was reserved for it. A cost beyond its
reservation is a fact that cannot be refused: it is counted whole, and the next reservations are refused for it.
"""

from __future__ import annotations

from dataclasses import dataclass

# What fits 64 bits; sums stop here instead of failing.
MAX_PICODOLLARS = 2**63 - 1


@dataclass(slots=True)
class Money:
    """Where a run's money is.

    Attributes:
        limit: the budget; `None` when the policy enforces none.
        spent: known cost of all calls.
        open: reservations of calls without an end; they may come free.
        held: reservations of ended calls whose cost is unknown; they come free only by late truth
            or by an operator's settlement.
    """

    limit: int | None
    spent: int
    open: int
    held: int

    def refusal(self, reserve: int) -> str:
        """Why `reserve` cannot be reserved now: `BUDGET_RESERVED` when open calls may free it, `BUDGET_EXHAUSTED` when
        nothing will, empty when it can."""
        if self.limit is None:
            return ""
        if self.spent + self.held + reserve > self.limit:
            return "BUDGET_EXHAUSTED"
        return "BUDGET_RESERVED" if self.spent + self.held + self.open + reserve > self.limit else ""

    def dispatch(self, reserved: int) -> None:
        """A call leaves with `reserved` set aside for it."""
        self.open += reserved

    def settle(self, reserved: int, cost: int | None) -> None:
        """An open call ends. An unknown cost keeps its reservation held: it never ends a paid answer."""
        self.open -= reserved
        self._count(reserved, cost)

    def correct(self, reserved: int, cost: int | None) -> None:
        """A call that ended with an unknown cost takes a later end."""
        self.recount(reserved, None, cost)

    def recount(self, reserved: int, before: int | None, after: int | None) -> None:
        """An ended call that counted as `before` counts as `after` from now on; `None` keeps its reservation held."""
        if before is None:
            self.held -= reserved
        else:
            self.spent -= before
        self._count(reserved, after)

    def _count(self, reserved: int, cost: int | None) -> None:
        if cost is None:
            self.held += reserved
        else:
            self.spent = min(self.spent + cost, MAX_PICODOLLARS)
