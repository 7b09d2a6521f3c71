"""The members of a bundle: their names, and messages as the JSON that they hold.

bundle.json                    format, program, the runs that were asked for, and the recoveries of each
runs/<run>/run.json            the run with its frozen plan and its provenance
runs/<run>/cases.jsonl         the cases: id, benchmark, stratum, split, digest; no text, no answer
runs/<run>/calls.jsonl         the ledger's calls with every receipt and settlement
runs/<run>/outcomes.jsonl      the ledger's outcomes
runs/<run>/corrections.jsonl   corrections of usage, where there are any, oldest first
runs/<run>/report.json         the report
runs/<run>/merged-report.json  the report together with the run's recoveries, where there are any
runs/<run>/answers.jsonl       whole cases of split `dev`, where they were asked for
comparison.json                the first run compared with the others, where they can be
evidence/<sha256>.zst          what came over the wire in one call
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TypeVar

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

from srbench_kit.errors import DataLoss
from srbench_kit.values import Json

M = TypeVar("M", bound=Message)
BUNDLE, COMPARISON = "bundle.json", "comparison.json"
RUN, CASES, CALLS, OUTCOMES = "run.json", "cases.jsonl", "calls.jsonl", "outcomes.jsonl"
CORRECTIONS, REPORT, MERGED, ANSWERS = "corrections.jsonl", "report.json", "merged-report.json", "answers.jsonl"
RUN_FILES = (RUN, CASES, CALLS, OUTCOMES, CORRECTIONS, REPORT, MERGED, ANSWERS)


def run_file(run_id: str, name: str) -> str:
    """The name of a run's member."""
    return f"runs/{run_id}/{name}"


def evidence_file(sha256: str) -> str:
    """The name of an evidence's member."""
    return f"evidence/{sha256}.zst"


def json_bytes(value: Json) -> bytes:
    """One line of JSON with sorted keys, the same for the same value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return (text + "\n").encode("utf-8", "surrogatepass")


def message_line(message: Message) -> bytes:
    """A message as one line of JSON, field names as in the proto."""
    value: Json = MessageToDict(message, preserving_proto_field_name=True)
    return json_bytes(value)


def message_lines(messages: Iterable[Message]) -> bytes:
    """Messages as JSON lines."""
    return b"".join(message_line(message) for message in messages)


def read_json(data: bytes, name: str) -> Json:
    """The JSON in a member. Raises: `DataLoss` (`BAD_MEMBER`) naming it."""
    try:
        value: Json = json.loads(data)
    except (ValueError, RecursionError):
        raise DataLoss("BAD_MEMBER", f"{name} cannot be read as JSON", member=name) from None
    return value


def read_message(kind: type[M], data: bytes, name: str) -> M:
    """The message in one line. Raises: `DataLoss` (`BAD_MEMBER`) naming the member."""
    value = read_json(data, name)
    try:
        if not isinstance(value, dict):
            raise ParseError("no object")
        found: M = ParseDict(value, kind())
    except (ParseError, RecursionError, ValueError):
        raise DataLoss("BAD_MEMBER", f"{name} holds no {kind.DESCRIPTOR.name}", member=name) from None
    return found


def read_messages(kind: type[M], data: bytes, name: str) -> Iterator[M]:
    """The messages of a member, a line each. Raises: `DataLoss` (`BAD_MEMBER`)."""
    for line in data.splitlines():
        yield read_message(kind, line, name)
