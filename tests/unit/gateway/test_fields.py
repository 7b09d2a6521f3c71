"""JSON bodies as request messages: by the rules, or a sentence that names the field."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench.v1 import planner_service_pb2 as planner
from srbench_gateway.fields import fill, unknown
from srbench_gateway.params import Param, parse
from srbench_gateway.planning_routes import PREPARE
from srbench_kit import jsonview
from srbench_kit.errors import InvalidInput

LIMIT = Param("limit", "int", "", 1, 500, default=100)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@given(st.lists(TEXTS, max_size=3), TEXTS, st.none() | st.integers(-(2**63), 2**63 - 1))
def test_what_is_shown_can_be_sent_again(benchmarks: list[str], profile: str, seed: int | None) -> None:
    message = planner.CreateDatasetPreparationRequest(benchmarks=benchmarks, profile=profile, seed=seed)
    assert fill(planner.CreateDatasetPreparationRequest(), jsonview.to_json(message)) == message


def test_an_absent_and_a_null_number_are_both_absent() -> None:
    assert not PREPARE.make({"benchmark": "a", "limit": None}).HasField("limit")
    assert not PREPARE.make({"benchmark": "a"}).HasField("limit")
    assert PREPARE.make({"benchmark": "a", "limit": 0}).HasField("limit")


@pytest.mark.parametrize("text", ["half \ud800 pair", "nul \0"])
def test_text_that_services_cannot_store_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        fill(planner.GetRunRequest(), {"id": text})
    assert caught.value.reason == "BAD_TEXT"


def test_a_flag_is_no_number_and_a_number_no_text() -> None:
    for name, value in (("seed", True), ("seed", 1.5), ("seed", "1"), ("profile", 1), ("benchmarks", {})):
        with pytest.raises(InvalidInput) as caught:
            fill(planner.CreateDatasetPreparationRequest(), {name: value})
        assert caught.value.reason == "BAD_TYPE"
        assert name in caught.value.message


def test_an_unknown_name_is_answered_with_the_nearest_one_or_all_of_them() -> None:
    with pytest.raises(InvalidInput, match="did you mean manifest"):
        unknown(["manifst"], ["manifest", "key"], "field")
    with pytest.raises(InvalidInput, match="known are key, manifest"):
        unknown(["zzz"], ["manifest", "key"], "field")
    with pytest.raises(InvalidInput, match="known are none"):
        unknown(["zzz"], [], "field")
    unknown(["key"], ["manifest", "key"], "field")


@given(st.binary(max_size=40))
def test_any_query_is_parsed_or_refused_with_a_reason(query: bytes) -> None:
    def outcome() -> str:
        try:
            return "parsed" if 1 <= int(parse(query, (LIMIT,))["limit"]) <= 500 else "out of range"
        except InvalidInput as error:
            return error.reason

    assert outcome() in {"parsed", "UNKNOWN_PARAMETER", "REPEATED_PARAMETER", "BAD_PARAMETER"}


def test_parameters_are_decoded_and_have_defaults() -> None:
    declared = (LIMIT, Param("q", "text", ""), Param("active", "bool", "", default=False))
    assert parse(b"q=a+b%26%C3%A9&active=true", declared) == {"limit": 100, "q": "a b&é", "active": True}
    assert parse(b"", declared) == {"limit": 100, "active": False}
