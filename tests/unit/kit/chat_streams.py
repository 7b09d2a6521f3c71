"""Answers of chat endpoints, event by event, and how they are read."""

from __future__ import annotations

import json
from typing import Any

from srbench_kit.completion import Completion, read_answer

SSE = [("content-type", "text/event-stream; charset=utf-8")]
JSON = [("content-type", "application/json")]
USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 5,
    "total_tokens": 25,
    "prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
}
DONE = b"data: [DONE]\n\n"


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(finish: str | None = None, index: int = 0, **fields: Any) -> bytes:
    return event({"model": "m", "choices": [{"index": index, "delta": fields, "finish_reason": finish}]})


STOP = delta("stop")
USED = event({"model": "m", "choices": [], "usage": USAGE})


def read(*parts: bytes, clean: bool = True, headers: Any = SSE, status: int = 200, trailers: Any = ()) -> Completion:
    return read_answer(status, headers, b"".join(parts), clean_end=clean, trailers=trailers)
