"""When faults strike, and what each of them is called."""

from __future__ import annotations

import pytest
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json
from srbench_testbed.faults import CATALOGUE, Injector, catalogue_json, parse_rule


def strikes(match: dict[str, Json], requests: list[tuple[str, str]]) -> list[bool]:
    injector = Injector((parse_rule({"fault": "no_done", "match": match}, "rule"),))
    return [injector.strike(model, prompt) is not None for model, prompt in requests]


SIX = [("m", "a cat")] * 6


def test_rules_say_which_requests_they_strike() -> None:
    assert strikes({}, SIX) == [True] * 6
    assert strikes({"nth": 2}, SIX) == [False, True, False, False, False, False]
    assert strikes({"every": 3}, SIX) == [False, False, True, False, False, True]
    assert strikes({"times": 2}, SIX) == [True, True, False, False, False, False]
    assert strikes({"model": "n"}, [("m", ""), ("n", "")]) == [False, True]
    assert strikes({"prompt_substring": "cat"}, [("m", "a cat"), ("m", "a dog")]) == [True, False]
    assert strikes({"model": "n", "nth": 2}, [("n", ""), ("m", ""), ("n", "")]) == [False, False, True]


def test_chance_is_decided_by_the_seed() -> None:
    many = [("m", "")] * 1000
    first = strikes({"probability": 0.3, "seed": 1}, many)
    assert first == strikes({"probability": 0.3, "seed": 1}, many)
    assert first != strikes({"probability": 0.3, "seed": 2}, many)
    assert 240 < sum(first) < 360


def test_the_first_rule_that_matches_strikes() -> None:
    injector = Injector(tuple(parse_rule({"fault": name, "match": {"times": 1}}, "rule") for name in ("no_done", "crlf")))
    found = [injector.strike("m", "") for _ in range(3)]
    assert [each.fault.name if each else None for each in found] == ["no_done", "crlf", None]


def test_every_fault_has_one_sentence_and_one_way_to_act() -> None:
    assert len(CATALOGUE) == len(catalogue_json()) >= 50
    for fault in CATALOGUE.values():
        assert fault.sentence.endswith(".")
        assert (fault.on_reply is None) != (fault.on_wire is None)


def test_a_rule_reads_back_what_it_shows() -> None:
    given = parse_rule({"fault": "redirect", "match": {"nth": 1}, "params": {"status": 302}}, "rule")
    assert parse_rule(given.document(), "rule") == given


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"fault": "no_such"}, "NO_SUCH_FAULT"),
        ({"fault": "no_done", "match": {"nht": 1}}, "UNKNOWN_FIELD"),
        ({"fault": "no_done", "params": {"x": 1}}, "UNKNOWN_FIELD"),
        ({"fault": "redirect", "params": {"status": "302"}}, "BAD_FIELD"),
        ({"fault": "no_done", "match": {"probability": 2}}, "BAD_FIELD"),
        ([], "BAD_FIELD"),
    ],
)
def test_bad_rules_are_refused(document: Json, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_rule(document, "rule")
    assert caught.value.reason == reason
