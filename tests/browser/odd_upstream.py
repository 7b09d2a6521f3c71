"""A model endpoint that says what no model should: markup that wants to run, and more tokens than a double can count."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
LINK = "javascript:alert(1)"
ANSWER = (
    f"{HOSTILE} [click]({LINK}) ![remote](http://127.0.0.1:9/pixel.png) "
    f"<script>document.title='owned'</script> $\\href{{{LINK}}}{{x}}$"
)
PROMPT_TOKENS = 9007199254740993
REPLY = {
    "id": "odd",
    "object": "chat.completion",
    "model": "odd",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": 12,
        "total_tokens": PROMPT_TOKENS + 12,
        "prompt_tokens_details": {"cached_tokens": 0},
    },
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        body = json.dumps(REPLY).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return None


@contextmanager
def odd_upstream() -> Iterator[str]:
    """The endpoint's base address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
