"""A testbed's models and routers for tests, and ways to ask it over real sockets."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import orjson
from srbench_kit.values import Json
from srbench_testbed.answer_key import Entry, prompt_sha256
from srbench_testbed.config import Config, parse_config
from srbench_testbed.server import Testbed

CONFIG: Json = {
    "seed": 7,
    "models": [
        {"id": "one", "skill": {"default": 1}, "cached_share": 0.5, "chunks": 8},
        {"id": "two", "skill": {"default": 0}, "chunks": 8},
        {"id": "claude", "usage": "anthropic", "cached_share": 0.5},
        {"id": "deep", "usage": "deepseek", "cached_share": 0.5},
        {"id": "gem", "usage": "gemini", "reasoning": "reasoning_content"},
        {"id": "silent", "usage_when": "never"},
        {"id": "chatty", "usage_when": "always"},
        {"id": "document", "response_mode": "json"},
        {"id": "slow", "ttft_ms": 60, "itl_ms": 20, "chunks": 4},
        {"id": "thinks", "reasoning": "think", "chunks": 5},
        {"id": "alias", "response_model": "alias-2026-01"},
    ],
    "routers": [
        {
            "id": "mix",
            "routes": [
                {"decision": "maths", "subject": "mmlu-pro/math", "calls": ["two", "one"]},
                {"decision": "poems", "keyword": "poem", "model": "two"},
                {"decision": "rest", "model": "one"},
            ],
        },
        {"id": "mix-trailer", "receipt": "trailer", "routes": [{"decision": "rest", "model": "one"}]},
        {"id": "mix-event", "receipt": "event", "routes": [{"decision": "rest", "model": "one"}]},
        {"id": "mix-none", "receipt": "none", "response_model": "router", "routes": [{"decision": "rest", "model": "one"}]},
    ],
}
MATHS = "What is 1 + 1?"
KEY = {
    prompt_sha256(MATHS): Entry(
        prompt_sha256=prompt_sha256(MATHS),
        kind="choice",
        right="C",
        wrong=("A", "B", "D"),
        benchmark="mmlu-pro",
        stratum="math",
        case_id="mmlu-pro/1",
    )
}


def config() -> Config:
    return parse_config(CONFIG)


def body(model: str, prompt: str = "hello", stream: bool = True, **more: Json) -> dict[str, Json]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "stream": stream,
        "stream_options": {"include_usage": True},
        **more,
    }


async def post(testbed: Testbed, payload: Json, path: str = "/v1/chat/completions", **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        return await client.post(testbed.url + path, content=orjson.dumps(payload), headers=headers)


async def get(testbed: Testbed, path: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        return await client.get(testbed.url + path)


def events(response: httpx.Response) -> list[dict[str, Any]]:
    blocks = [block.removeprefix("data: ") for block in response.text.split("\n\n") if block]
    assert blocks[-1] == "[DONE]"
    return [orjson.loads(block) for block in blocks[:-1]]


def text(response: httpx.Response) -> str:
    return "".join(choice["delta"].get("content", "") for event in events(response) for choice in event["choices"])


async def raw(testbed: Testbed, payload: Json, timeout_s: float = 60.0) -> tuple[bytes, str]:
    """All bytes of an answer, and how the connection ended: `closed`, `reset` or `open`."""
    reader, writer = await asyncio.open_connection(testbed.host, testbed.port)
    data = orjson.dumps(payload)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: t\r\ncontent-length: %d\r\n\r\n%b" % (len(data), data))
    received = b""
    try:
        while True:
            part = await asyncio.wait_for(reader.read(65536), timeout_s)
            if not part:
                return received, "closed"
            received += part
    except TimeoutError:
        return received, "open"
    except ConnectionResetError:
        return received, "reset"
    finally:
        writer.close()


async def fault(testbed: Testbed, name: str, match: dict[str, Json] | None = None, **params: Json) -> None:
    answer = await post(testbed, [{"fault": name, "match": match or {}, "params": params}], "/testbed/faults")
    assert answer.status_code == 200, answer.text
