"""What a command says to type next."""

from __future__ import annotations

import shlex

import pytest
from srbench_cli.context import Session


@pytest.mark.parametrize(
    ("session", "offline", "expected"),
    [
        (Session("sr-bench"), False, ["sr-bench", "show", "run 1"]),
        (
            Session("vllm-sr benchmark", store="/a b/$(c)"),
            False,
            ["vllm-sr", "benchmark", "--store", "/a b/$(c)", "show", "run 1"],
        ),
        (Session("sr-bench", url="http://h:1"), False, ["sr-bench", "--url", "http://h:1", "show", "run 1"]),
        (Session("sr-bench", url="http://h:1", store="s"), False, ["sr-bench", "--store", "s", "show", "run 1"]),
        (Session("sr-bench", store="s"), True, ["sr-bench", "show", "run 1"]),
    ],
)
def test_a_hint_can_be_typed_into_a_shell_and_leads_to_the_same_service(
    session: Session, offline: bool, expected: list[str]
) -> None:
    assert shlex.split(session.hint("show", "run 1", offline=offline).strip("`")) == expected
