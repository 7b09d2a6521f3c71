"""One large file over HTTP: resumed, verified, and there whole or not at all."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from srbench_grader.fetching import fetch
from srbench_kit.errors import SrBenchError

DATA = bytes(range(256)) * 4096
SHA256 = hashlib.sha256(DATA).hexdigest()


class Files(BaseHTTPRequestHandler):
    """Serves `DATA` with ranges; the first `cuts` answers break off in the middle, `status` takes the place of all."""

    cuts: ClassVar[int] = 0
    status: ClassVar[int] = 0
    ranges: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        asked = self.headers.get("range")
        self.ranges.append(asked)
        if Files.status:
            self.send_error(Files.status)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if start >= len(DATA):
            self.send_error(416)
            return
        self.send_response(206 if asked else 200)
        self.send_header("content-length", str(len(DATA) - start))
        self.end_headers()
        if Files.cuts:
            Files.cuts -= 1
            self.wfile.write(DATA[start : start + 300_000])
            return
        self.wfile.write(DATA[start:])

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    Files.cuts, Files.status, Files.ranges = 0, 0, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/test_data.h5"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_transfer_that_breaks_off_goes_on_where_it_stopped(url: str, tmp_path: Path) -> None:
    Files.cuts = 2
    path = tmp_path / "deep" / "test_data.h5"
    fetch(url, path, SHA256, "mend", pause_s=0)
    assert path.read_bytes() == DATA
    assert Files.ranges == [None, "bytes=300000-", "bytes=600000-"]
    assert list(path.parent.iterdir()) == [path]


def test_what_an_earlier_process_left_is_gone_on_from(url: str, tmp_path: Path) -> None:
    (tmp_path / "test_data.h5.part").write_bytes(DATA)
    fetch(url, tmp_path / "test_data.h5", SHA256, "mend", pause_s=0)
    assert (tmp_path / "test_data.h5").read_bytes() == DATA


def test_bytes_that_are_not_the_expected_ones_never_get_the_name(url: str, tmp_path: Path) -> None:
    with pytest.raises(SrBenchError) as caught:
        fetch(url, tmp_path / "test_data.h5", "0" * 64, "get it by hand", pause_s=0)
    assert caught.value.reason == "BAD_TEST_DATA"
    assert "get it by hand" in caught.value.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("status", "attempts"), [(404, 1), (503, 5), (429, 5)])
def test_only_what_may_pass_is_tried_again(url: str, tmp_path: Path, status: int, attempts: int) -> None:
    Files.status = status
    with pytest.raises(SrBenchError) as caught:
        fetch(url, tmp_path / "test_data.h5", SHA256, "get it by hand", pause_s=0)
    assert caught.value.reason == "SOURCE_UNREACHABLE"
    assert f"status {status}; get it by hand" in caught.value.message
    assert len(Files.ranges) == attempts


def test_a_place_that_cannot_be_written_is_named(url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SrBenchError) as caught:
        fetch(url, tmp_path / "file" / "test_data.h5", SHA256, "mend", pause_s=0)
    assert caught.value.reason == "NOT_WRITABLE"
    assert "SR_BENCH_HOME" in caught.value.message
