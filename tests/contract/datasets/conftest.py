"""A small Hugging Face hub: the part of its HTTP API that downloads use, with faults by name."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Hub:
    """Files of datasets by (repository, revision, path), and what happened.

    Attributes:
        cut_after: cut each of the next transfers after so many bytes.
        failures: answer so many requests for file contents with status 503 first.
        limited: answer each of the next requests for files with status 429 and these headers.
        stall: answer nothing until the test has ended.
        gated: repositories that want `token`.
        requests: (method, path, range header or none) in order.
    """

    files: dict[tuple[str, str, str], bytes] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    token: str = ""
    cut_after: list[int] = field(default_factory=list)
    failures: int = 0
    limited: list[dict[str, str]] = field(default_factory=list)
    stall: bool = False
    ended: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    url: str = ""


def handler_of(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            hub.requests.append((self.command, self.path, self.headers.get("range")))
            if hub.stall:
                hub.ended.wait()
                self.close_connection = True
                return None
            if hub.limited and self.path.startswith("/datasets/"):
                return self.refuse(429, "", hub.limited.pop(0))
            parts = self.path.split("?")[0].strip("/").split("/")
            if parts[0] != "datasets" or parts[3:4] != ["resolve"]:
                return self.refuse(404, "EntryNotFound")
            repository, revision, path = "/".join(parts[1:3]), parts[4], "/".join(parts[5:])
            if repository in hub.gated and self.headers.get("authorization") != f"Bearer {hub.token}":
                return self.refuse(403 if self.headers.get("authorization") else 401, "GatedRepo")
            content = hub.files.get((repository, revision, path))
            if content is None:
                known = {(repo, rev) for repo, rev, _ in hub.files}
                return self.refuse(404, "EntryNotFound" if (repository, revision) in known else "RevisionNotFound")
            if body and hub.failures:
                hub.failures -= 1
                return self.refuse(503, "")
            return self.send_file(content, revision, body=body)

        def refuse(self, status: int, code: str, headers: dict[str, str] | None = None) -> None:
            text = json.dumps({"error": code}).encode()
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            if code:
                self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        def send_file(self, content: bytes, revision: str, *, body: bool) -> None:
            first = int((self.headers.get("range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
            part = content[first:]
            self.send_response(206 if first else 200)
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", revision)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(part)))
            if first:
                self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            if body and hub.cut_after:
                self.wfile.write(part[: hub.cut_after.pop(0)])
                self.close_connection = True
            elif body:
                self.wfile.write(part)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub on a free port, named by `HF_ENDPOINT`; no token is set."""
    found = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(found))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("HF_ENDPOINT", found.url)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield found
    found.ended.set()
    server.shutdown()
    server.server_close()
    thread.join()
