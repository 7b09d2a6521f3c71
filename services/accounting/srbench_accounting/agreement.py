"""How far two judges agree, from the verdicts that outcomes carry. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from srbench_kit.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What two judges said of the same answers.

    Attributes:
        pairs: answers that both gave a verdict on.
        unpaired: answers with a second judge that gave none.
        observed: share of pairs with equal verdicts, in [0, 1]; `None` without pairs.
        kappa: Cohen's kappa, at most 1; `None` without pairs, and when chance alone would agree always.
    """

    pairs: int
    unpaired: int
    observed: float | None
    kappa: float | None


def agreement(details: Iterable[Mapping[str, Json]]) -> Agreement | None:
    """The agreement over outcomes' details; `None` when none has a second judge."""
    both: list[tuple[str, str]] = []
    unpaired = 0
    for found in details:
        if not found.get("second_judge"):
            continue
        first, second = found.get("verdict"), found.get("second_verdict")
        if isinstance(first, str) and isinstance(second, str):
            both.append((first, second))
        else:
            unpaired += 1
    if not both and not unpaired:
        return None
    observed = sum(first == second for first, second in both) / len(both) if both else None
    return Agreement(pairs=len(both), unpaired=unpaired, observed=observed, kappa=cohen_kappa(both))


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """`(p_o - p_e) / (1 - p_e)`: agreement beyond what the two judges' own frequencies would give by chance.

    Source: J. Cohen, A Coefficient of Agreement for Nominal Scales (1960). `None` where it is not defined: without pairs,
    and when both judges only ever gave one and the same verdict.
    """
    if not pairs:
        return None
    count = len(pairs)
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    # In integers, so that perfect agreement is exactly 1.
    agreed = count * sum(one == other for one, other in pairs)
    chance = sum(first[verdict] * second[verdict] for verdict in first)
    return None if chance == count * count else (agreed - chance) / (count * count - chance)
