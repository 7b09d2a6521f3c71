"""How long a run's answers took, as distributions: the percentiles of the report and those between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srbench_accounting.columns import CellEnd, Floats, Role
from srbench_accounting.metrics import Scope
from srbench_accounting.percentiles import percentiles

SHARES = tuple(number / 100 for number in range(101))


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Known times.

    Attributes:
        count: how many there are.
        quantiles_s: their quantiles at `SHARES`, in seconds; empty when there are none.
    """

    count: int
    quantiles_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The times of one target: of answered cells, and to the first token of its calls."""

    target_id: str
    answers: Distribution
    first_tokens: Distribution


def times(scope: Scope) -> Times:
    """The distributions whose percentiles `measure` gives of the same scope."""
    subject = scope.calls.where(scope.calls.role == Role.SUBJECT)
    return Times(
        target_id=scope.target_id,
        answers=_distribution(scope.subject_latency_s[scope.outcomes.end == CellEnd.DONE]),
        first_tokens=_distribution(subject.current().ttft_s),
    )


def _distribution(values: Floats) -> Distribution:
    count = int((~np.isnan(values)).sum())
    found = percentiles(values, *SHARES)
    return Distribution(count=count, quantiles_s=tuple(value for value in found if value is not None))
