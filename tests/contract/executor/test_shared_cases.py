"""Answers of the kinds that broke similar tools, played over a socket. A folder of case files, if present, adds more."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
import zstandard
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.completion import read_answer

from tests.contract.executor.upstream import Upstream

CASES = Path(os.environ.get("SR_BENCH_CASES", "../shared/cases"))
STATUS = {
    "completed": (pb.CALL_STATUS_COMPLETED, None),
    "incomplete": (None, {"stream_cut"}),
    "protocol_error": (None, {"protocol_error"}),
    "content_filter": (None, {"content_filter"}),
    "timeout": (None, {"deadline_exceeded", "idle_timeout"}),
    "rate_limited": (None, {"rate_limited"}),
}
TIMES = {"first_token_ms": "ttft_ns", "first_content_ms": "first_content_ns", "total_ms": "latency_ns"}
UPSTREAM_ERRORS = {"upstream_error", "http_error", "rate_limited", "overloaded", "parameter_refused", "auth_refused"}


def sse(*values: Any) -> list[dict[str, Any]]:
    return [
        {"b64": base64.b64encode(b"data: " + (v if isinstance(v, bytes) else json.dumps(v).encode()) + b"\n\n").decode()}
        for v in values
    ]


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def own(name: str, chunks: Any, expected: dict[str, Any], **http: Any) -> dict[str, Any]:
    stream = {"status": 200, "headers": {"content-type": "text/event-stream"}} | http
    whole = {"outcome": "completed", "text": "", "finish_reason": None, "upstream_requests": 1} | expected
    return {"id": name, "input": {"http": stream, "chunks": chunks, "end": http.pop("end", "eof")}, "expected": whole}


DONE = b"[DONE]"
HALVES = [b'{"choices":[{"index":0,"delta":{"content":"' + half + b'"}}]}' for half in (b"ok \\ud83d", b"\\ude00!")]
LOST = {"error": {"message": "lost"}}
SEPARATORS = "a\u2028b\u2029c\u0085d"
STOP = chunk("stop")
OWN = [
    own("plain", sse(chunk(content="42"), STOP, DONE), {"text": "42", "finish_reason": "stop"}),
    own("error", sse(chunk(content="The"), LOST, DONE), {"outcome": "upstream_error", "text": "The"}),
    own("no-end", sse(chunk(content="The (B")), {"outcome": "incomplete", "text": "The (B"}),
    own("marker-only", sse(DONE), {"outcome": "protocol_error"}),
    own("two-stops", sse(chunk(content="yes"), STOP, STOP, DONE), {"text": "yes", "finish_reason": "stop"}),
    own("halves", sse(*HALVES, STOP, DONE), {"text": "ok \U0001f600!", "finish_reason": "stop"}),
    own("refusal", sse(chunk(refusal="No."), STOP, DONE), {"finish_reason": "stop", "refusal": "No."}),
    own("separators", sse(chunk(content=SEPARATORS), STOP, DONE), {"text": SEPARATORS, "finish_reason": "stop"}),
]


def files() -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in sorted(CASES.glob("B*.json"))] if CASES.is_dir() else []
    return [case for case in found if "chunks" in case["input"] and "http" in case["input"]]


def chunk_bytes(entry: dict[str, Any]) -> bytes:
    if "gen" in entry:
        made = entry["gen"]
        return "".join(made["printf"] % number for number in range(made["from"], made["from"] + made["count"])).encode()
    return base64.b64decode(entry["b64"])


def pieces(entries: list[dict[str, Any]]) -> list[tuple[float, bytes]]:
    return [(entry.get("delay_ms", 0), chunk_bytes(entry)) for entry in entries for _ in range(int(entry.get("repeat", 1)))]


def fits(receipt: pb.Receipt, outcome: str) -> bool:
    if outcome == "upstream_error":
        return receipt.reason in UPSTREAM_ERRORS
    status, reasons = STATUS[outcome]
    return receipt.status == status and not receipt.reason if reasons is None else receipt.reason in reasons


@pytest.mark.parametrize("case", [*OWN, *files()], ids=lambda case: str(case["id"]))
async def test_each_case_gives_its_expected_value(case: dict[str, Any], upstream: Any, ask: Any, answer_type: Any) -> None:
    given, expected = case["input"], case["expected"]
    for extra in given.get("header_variants", [{}]):
        for chunked in (True, False):
            upstream.requests.clear()
            http = given["http"]
            upstream.answers = [
                answer_type(
                    status=http["status"],
                    headers=http["headers"] | extra,
                    chunks=pieces(given["chunks"]),
                    end=given["end"],
                    chunked=chunked,
                )
            ]
            got = await ask(
                upstream.base_url, total_s=given.get("deadline_ms", 20_000) / 1000, key=given.get("api_key", "")
            )
            check(got, expected, given, upstream)
            assert len(upstream.requests) == expected.get("upstream_requests", 1)


def check(got: Any, expected: dict[str, Any], given: dict[str, Any], upstream: Upstream) -> None:
    receipt, completion = got.settled.receipt, got.call.completion
    outcomes = [expected["outcome"], *(also["outcome"] for also in expected.get("also_accept", []) if "outcome" in also)]
    assert any(fits(receipt, outcome) for outcome in outcomes if outcome in STATUS or outcome == "upstream_error"), receipt
    if expected.get("text") is not None:
        assert completion.text == expected["text"]
    if "text_length" in expected:
        assert len(completion.text) == expected["text_length"]
    assert completion.reasoning == expected.get("reasoning", "")
    assert completion.refusal == expected.get("refusal", "")
    assert receipt.finish_reason == (expected["finish_reason"] or "")
    if "http_status" in expected:
        assert receipt.http_status == expected["http_status"]
    usage = expected.get("usage")
    if usage is not None and all(value is None for value in usage.values()):
        assert not receipt.usage_final or not receipt.usage_json
    elif usage is not None:
        assert json.loads(receipt.usage_json)["completion_tokens"] == usage["output"]
        assert receipt.usage_final
    for name, field in TIMES.items():
        if name in expected:
            allowed_ms = expected["tolerance_ms"] + max(0.0, upstream.late_ms(got.call.sent_ns))
            assert abs(getattr(receipt, field) / 1e6 - expected[name]) < allowed_ms
    saved = pb.Evidence.FromString(zstandard.decompress(got.settled.evidence, max_output_size=1 << 26))
    again = read_answer(
        saved.http_status, [(h.name, h.value) for h in saved.headers], saved.body, clean_end=saved.clean_end
    )
    if not given.get("api_key"):
        assert again == completion
        return
    assert b"CANARY" not in receipt.SerializeToString() + saved.SerializeToString()
