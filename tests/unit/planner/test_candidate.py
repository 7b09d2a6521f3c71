"""A candidate plan asks exactly what its baseline asked, or is refused."""

from __future__ import annotations

from typing import Any

import pytest
from planner_doubles import freezer, manifest
from srbench_kit.errors import InvalidInput
from srbench_planner.candidate import check_unchanged


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("case_sha256", "0" * 64),
        ("sampling", {"temperature": 1}),
        ("limits", {"max_cost_usd": 1}),
        ("profile", "smoke"),
        ("seed", 1),
        ("cost_policy", "require_priced"),
        ("output_policy", "native"),
        ("benchmark_options", {"hle": {"judge": "j"}}),
        ("benchmark_weights", {"mmlu-pro": 1}),
        ("adapter_versions", {"mmlu-pro": "v9"}),
    ],
)
def test_what_would_be_asked_otherwise_refuses_the_candidate_and_is_named(field: str, other: Any) -> None:
    frozen = freezer().freeze(manifest())
    check_unchanged(frozen.manifest, frozen)
    with pytest.raises(InvalidInput, match=f"{field} would be") as caught:
        check_unchanged(frozen.manifest | {field: other}, frozen)
    assert (caught.value.reason, caught.value.facts["field"]) == ("CANDIDATE_PLAN_CHANGED", field)
