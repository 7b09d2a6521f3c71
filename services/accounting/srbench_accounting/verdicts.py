"""What a comparison says in one word and one sentence. An interval that spans zero never shows a gain or a loss."""

from __future__ import annotations

from dataclasses import dataclass

from srbench_accounting.compare import Comparison
from srbench_accounting.intervals import clipped

BETTER, WORSE, OPEN = "better", "worse", "not established"
SUPPORTED, NOT_SHOWN, CONTRADICTED = "supported", "not shown", "contradicted"
RULE = (
    "better or worse only when the whole Hoeffding interval of the quality difference lies on one side of zero, at an "
    "error level of 0.05 divided by the number of comparisons; the bootstrap interval and McNemar's test are hints"
)
MARGIN_QUALIFICATION = (
    "the margin came with this request; it supports a claim only if it was chosen before anybody looked at the answers"
)


@dataclass(frozen=True, slots=True)
class NonInferiority:
    """Whether a candidate loses less than `margin`: `supported`, `not shown` or `contradicted`."""

    margin: float
    verdict: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """`better`, `worse` or `not established`, the sentence that goes with it, and the word on the margin."""

    word: str
    sentence: str
    non_inferiority: NonInferiority | None


def verdict(made: Comparison, radius: float, margin: float | None) -> Verdict:
    """The verdict of one comparison.

    Args:
        radius: half the width of Hoeffding's interval at the error level that pays for all comparisons made.
        margin: the largest loss that counts as none.
    """
    low, high = clipped(made.quality_delta, radius)
    word = BETTER if low > 0 else WORSE if high < 0 else OPEN
    names = made.candidate_target_id, made.baseline_target_id
    seen = f"quality {_points(made.quality_delta)}, interval {_interval((low, high))}"
    if word == OPEN:
        sentence = f"It is not established that {names[0]} is better or worse than {names[1]}: {seen}.{_hint(made)}"
    else:
        sentence = f"{names[0]} is {word} than {names[1]}: {seen}."
    return Verdict(word, sentence, None if margin is None else _non_inferiority(names, low, high, margin))


def _non_inferiority(names: tuple[str, str], low: float, high: float, margin: float) -> NonInferiority:
    what = f"{names[0]} loses at most {100 * margin:.4g} points against {names[1]}"
    if low >= -margin:
        return NonInferiority(margin, SUPPORTED, f"Supported: {what}.")
    if high < -margin:
        return NonInferiority(margin, CONTRADICTED, f"Contradicted: {names[0]} loses more than {100 * margin:.4g} points.")
    sentence = f"Not shown: that {what}; the interval {_interval((low, high))} reaches below it."
    return NonInferiority(margin, NOT_SHOWN, sentence)


def _hint(made: Comparison) -> str:
    low, high = made.quality_delta_bootstrap_ci95
    if (low > 0 or high < 0) and made.mcnemar_p_holm <= 0.05:
        way = "up" if low > 0 else "down"
        return (
            f" The narrower bootstrap interval {_interval((low, high))} and McNemar's test point {way}: a hint, no proof."
        )
    return ""


def _points(part: float) -> str:
    return f"{100 * part:+.1f} points"


def _interval(ends: tuple[float, float]) -> str:
    return f"[{100 * ends[0]:+.1f}, {100 * ends[1]:+.1f}]"
