"""What a list is ordered by, and narrowed to beyond its filter; and the lists that can do it, made when first asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.engine import Dialect
from srbench_kit.errors import InvalidInput

from srbench_accounting.vocabulary import Vocabulary

if TYPE_CHECKING:
    from srbench_accounting.ranked_lists import RankedList

ORDERS = ("cost", "latency", "ttft")
MAX_QUERY_CHARS = 200
# What stands in a column of numbers where nothing is known.
UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What a list is narrowed to and ordered by, beyond a `Filter`; the defaults change nothing.

    Attributes:
        words: by column, the word that rows must have.
        numbers: by column, the number that rows must have.
        unknown_cost: only calls that ended without a known cost, those that operators settled since included.
        query: lower-case text that rows must hold.
        order_by: one of `ORDERS`; empty for the order of recording.
    """

    words: tuple[tuple[str, str], ...] = ()
    numbers: tuple[tuple[str, int], ...] = ()
    unknown_cost: bool = False
    query: str = ""
    order_by: str = ""
    descending: bool = False

    def __post_init__(self) -> None:
        if self.order_by and self.order_by not in ORDERS:
            raise InvalidInput(
                "BAD_ORDER", f"order_by is {self.order_by!r}; expected {', '.join(ORDERS)}", field="order_by"
            )
        if len(self.query) > MAX_QUERY_CHARS:
            raise InvalidInput("BAD_QUERY", f"query has {len(self.query)} characters; expected at most 200", field="query")

    @property
    def changes_nothing(self) -> bool:
        """Whether the plain lists give the same page."""
        return not (self.words or self.numbers or self.unknown_cost or self.query or self.order_by or self.descending)


class LazyRanks:
    """The lists that are made from columns, made for the first that is asked for: NumPy takes longer to import than the
    service may take to start."""

    def __init__(self, dialect: Dialect, vocabulary: Vocabulary, folder: Path) -> None:
        self._parts = dialect, vocabulary, folder

    @cached_property
    def _lists(self) -> tuple[RankedList, RankedList]:
        from srbench_accounting import ranked_lists

        return ranked_lists.lists(*self._parts)

    @property
    def outcomes(self) -> RankedList:
        """Outcomes, narrowed and in any order."""
        return self._lists[0]

    @property
    def calls(self) -> RankedList:
        """Calls, narrowed and in any order."""
        return self._lists[1]
