"""A document of a bundle against the same derived again, value by value."""

from __future__ import annotations

from srbench_accounting.verification import compare_values
from srbench_kit.values import Json

SAYINGS: Json = [{"text": "Some costs are unknown.", "code": "COSTS_UNKNOWN", "facts": {}}]


def differing(recorded: Json, derived: Json) -> list[Json]:
    return [row["name"] for row in compare_values("report", recorded, derived) if not row["equal"]]


def test_a_document_of_before_sentences_had_codes_is_still_equal() -> None:
    old: Json = {"limitations": ["Some costs are unknown."]}
    assert differing(old, {"limitations": ["Some costs are unknown."], "sayings": SAYINGS}) == []
    assert differing(old, {"limitations": ["All costs are known."], "sayings": SAYINGS}) == ["report.limitations[0]"]


def test_codes_that_were_recorded_are_compared() -> None:
    new: Json = {"sayings": [{"text": "Some costs are unknown.", "code": "OTHER", "facts": {}}]}
    assert differing(new, {"sayings": SAYINGS}) == ["report.sayings[0].code"]
    assert differing({"sayings": []}, {"sayings": SAYINGS}) != []
