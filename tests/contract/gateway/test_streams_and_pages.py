"""Answers that are not JSON: a watched run, downloaded evidence, and the web pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard
from srbench.v1 import accounting_service_pb2 as pb
from srbench_gateway import watch
from srbench_kit.errors import DataLoss, Unreachable

from tests.contract.gateway.accounting_fakes import BODY

V1 = "/api/sr-bench/v1"
CALL = f"call-{1:032x}"


async def events(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, Any]]:
    """The events of a stream; a comment is an event without a name."""
    name = ""
    async for line in lines:
        if line.startswith(":"):
            yield "", line
        elif line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


async def test_a_watched_run_brings_progress_and_spend_and_an_end(stand: Any) -> None:
    run_id = await stand.run()
    async with stand.http.stream("GET", f"{V1}/runs/{run_id}/watch") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        seen = [event async for event in events(answer.aiter_lines())]
    assert [name for name, _ in seen] == ["run", "run", "run", "end"]
    assert [data["progress"]["completed"] for _, data in seen[:3]] == [0, 1, 2]
    assert seen[2][1]["status"] == "completed"
    assert seen[0][1]["spend"]["known_cost_usd"] == 0.0015
    assert not {"plan", "manifest", "provenance"} & set(seen[0][1])


@pytest.mark.parametrize("away", [False, True])
async def test_a_watched_run_has_no_spend_while_accounting_knows_nothing_of_it(stand: Any, away: bool) -> None:
    run_id = await stand.run()
    stand.accounting.failure = Unreachable("SERVICE_AWAY", "not here") if away else None
    stand.accounting.knows_run = away
    async with stand.http.stream("GET", f"{V1}/runs/{run_id}/watch") as answer:
        seen = [event async for event in events(answer.aiter_lines())]
    assert seen[0][1]["spend"] is None
    assert seen[-1][0] == "end"


async def test_a_quiet_run_is_kept_alive_by_comments_and_left_when_the_reader_goes(
    stand: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch.watch, "__defaults__", (0.05,))
    stand.planner.hold_watch = True
    run_id = await stand.run()
    async with stand.http.stream("GET", f"{V1}/runs/{run_id}/watch") as answer:
        beats = 0
        async for name, _ in events(answer.aiter_lines()):
            beats += name == ""
            if beats == 3:
                break
    await asyncio.wait_for(stand.planner.watched_until_cancelled.wait(), 60)


async def test_a_watched_run_ends_when_the_gateway_stops(stand: Any) -> None:
    stand.planner.hold_watch = True
    run_id = await stand.run()
    async with stand.http.stream("GET", f"{V1}/runs/{run_id}/watch") as answer:
        seen = events(answer.aiter_lines())
        assert (await anext(seen))[0] == "run"
        stand.backends.stopping.set()
        assert [name async for name, _ in seen] == []


async def test_a_planner_that_goes_away_while_a_run_is_watched_is_told_as_an_event(stand: Any) -> None:
    stand.planner.hold_watch = True
    run_id = await stand.run()
    async with stand.http.stream("GET", f"{V1}/runs/{run_id}/watch") as answer:
        seen = events(answer.aiter_lines())
        assert (await anext(seen))[0] == "run"
        await stand.planner_server.drain(0)
        name, data = await anext(seen)
    assert (name, data["reason"]) == ("error", "SERVICE_AWAY")


async def test_evidence_is_the_body_as_received_and_no_page(stand: Any) -> None:
    answer = await stand.http.get(f"{V1}/runs/{await stand.run()}/calls/{CALL}/evidence")
    assert answer.content == BODY
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="{CALL}-body.txt"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]


async def test_evidence_has_a_part_with_status_and_headers(stand: Any) -> None:
    answer = await stand.http.get(f"{V1}/runs/{await stand.run()}/calls/{CALL}/evidence?part=headers")
    assert answer.text == "status: 200\ncontent-type: text/event-stream\nended by itself: yes\n"


async def test_evidence_that_is_not_compressed_is_read_too(stand: Any) -> None:
    stand.accounting.evidence = pb.Evidence(http_status=200, body=b"plain").SerializeToString()
    answer = await stand.http.get(f"{V1}/runs/{await stand.run()}/calls/{CALL}/evidence")
    assert answer.content == b"plain"


@pytest.mark.parametrize("data", [b"\x28\xb5\x2f\xfdbroken", b"\xff\xff\xff"])
async def test_damaged_evidence_is_said_to_be_damaged(stand: Any, data: bytes) -> None:
    stand.accounting.evidence = data
    answer = await stand.http.get(f"{V1}/runs/{await stand.run()}/calls/{CALL}/evidence")
    assert (answer.status_code, answer.json()["reason"]) == (500, "EVIDENCE_DAMAGED")


async def test_evidence_that_accounting_finds_damaged_is_an_error_too(stand: Any) -> None:
    run_id = await stand.run()
    stand.accounting.failure = DataLoss("EVIDENCE_DAMAGED", "the segment does not match its checksum")
    answer = await stand.http.get(f"{V1}/runs/{run_id}/calls/{CALL}/evidence")
    assert (answer.status_code, answer.json()["error"]) == (500, "the segment does not match its checksum")


async def test_evidence_beyond_the_bound_is_not_unpacked(stand: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srbench_gateway.evidence.MAX_EVIDENCE_BYTES", 1000)
    stand.accounting.evidence = zstandard.compress(b"\x1a\xff\x07" + b"x" * 100_000)
    answer = await stand.http.get(f"{V1}/runs/{await stand.run()}/calls/{CALL}/evidence")
    assert (answer.status_code, answer.json()["reason"]) == (429, "EVIDENCE_TOO_LARGE")


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>sr-bench</title>")
    (folder / "assets" / "app-1a2b.js").write_text("let a = 1")
    (tmp_path / "secret.txt").write_text("SECRET")
    return folder


async def test_pages_are_served_without_a_token_and_data_is_not(start: Any, built: Path) -> None:
    stand = await start("a-token-for-callers-from-outside", pages=built)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{stand.http_port}") as browser:
        for path in ("/", "/runs", "/runs/run-1/calls", "/index.html", "/evaluation"):
            page = await browser.get(path)
            assert (page.status_code, "<title>sr-bench" in page.text) == (200, True)
            assert page.headers["content-type"].startswith("text/html")
            assert page.headers["cache-control"] == "no-store"
            policy = page.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self'" in policy
            assert not {"unsafe", "http", "data:", "*"} & set(policy.replace("'", " ").replace("-inline", " ").split())
        script = await browser.get("/assets/app-1a2b.js")
        assert script.headers["cache-control"].endswith("immutable")
        assert "javascript" in script.headers["content-type"]
        gone = await browser.get("/assets/app-older.js")
        assert (gone.status_code, gone.json()["reason"]) == (404, "NO_SUCH_FILE")
        for path in (V1 + "/runs", "/health", "/openapi.json", "/api/other", "/nonesuch", "/favicon.svg/x"):
            assert (await browser.get(path)).status_code == 401, path


@pytest.mark.parametrize(
    "path", ["/%2e%2e/secret.txt", "/assets/%2e%2e/%2e%2e/secret.txt", "/..%2fsecret.txt", "//secret.txt"]
)
async def test_pages_come_from_their_folder_only(start: Any, built: Path, path: str) -> None:
    stand = await start(pages=built)
    reader, writer = await asyncio.open_connection("127.0.0.1", stand.http_port)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
    raw = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    assert b"SECRET" not in raw
    assert raw.startswith(b"HTTP/1.1 ")


async def test_a_page_is_refused_to_a_foreign_host_name(start: Any, built: Path) -> None:
    stand = await start(pages=built)
    assert (await stand.http.get("/", headers={"host": "evil.example"})).status_code == 403


async def test_without_built_pages_the_root_is_no_route(stand: Any) -> None:
    answer = await stand.http.get("/")
    assert (answer.status_code, answer.json()["reason"]) == (404, "NO_SUCH_ROUTE")
