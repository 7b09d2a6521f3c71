"""Which cases a profile takes: `stratified-hash-v1`, as published. Pure; the same ids give the same sets for ever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from srbench_kit.canonical import digest
from srbench_kit.errors import InvalidInput

from srbench_planner.benchmark import MAX_SEED, PROFILES, Counts, Profile

SELECTION = "stratified-hash-v1"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A case as the selection sees it: its full id (`mmlu-pro/70`) and its stratum."""

    id: str
    stratum: str


def ordered(candidates: Iterable[Candidate], seed: int, order: Literal["proportional", "balanced"]) -> list[str]:
    """All case ids in the order from which profiles are cut.

    Within a stratum ids are sorted by the digest of `[seed, id]`. `proportional` then takes the first of every stratum
    by name, and spreads the n others of each over (i + 0.5) / n; `balanced` goes round the strata.
    """
    strata: dict[str, list[str]] = {}
    for candidate in candidates:
        strata.setdefault(candidate.stratum, []).append(candidate.id)
    groups = [(name, sorted(strata[name], key=lambda case_id: digest([seed, case_id]))) for name in sorted(strata)]
    if order == "balanced":
        longest = max((len(ids) for _, ids in groups), default=0)
        return [ids[turn] for turn in range(longest) for _, ids in groups if turn < len(ids)]
    firsts = [ids[0] for _, ids in groups]
    rest = [
        ((place + 0.5) / (len(ids) - 1), name, case_id) for name, ids in groups for place, case_id in enumerate(ids[1:])
    ]
    return firsts + [case_id for _, _, case_id in sorted(rest)]


def window(ids: Sequence[str], counts: Counts, profile: Profile, limit: int | None, benchmark: str) -> list[str]:
    """The ids that `profile` takes of the ordered `ids`; with `limit`, the first so many of them.

    Raises: `InvalidInput` (`BAD_LIMIT`, `TOO_FEW_CASES`).
    """
    wanted = counts.of(profile)
    if limit is not None:
        if not 1 <= limit <= wanted:
            raise InvalidInput(
                "BAD_LIMIT",
                f"limit is {limit}; expected 1 to {wanted}, the size of {benchmark}/{profile}",
                field="limit",
                value=limit,
            )
        wanted = limit
    start = counts.start(profile)
    if len(ids) < start + wanted:
        after = f" after the {start} of quick" if start else ""
        raise InvalidInput(
            "TOO_FEW_CASES",
            f"{benchmark}/{profile} needs {wanted} cases{after}, the source has {len(ids)} in all",
            needed=start + wanted,
            found=len(ids),
        )
    return list(ids[start : start + wanted])


def check_profile(profile: str) -> Profile:
    """`profile`, checked. Raises `InvalidInput` (`BAD_PROFILE`)."""
    for known in PROFILES:
        if profile == known:
            return known
    raise InvalidInput(
        "BAD_PROFILE", f"profile is {profile!r}; expected {', '.join(PROFILES)}", field="profile", value=profile
    )


def check_seed(seed: int) -> int:
    """`seed`, checked. Raises `InvalidInput` (`BAD_SEED`)."""
    if not 0 <= seed <= MAX_SEED:
        raise InvalidInput("BAD_SEED", f"seed is {seed}; expected 0 to {MAX_SEED}", field="seed", value=seed)
    return seed
