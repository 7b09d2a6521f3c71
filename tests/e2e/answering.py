"""A model endpoint whose answers a test writes: one streamed chunk, then the usage."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110, "prompt_tokens_details": {"cached_tokens": 0}}
HTTP_500 = "http 500"


class Answering(BaseHTTPRequestHandler):
    """Answers chat completions by `say`; keeps what it was asked in `requests`."""

    requests: ClassVar[list[dict[str, Any]]] = []

    def say(self, asked: dict[str, Any]) -> str:
        """The text of the answer; `HTTP_500` breaks the endpoint."""
        raise NotImplementedError

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.requests.append(asked)
        text = self.say(asked)
        if text == HTTP_500:
            self.send_error(500)
            return
        chunk = {"model": asked["model"], "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
        body = "".join(f"data: {json.dumps(part)}\n\n" for part in (chunk, {"choices": [], "usage": USAGE}))
        data = (body + "data: [DONE]\n\n").encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def answering(model: type[Answering]) -> Iterator[str]:
    """Serves `model` on a free port; its base URL."""
    model.requests = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
