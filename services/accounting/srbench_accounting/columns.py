"""Facts of a run as columns, so that a report over many cells is arithmetic on arrays.

In integer columns -1 is unknown; in float columns NaN is. Text is a code into a vocabulary, -1 for none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

UNKNOWN = -1


class CellEnd(IntEnum):
    """How a cell ended; the numbers are `srbench.v1.CellState`'s."""

    DONE = 3
    FAILED = 4
    CANCELLED = 5
    INTERRUPTED = 6


class CallEnd(IntEnum):
    """How a call stands; the numbers are `srbench.v1.CallStatus`'s."""

    SENT = 1
    COMPLETED = 2
    FAILED = 3
    CANCELLED = 4
    SENT_UNKNOWN = 5
    NOT_ACCEPTED = 6
    REPLAYED = 7


class Role(IntEnum):
    """What a call is for; the numbers are `srbench.v1.CallRole`'s."""

    SUBJECT = 1
    JUDGE = 2
    SIMULATOR = 3


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of texts: a code a row into the vocabulary, -1 for none."""

    codes: Ints
    vocabulary: tuple[str, ...]

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> Self:
        """The column of `texts`; nothing and the empty text are both none."""
        vocabulary: dict[str, int] = {}
        codes = [vocabulary.setdefault(text, len(vocabulary)) if text else UNKNOWN for text in texts]
        return cls(np.array(codes, dtype=np.int64), tuple(vocabulary))

    def take(self, rows: Ints | slice) -> Labels:
        """The same column for some rows."""
        return Labels(self.codes[rows], self.vocabulary)

    def counts(self) -> dict[str, int]:
        """How often each text occurs, in alphabetical order; those that do not occur are left out."""
        totals = np.bincount(self.codes[self.codes >= 0], minlength=len(self.vocabulary))
        return {text: int(n) for text, n in sorted(zip(self.vocabulary, totals, strict=True)) if n}


class _Table:
    """Columns of equal length."""

    __slots__ = ()

    def take(self, rows: Ints | slice) -> Self:
        """The same columns for some rows."""
        taken: dict[str, Any] = {}
        names: tuple[str, ...] = self.__slots__
        for name in names:
            column = getattr(self, name)
            if column is None:
                continue
            taken[name] = column.take(rows) if isinstance(column, Labels) else column[rows]
        return type(self)(**taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeColumns(_Table):
    """Cells that ended, a row each, in the order of recording.

    Attributes:
        case: position in the plan's cases.
        target: position in the plan's targets.
        end: a `CellEnd`.
        reason: stable reason; none for `DONE`.
        correct: 1 right, 0 wrong, -1 without a grade.
        strict_format: 1 nothing but the answer, 0 more than it, -1 not assessed.
        output_limit: 1 when the answer was cut by the output limit.
        latency_s: seconds from the first lease to the end.
        queue_wait_s: seconds from eligibility to the first lease.
        finish_s: when it ended, in seconds since 1970.
    """

    case: Ints
    target: Ints
    end: Ints
    reason: Labels
    correct: Ints
    strict_format: Ints
    output_limit: Ints
    latency_s: Floats
    queue_wait_s: Floats
    finish_s: Floats

    def __len__(self) -> int:
        return len(self.case)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallColumns(_Table):
    """Model calls, a row each, in the order of dispatch.

    Attributes:
        case: position in the plan's cases.
        target: position, in the plan's targets, of the subject whose cell the call is for.
        role: a `Role`.
        end: a `CallEnd`.
        input_tokens, cached_input_tokens, cache_write_tokens, output_tokens: the four buckets.
        prompt_tokens: all prompt tokens, which may be known without their split.
        cost: picodollars.
        cache_neutral_cost: picodollars with every prompt token at the fresh price.
        reserved: picodollars set aside at dispatch.
        inference_calls: model calls behind the request.
        cache_read_reported: 1 the endpoint told its cached input, 0 it did not, -1 no usage came.
        model: the name in the answer.
        selected_model: the physical model that a router chose.
        decision: the router's decision.
        finish_reason: the last finish reason.
        latency_s, ttft_s: seconds to the end, and to the first token.
        first_token_lag_s: how late the event loop was at the first token, in seconds.
        superseded: in a merged lineage, 1 for calls of attempts whose answer is not the one that counts: their money
            and requests do, their times and model switches do not. `None` where nothing is merged.
    """

    case: Ints
    target: Ints
    role: Ints
    end: Ints
    input_tokens: Ints
    cached_input_tokens: Ints
    cache_write_tokens: Ints
    output_tokens: Ints
    prompt_tokens: Ints
    cost: Ints
    cache_neutral_cost: Ints
    reserved: Ints
    inference_calls: Ints
    cache_read_reported: Ints
    model: Labels
    selected_model: Labels
    decision: Labels
    finish_reason: Labels
    latency_s: Floats
    ttft_s: Floats
    first_token_lag_s: Floats
    superseded: Ints | None = None

    def __len__(self) -> int:
        return len(self.case)

    def current(self) -> CallColumns:
        """The calls of the attempts whose answers count."""
        return self if self.superseded is None else self.where(self.superseded == 0)

    def where(self, wanted: NDArray[np.bool_]) -> CallColumns:
        """The rows that are `wanted`; the very same columns when all are."""
        return self if wanted.all() else self.take(np.flatnonzero(wanted))

    def observed_model(self) -> Labels:
        """The model that answered: the selected one, or the answer's own name once the call completed."""
        own = np.where(self.end == CallEnd.COMPLETED, self.model.codes, UNKNOWN)
        index = {text: code for code, text in enumerate(self.selected_model.vocabulary)}
        moved = np.array([index.setdefault(text, len(index)) for text in self.model.vocabulary] + [UNKNOWN], dtype=np.int64)
        chosen = self.selected_model.codes
        return Labels(np.where(chosen >= 0, chosen, moved[own]), tuple(index))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanColumns:
    """The frozen plan, as far as figures depend on it.

    Attributes:
        case_ids: in plan order.
        case_benchmark: the benchmark of each case.
        target_ids: in plan order.
        cell_case, cell_target: the planned cells, a row each.
        weights: weight by benchmark as decimal text or number; its decimal text is what counts.
    """

    case_ids: Sequence[str]
    case_benchmark: Labels
    target_ids: Sequence[str]
    cell_case: Ints
    cell_target: Ints
    weights: dict[str, float | str]


def ints(values: Iterable[int | bool | None]) -> Ints:
    """An integer column; `None` becomes -1."""
    return np.array([UNKNOWN if value is None else value for value in values], dtype=np.int64)


def floats(values: Iterable[float | None]) -> Floats:
    """A float column; `None` becomes NaN."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def distinct(values: Ints) -> Ints:
    """The values that occur, in order. NumPy's `unique` builds a hash table, which takes ten times as long for cells, whose
    numbers come nearly in order."""
    ordered = np.sort(values)
    return np.concatenate([ordered[:1], ordered[1:][ordered[1:] != ordered[:-1]]])


def exact_sum(values: Ints) -> int:
    """The sum of whole numbers without overflow."""
    if not len(values):
        return 0
    if max(int(values.max()), -int(values.min())) < 2**62 // len(values):
        return int(values.sum())
    return sum(values.tolist())


def known_sum(values: Ints) -> int:
    """The sum of what is known."""
    return exact_sum(values[values >= 0])


def sum_if_known(values: Ints) -> int | None:
    """The sum; `None` when one of them is unknown."""
    return None if np.any(values < 0) else exact_sum(values)
