"""Accuracy corrected by people's labels of a random sample of the answers that a judge graded. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

METHOD = "prediction_powered_difference"
_Z = 1.959963984540054  # 97.5 % of the normal distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A corrected accuracy over the planned cells, with its 95 % interval."""

    accuracy: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeQuality:
    """How the judge did in the sample; `None` where the sample cannot say.

    Attributes:
        rogan_gladen: accuracy over the planned cells, from these two.
    """

    sensitivity: float | None
    specificity: float | None
    rogan_gladen: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One benchmark's part of a headline.

    Attributes:
        weight: its share of the headline; those of all parts add up to 1.
        correct, planned: right answers as graded, of planned cells.
        judged: the judge's verdict on every graded cell; empty when no judge took part.
        pairs: (judge's verdict, person's label) of each labelled cell.
    """

    weight: float
    correct: int
    planned: int
    judged: Sequence[bool] = ()
    pairs: Sequence[tuple[bool, bool]] = ()


def corrected(judged: Sequence[bool], pairs: Sequence[tuple[bool, bool]], planned: int) -> Corrected | None:
    """The accuracy that people would find, had they labelled every graded cell; `None` with fewer than two labels.

    With `f` the judge's verdict and `y` a person's label, over `G` graded cells of which `m` were labelled:
    `theta = mean_G(f) + mean_m(y - f)`, unbiased for a simple random sample whatever the judge is. Its variance is that of
    the cases, `theta (1 - theta) / G`, and that of the sample, `(1 - m/G) s^2 / m` with `s^2` the variance of `y - f`.
    Sources: Angelopoulos et al., Prediction-Powered Inference, Science 382 (2023), whose estimator this is with the
    labelled cells within the graded ones; Cochran, Sampling Techniques (1977), ch. 7 (difference estimator) and 2.6
    (finite population). A small sample without a single disagreement does not prove that there is none: `s^2` takes one
    more observation of each of -1, 0 and 1, and `theta (1 - theta)` two more of each outcome (Agresti and Coull, 1998).
    Cells without a grade count as incorrect, as in the headline: all is scaled by `G / planned`.

    Args:
        judged: the judge's verdict on every graded cell.
        pairs: (judge's verdict, person's label) of each labelled cell.
    """
    estimate = _estimate(judged, pairs)
    if estimate is None:
        return None
    theta, variance = estimate
    half, part = _Z * math.sqrt(variance), len(judged) / planned
    return Corrected(accuracy=theta * part, lower=max(0.0, theta - half) * part, upper=min(1.0, theta + half) * part)


def headline(parts: Sequence[Part]) -> Corrected | None:
    """The weighted mean of several benchmarks' accuracies, those that a judge graded corrected; `None` while one of these
    has fewer than two labels.

    `sum_b w_b theta_b`, with variance `sum_b w_b^2 v_b`: benchmarks are strata (Cochran, ch. 5). For one that no judge
    graded `v = p (1 - p) / n`, with two more of each outcome.
    """
    mean = variance = 0.0
    for part in parts:
        if part.judged:
            estimate = _estimate(part.judged, part.pairs)
            if estimate is None:
                return None
            scale = part.weight * len(part.judged) / part.planned
        else:
            estimate = part.correct / part.planned, _of_cases(part.correct, part.planned)
            scale = part.weight
        mean, variance = mean + scale * estimate[0], variance + scale**2 * estimate[1]
    half = _Z * math.sqrt(variance)
    return Corrected(accuracy=mean, lower=max(0.0, mean - half), upper=min(1.0, mean + half))


def _estimate(judged: Sequence[bool], pairs: Sequence[tuple[bool, bool]]) -> tuple[float, float] | None:
    """The corrected share of graded cells and its variance; see `corrected`."""
    graded, labelled = len(judged), len(pairs)
    if labelled < 2:
        return None
    gained = sum(human and not judge for judge, human in pairs)
    lost = sum(judge and not human for judge, human in pairs)
    theta = min(1.0, max(0.0, sum(judged) / graded + (gained - lost) / labelled))
    more, less = (gained + 1) / (labelled + 3), (lost + 1) / (labelled + 3)
    spread = more + less - (more - less) ** 2
    return theta, _of_cases(theta * graded, graded) + (1 - labelled / graded) * spread / labelled


def _of_cases(correct: float, count: int) -> float:
    wide = (correct + 2) / (count + 4)
    return wide * (1 - wide) / count


def quality(judged: Sequence[bool], pairs: Sequence[tuple[bool, bool]], planned: int) -> JudgeQuality:
    """The judge's sensitivity and specificity in the sample, and the accuracy that follows from them.

    `(p + sp - 1) / (se + sp - 1)` with `p` the judged share. Source: Rogan and Gladen, Estimating Prevalence from the
    Results of a Screening Test, Am. J. Epidemiol. 107 (1978). Not defined for a judge that is no better than chance.
    """
    right = [judge for judge, human in pairs if human]
    wrong = [judge for judge, human in pairs if not human]
    sensitivity = sum(right) / len(right) if right else None
    specificity = 1 - sum(wrong) / len(wrong) if wrong else None
    rogan_gladen = None
    if sensitivity is not None and specificity is not None and sensitivity + specificity > 1:
        share = (sum(judged) / len(judged) + specificity - 1) / (sensitivity + specificity - 1)
        rogan_gladen = min(1.0, max(0.0, share)) * len(judged) / planned
    return JudgeQuality(sensitivity=sensitivity, specificity=specificity, rogan_gladen=rogan_gladen)
