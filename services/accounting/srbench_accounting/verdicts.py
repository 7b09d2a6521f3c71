"""What a comparison says in one word and one sentence. An interval that spans zero never shows a gain or a loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from srbench_kit.adaptive import more_cases
from srbench_kit.saying import Saying

from srbench_accounting.band import Band
from srbench_accounting.claims import Claim
from srbench_accounting.compare import Comparison

BETTER, WORSE, OPEN = "better", "worse", "not established"
SUPPORTED, NOT_SHOWN, CONTRADICTED = "supported", "not shown", "contradicted"
RULE = Saying(
    "VERDICT_RULE",
    "better or worse only when the whole interval of the quality difference in the simultaneous band lies on one side of "
    "zero: the variance-adaptive interval at an error level of 0.05 divided by the number of single models times the "
    "number of candidates, which pays for having picked the strongest single model afterwards; the 95 % intervals, the "
    "bootstrap and McNemar's test are hints",
)
MARGIN_QUALIFICATION = Saying(
    "MARGIN_EXPLORATORY",
    "the margin came with this request, when answers could be looked at: what it finds is exploratory; a margin that is to "
    "support a claim stands in the plan (claims) before the run",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NonInferiority:
    """Whether a candidate loses at most `margin`; fields as in `srbench.v1.NonInferiority`."""

    margin: float
    verdict: str
    sentence: str
    exploratory: bool
    plan_run_id: str | None
    more_cases: int | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`better`, `worse` or `not established`, the sentence that goes with it, and the words on margins.

    Attributes:
        non_inferiority: of the margin that came with the request.
        claims: of the plans' claims.
    """

    word: str
    sentence: str
    non_inferiority: NonInferiority | None
    claims: tuple[NonInferiority, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Cases and weights of the strata."""

    sizes: Sequence[int]
    weights: Sequence[float]


def verdict(made: Comparison, band: Band, sizes: Sizes, margin: float | None, claim: Claim | None) -> Verdict:
    """The verdict of one comparison, by its interval in the band.

    Args:
        margin: the largest loss that counts as none, as the request says.
        claim: what a plan says of it.
    """
    low, high = band.against(made.baseline_target_id)[0].interval
    word = BETTER if low > 0 else WORSE if high < 0 else OPEN
    names = made.candidate_target_id, made.baseline_target_id
    seen = f"quality {_points(made.quality_delta)}, interval {_interval((low, high))}"
    if word == OPEN:
        sentence = f"It is not established that {names[0]} is better or worse than {names[1]}: {seen}.{_hint(made)}"
    else:
        sentence = f"{names[0]} is {word} than {names[1]}: {seen}."
    asked = None if margin is None else _non_inferiority(names, band, sizes, margin, None)
    claimed = () if claim is None else (_non_inferiority(names, band, sizes, claim.margin, claim),)
    return Verdict(word, sentence, asked, claimed)


def _non_inferiority(
    names: tuple[str, str], band: Band, sizes: Sizes, margin: float, claim: Claim | None
) -> NonInferiority:
    row, counts = band.against(names[1])
    low, high = row.interval
    what = f"{names[0]} loses at most {100 * margin:.4g} points against {names[1]}"
    word, more = NOT_SHOWN, None
    if low >= -margin:
        word, sentence = SUPPORTED, f"Supported: {what}; interval {_interval((low, high))}."
    elif high < -margin:
        word, sentence = CONTRADICTED, f"Contradicted: that {what}; interval {_interval((low, high))}."
    else:
        more = more_cases(counts, sizes.sizes, sizes.weights, band.alpha, -margin)
        way = "for" if row.quality_delta > -margin else "against"
        rest = (
            "no number of cases would decide it, for what was seen lies on the margin"
            if more is None
            else f"if answers went on as they came, about {_rounded(more):,} more cases would decide it {way} the claim"
        )
        sentence = f"Not shown: that {what}; the interval {_interval((low, high))} reaches across; {rest}."
    origin = "Exploratory" if claim is None else f"Claimed by the plan of run {claim.run_id}"
    return NonInferiority(
        margin=margin,
        verdict=word,
        sentence=f"{origin}. {sentence}",
        exploratory=claim is None,
        plan_run_id=None if claim is None else claim.run_id,
        more_cases=more,
    )


def _hint(made: Comparison) -> str:
    low, high = made.quality_delta_bootstrap_ci95
    # The test weighs every case alike, the interval every benchmark: they may point to different sides.
    up, down = low > 0 and made.wins > made.losses, high < 0 and made.wins < made.losses
    if (up or down) and made.mcnemar_p_holm <= 0.05:
        way = "up" if up else "down"
        return (
            f" The narrower bootstrap interval {_interval((low, high))} and McNemar's test point {way}: a hint, no proof."
        )
    return ""


def _rounded(count: int) -> int:
    """Two leading digits, rounded up: a projection knows no more."""
    unit = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // unit) * unit


def _points(part: float) -> str:
    return f"{100 * part:+.1f} points"


def _interval(ends: tuple[float, float]) -> str:
    return f"[{100 * ends[0]:+.1f}, {100 * ends[1]:+.1f}]"
