"""What the testbed records of the requests that came."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import orjson
from srbench_testbed.server import Testbed

from tests.contract.testbed.asking import KEY, body, config, fault, get, post, raw


async def test_the_ledger_proves_how_often_something_was_sent(testbed: Testbed) -> None:
    secret = "Bearer sk-very-secret-value"
    for prompt in ("x", "x", "y"):
        await post(testbed, body("one", prompt), authorization=secret, **{"x-session-id": "s-1"})
    await post(testbed, body("one", "x", temperature=0.5))
    counts = (await get(testbed, "/testbed/counts")).json()
    assert counts["requests"] == 4
    assert sorted(counts["identities"].values()) == [1, 3]
    assert sorted(counts["bodies"].values()) == [1, 1, 2]
    assert counts["most"] == 3
    assert counts["in_hand"] == 0
    lines = [orjson.loads(line) for line in (await get(testbed, "/testbed/ledger")).text.splitlines()]
    assert len(lines) == 4
    first = lines[0]
    assert (first["method"], first["path"], first["model"], first["session_id"]) == (
        "POST",
        "/v1/chat/completions",
        "one",
        "s-1",
    )
    assert ["authorization", "sha256:" + hashlib.sha256(secret.encode()).hexdigest()] in first["headers"]
    assert secret not in str(lines)
    assert first["received_ns"] < first["first_byte_ns"] <= first["ended_ns"]
    assert first["ended"] == "complete"
    page = (await get(testbed, f"/testbed/ledger?after={first['sequence']}&limit=2")).text.splitlines()
    assert [orjson.loads(line)["sequence"] for line in page] == [lines[1]["sequence"], lines[2]["sequence"]]
    assert (await get(testbed, "/testbed/ledger?limit=x")).status_code == 400


async def test_a_reset_forgets(testbed: Testbed) -> None:
    await post(testbed, body("one"))
    await fault(testbed, "no_done")
    await post(testbed, {}, "/testbed/reset")
    assert (await get(testbed, "/testbed/counts")).json()["requests"] == 0
    assert len((await get(testbed, "/testbed/faults")).json()["active"]) == 1
    await post(testbed, {}, "/testbed/reset?faults=1")
    assert (await get(testbed, "/testbed/faults")).json()["active"] == []


async def test_a_client_that_goes_away_is_on_record(testbed: Testbed) -> None:
    await fault(testbed, "hang_mid_stream")
    data, ended = await raw(testbed, body("one"), 0.3)
    assert ended == "open"
    assert data.count(b"data: ") == 4
    for _ in range(100):
        if testbed.ledger.rows[0].ended:
            break
        await asyncio.sleep(0.01)
    assert testbed.ledger.rows[0].ended == "client_closed"


async def test_the_ledger_file_holds_each_request_before_it_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    async with Testbed(config(), KEY, ledger_path=path) as testbed:
        await fault(testbed, "hang_before_headers")
        await raw(testbed, body("one"), 0.2)
        received = [orjson.loads(line) for line in path.read_bytes().splitlines()]
        assert received[0]["event"] == "received"
        assert received[0]["model"] == "one"
        assert received[0]["fault"] == ""
    ended = orjson.loads(path.read_bytes().splitlines()[-1])
    assert ended["event"] == "ended"
    assert ended["ended"] in ("client_closed", "shutdown")
