"""Answers of scripted endpoints, event by event, and the evidence of calls to them."""

from __future__ import annotations

import json
from typing import Any

import zstandard
from srbench.v1 import accounting_service_pb2 as pb

KEY = "sk-test-CANARY-123456"
USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25, "prompt_tokens_details": {"cached_tokens": 8}}


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def content(text: str, finish: str | None = None) -> bytes:
    return event({"model": "m", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})


STOP = event({"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
TAIL = [STOP, event({"choices": [], "usage": USAGE}), b"data: [DONE]\n\n"]


def whole(text: str, finish: str = "stop") -> list[tuple[float, bytes]]:
    """An answer that comes at once, to its end."""
    return at_once(content(text), content("", finish), event({"usage": USAGE}), b"data: [DONE]\n\n")


def at_once(*parts: bytes) -> list[tuple[float, bytes]]:
    return [(0, part) for part in parts]


def evidence(result: Any) -> pb.Evidence:
    return pb.Evidence.FromString(zstandard.decompress(result.settled.evidence, max_output_size=1 << 26))
