"""What the services say by a code or a reason has its words in Chinese: a new one comes with its translation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DASHBOARD = ROOT / "gateway" / "dashboard" / "src" / "i18n"
# The contracts whose refusals reach the browser.
CONTRACTS = ("planner_service", "accounting_service", "recovery_service", "judging")
# The status of a refusal, and states; what stands in these files in capitals and is no reason.
STATUSES = frozenset(
    {"NOT_FOUND", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "PERMISSION_DENIED", "DATA_LOSS", "UNAVAILABLE"}
    | {"UNSPECIFIED", "DONE", "FAILED", "CANCELLED", "INTERRUPTED", "RESOURCE_EXHAUSTED", "ABORTED"}
)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def keys(name: str) -> set[str]:
    return set(re.findall(r"^  ([A-Za-z_0-9]+): '", (DASHBOARD / name).read_text(), flags=re.MULTILINE))


def first_arguments(call: str) -> Iterator[str]:
    """The first argument of every call of that name in the services, where it is a text."""
    for path in (ROOT / "services").rglob("*.py"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == call and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value


def test_every_sentence_with_a_code_is_translated() -> None:
    codes = set(first_arguments("Saying"))
    assert len(codes) > 25
    assert codes - keys("sentences.ts") == set()


def test_every_reason_against_a_comparison_is_translated() -> None:
    reasons = set(first_arguments("_difference")) | set(first_arguments("_differs"))
    reasons |= {reason for name in ("_plain", "_objects", "_shared") for reason in first_arguments(name)}
    assert "PRICES_DIFFER" in reasons
    assert reasons - keys("reasons.ts") == set()


def test_every_documented_refusal_is_translated() -> None:
    documents = [(ROOT / "proto" / "srbench" / "v1" / f"{name}.proto").read_text() for name in CONTRACTS]
    reasons = {reason for text in documents for reason in re.findall(r"`([A-Z][A-Z_]{4,})`", text)} - STATUSES
    assert len(reasons) > 40
    assert reasons - keys("reasons.ts") == set()


def expectations() -> Iterator[str]:
    """What the planner's checks expect of values, with a 7 for what a phrase has from elsewhere."""
    for path in (ROOT / "services" / "planner").rglob("*.py"):
        for node in ast.walk(tree(path)):
            name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
            place = {"bad": 2, "missing": 1}.get(name)
            if place is None or not isinstance(node, ast.Call) or len(node.args) <= place:
                continue
            phrase = node.args[place]
            if isinstance(phrase, ast.Constant):
                yield str(phrase.value)
            if isinstance(phrase, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in phrase.values)


def test_every_expectation_of_a_value_is_translated() -> None:
    text = (DASHBOARD / "expected.ts").read_text()
    phrases = [re.compile(found, re.DOTALL) for found in re.findall(r"^  \[/(.*)/s?, '", text, flags=re.MULTILINE)]
    expected = set(expectations())
    assert len(expected) > 40
    assert {phrase for phrase in expected if not any(each.search(phrase) for each in phrases)} == set()
