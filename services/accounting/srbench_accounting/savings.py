"""What a candidate saves against a baseline, and why that is sometimes unknown."""

from __future__ import annotations

from fractions import Fraction

from srbench_kit.saying import Saying

from srbench_accounting.metrics import Metrics

BASELINE_TIE_UNKNOWN = Saying(
    "COST_UNKNOWN_TIE", "the total spend of a strongest single model is unknown, so no cost can be compared with it"
)
BASELINE_UNPRICED = Saying("UNPRICED_BASELINE", "the baseline run enforced no prices")
CANDIDATE_UNPRICED = Saying("UNPRICED_CANDIDATE", "the candidate run enforced no prices")
BASELINE_UNKNOWN = Saying("COST_UNKNOWN_BASELINE", "the baseline's cost is unknown")
CANDIDATE_UNKNOWN = Saying("COST_UNKNOWN_CANDIDATE", "the candidate's cost is unknown")
BASELINE_ZERO = Saying("COST_ZERO_BASELINE", "the baseline cost nothing, so a percentage of it means nothing")


def saving_percent(baseline: int | None, candidate: int | None) -> float | None:
    """`(1 - candidate / baseline) · 100`; negative when the candidate costs more, `None` when either is unknown or the
    baseline is zero."""
    if baseline is None or candidate is None or baseline <= 0:
        return None
    return float((1 - Fraction(candidate, baseline)) * 100)


def ineligible_reason(tied: list[Metrics], baseline_policy: str, candidate_policy: str) -> str | None:
    """Why no cost of the two runs can be compared at all; `None` when it can."""
    if any(row.total_spend_picodollars is None for row in tied):
        return BASELINE_TIE_UNKNOWN
    if baseline_policy != "require_priced":
        return BASELINE_UNPRICED
    return CANDIDATE_UNPRICED if candidate_policy != "require_priced" else None


def unknown_reason(baseline: int | None, candidate: int | None, ineligible: str | None) -> str | None:
    """Why a saving is unknown; `None` when it is known."""
    if ineligible is not None:
        return ineligible
    if baseline is None:
        return BASELINE_UNKNOWN
    if candidate is None:
        return CANDIDATE_UNKNOWN
    return BASELINE_ZERO if baseline == 0 else None
