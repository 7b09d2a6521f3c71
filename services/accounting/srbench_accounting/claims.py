"""What plans claim before their runs, and which claim a comparison judges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NON_INFERIORITY = "non_inferiority"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A candidate loses at most `margin` against the strongest single model.

    Attributes:
        target_id: the candidate; empty means every one.
        run_id: the run whose plan says so.
    """

    kind: str = NON_INFERIORITY
    margin: float
    target_id: str = ""
    run_id: str = ""


def claim_about(target_id: str, claims: Iterable[Claim]) -> Claim | None:
    """The claim about a target that counts; `None` without one.

    Of several the one with the smallest margin: a later plan cannot make what an earlier one promised easier.
    """
    own = [one for one in claims if one.kind == NON_INFERIORITY and one.target_id in ("", target_id)]
    return min(own, key=lambda one: one.margin, default=None)
