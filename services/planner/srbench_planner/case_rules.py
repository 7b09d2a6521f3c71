"""The cases of a plan: their fields, and what each benchmark needs of them."""

from __future__ import annotations

from collections.abc import Mapping

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import checks
from srbench_planner.ports import BenchmarkSpec
from srbench_planner.reference_rules import check_answer

ROLES = frozenset({"system", "user", "assistant", "tool", "developer"})
REQUEST_FIELDS = ("tools", "functions", "tool_choice", "function_call", "response_format")
FIELDS = frozenset({"id", "benchmark", "messages", "answer", "metadata", "request_metadata", "choices", *REQUEST_FIELDS})
# The members of a message that a router's preview endpoint knows.
PREVIEW_MESSAGE_KEYS = (
    *("role", "name", "content", "tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content"),
)
MAX_METADATA = 32
MAX_METADATA_KEY = 128
MAX_METADATA_VALUE = 1024


def check_cases(
    cases: list[Json], specs: Mapping[str, BenchmarkSpec], *, live: bool, holdout: bool
) -> list[dict[str, Json]]:
    """`cases` when every one of them keeps the rules. `holdout` stands for the profile `standard`.

    Raises: `InvalidInput` with the field at fault; `DUPLICATE_CASE`, `NO_SUCH_BENCHMARK`, `NO_CASES`.
    """
    if not cases:
        raise InvalidInput("NO_CASES", "cases is empty; expected at least one case", field="cases")
    seen: set[str] = set()
    checked: list[dict[str, Json]] = []
    for index, value in enumerate(cases):
        path = f"cases[{index}]"
        case = checks.obj(value, path)
        if not case.keys() <= FIELDS:
            checks.known_keys(case, FIELDS, path)
        name = checks.text(case.get("id"), f"{path}.id", most=512)
        if name in seen:
            raise InvalidInput(
                "DUPLICATE_CASE", f"{path}.id is {name!r}, which an earlier case has; expected unique ids", field=path
            )
        seen.add(name)
        spec = _benchmark(case.get("benchmark"), specs, path)
        _check_case(case, spec, path, live=live, holdout=holdout)
        checked.append(case)
    return checked


def check_previewable(cases: list[dict[str, Json]]) -> None:
    """Refuses cases that a routing preview cannot carry. Raises: `InvalidInput` (`MISSING_FIELD`, `UNKNOWN_FIELD`)."""
    for index, case in enumerate(cases):
        messages = case.get("messages")
        if not isinstance(messages, list) or not messages:
            raise checks.missing(f"cases[{index}].messages", "the messages that the router is to decide about")
        for place, message in enumerate(messages):
            if isinstance(message, dict):
                checks.known_keys(message, PREVIEW_MESSAGE_KEYS, f"cases[{index}].messages[{place}]")


def _benchmark(value: Json, specs: Mapping[str, BenchmarkSpec], path: str) -> BenchmarkSpec:
    spec = specs.get(value) if isinstance(value, str) else None
    if spec is None:
        raise checks.bad(f"{path}.benchmark", value, f"a registered benchmark: {', '.join(specs)}", "NO_SUCH_BENCHMARK")
    return spec


def _check_case(case: dict[str, Json], spec: BenchmarkSpec, path: str, *, live: bool, holdout: bool) -> None:
    messages = case.get("messages")
    if messages or spec.requires_messages:
        _check_messages(messages, f"{path}.messages")
    if live and spec.requires_answer and case.get("answer") is None:
        raise checks.missing(f"{path}.answer", f"the reference answer, which {spec.id} needs")
    metadata = case.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise checks.bad(f"{path}.metadata", metadata, "an object")
    if holdout and (metadata or {}).get("split") != "holdout":
        raise checks.bad(
            f"{path}.metadata.split", (metadata or {}).get("split"), "holdout, as in every case of profile standard"
        )
    for key in ("tools", "functions"):
        if key in case:
            checks.items(case[key], f"{path}.{key}")
    if "choices" in case:
        choices = checks.items(case["choices"], f"{path}.choices")
        if not all(isinstance(choice, str) for choice in choices):
            raise checks.bad(f"{path}.choices", choices, "a list of texts")
    if "request_metadata" in case:
        _check_request_metadata(case["request_metadata"], f"{path}.request_metadata")
    if live and spec.requires_answer:
        check_answer(case, spec.grader, path)


def _check_messages(messages: Json, path: str) -> None:
    if not isinstance(messages, list) or not messages:
        raise checks.bad(path, messages, "a list of at least one message")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise checks.bad(f"{path}[{index}]", message, "an object")
        role = message.get("role")
        if not isinstance(role, str) or role not in ROLES:
            raise checks.bad(f"{path}[{index}].role", role, "system, user, assistant, tool or developer")


def _check_request_metadata(value: Json, path: str) -> None:
    entries = checks.obj(value, path)
    if len(entries) > MAX_METADATA:
        raise checks.bad(path, len(entries), f"at most {MAX_METADATA} entries")
    for key, item in entries.items():
        if not 1 <= len(key.encode()) <= MAX_METADATA_KEY:
            raise checks.bad(path, key, f"keys of 1 to {MAX_METADATA_KEY} bytes")
        if not isinstance(item, str) or len(item.encode()) > MAX_METADATA_VALUE:
            raise checks.bad(f"{path}.{key}", item, f"a text of at most {MAX_METADATA_VALUE} bytes")
