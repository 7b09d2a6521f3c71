"""Claims: written before the run, strict, and kept where they say something."""

from __future__ import annotations

from typing import Any

import pytest
from planner_doubles import case, freezer, manifest, target
from srbench_kit.errors import InvalidInput
from srbench_planner import convert
from srbench_planner.claims import freeze_claims
from srbench_planner.recovery_manifest import child_manifest

CLAIM: dict[str, Any] = {"kind": "non_inferiority", "margin": 0.02}


def test_a_claim_is_frozen_shown_and_freezes_to_itself() -> None:
    given = [CLAIM, CLAIM | {"margin": 0.01, "target_id": "a"}]
    frozen = freezer().freeze(manifest(claims=given))
    assert frozen.manifest["claims"] == given
    assert freezer().freeze(frozen.manifest | {"cases": frozen.cases}).plan_sha256 == frozen.plan_sha256
    shown = convert.plan(frozen).claims
    assert [(one.kind, one.margin, one.target_id) for one in shown] == [
        ("non_inferiority", 0.02, ""),
        ("non_inferiority", 0.01, "a"),
    ]


@pytest.mark.parametrize(
    ("claims", "reason", "part"),
    [
        ({}, "BAD_FIELD", "claims is {}; expected a list"),
        ([1], "BAD_FIELD", "claims[0] is 1; expected an object"),
        ([{"margin": 0.02}], "BAD_FIELD", "claims[0].kind is null; expected non_inferiority"),
        ([CLAIM | {"kind": "superiority"}], "BAD_FIELD", "claims[0].kind"),
        ([{"kind": "non_inferiority"}], "MISSING_FIELD", "claims[0].margin is missing"),
        ([CLAIM | {"margin": 0}], "BAD_FIELD", "claims[0].margin is 0; expected a part of one"),
        ([CLAIM | {"margin": 1}], "BAD_FIELD", "above 0 and below 1"),
        ([CLAIM | {"margin": 2.0}], "BAD_FIELD", "such as 0.02"),
        ([CLAIM | {"margin": "0.02"}], "BAD_FIELD", "claims[0].margin"),
        ([CLAIM | {"margin": True}], "BAD_FIELD", "claims[0].margin is true"),
        ([CLAIM | {"target_id": "other"}], "BAD_FIELD", "claims[0].target_id"),
        ([CLAIM | {"margn": 0.1}], "UNKNOWN_FIELD", "claims[0].margn is not known; did you mean claims[0].margin?"),
        ([CLAIM, CLAIM | {"margin": 0.05}], "LISTED_TWICE", "claims[1]"),
    ],
)
def test_what_is_no_claim_is_refused_with_its_place(claims: Any, reason: str, part: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        freezer().freeze(manifest(claims=claims))
    assert caught.value.reason == reason
    assert part in caught.value.message


def test_no_claims_are_no_part_of_the_manifest() -> None:
    assert freeze_claims(None, []) == freeze_claims([], []) == []
    assert "claims" not in freezer().freeze(manifest()).manifest


def test_a_recovery_of_some_cells_claims_nothing_of_its_own() -> None:
    two = manifest(targets=[target("a"), target("b")], cases=[case()], claims=[CLAIM | {"target_id": "b"}])
    parent = freezer().freeze(two)
    child = child_manifest(parent.manifest, parent.cases, [(str(parent.cases[0]["id"]), "a")])
    assert "claims" not in freezer().freeze(child).manifest
