"""How many harnesses run at a time, and what their endpoint takes from whoever means it ill."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_executor.harness import attempt, process
from srbench_kit.values import to_value

from tests.contract.executor.harness_scripts import Harnesses, stream
from tests.waiting import until_async

GATED = """
folder = {folder!r}
name = str(given["cell"])
open(os.path.join(folder, "begun-" + name), "w").close()
while not os.path.exists(os.path.join(folder, "go-" + name)):
    time.sleep(0.01)
end()
"""


async def test_no_more_harnesses_run_at_a_time_than_there_is_room_for_and_other_cells_do_not_wait_for_them(
    rig: Any, harnesses: Harnesses, tmp_path: Path, answer_type: Any
) -> None:
    rig.upstream.answers = [answer_type(chunks=stream({"content": "A"}))]
    rig.harness_cells = 2
    gates = tmp_path / "gates"
    gates.mkdir()

    def begun() -> set[str]:
        return {path.name for path in gates.glob("begun-*")}

    rig.queue.add(*(rig.lease(cell, driver="harness:scripted", grader="harness") for cell in range(1, 5)))
    await harnesses.start(GATED.format(folder=str(gates)))
    await until_async(lambda: len(begun()) == 2)
    rig.queue.add(rig.lease(9))
    await rig.finished(1)
    assert [completion.lease.cell for completion in rig.queue.completions] == [9]
    assert (len(begun()), len(rig.queue.waiting)) == (2, 3), "the others were not even leased"
    assert (rig.worker.harness_cell_count, rig.worker.cell_count) == (2, 2)
    held = {lease.cell for lease in (rig.lease(cell) for cell in range(5))} - {lease.cell for lease in rig.queue.waiting}
    (gates / f"go-{min(held)}").touch()
    await until_async(lambda: len(begun()) == 3)
    for cell in range(5):
        (gates / f"go-{cell}").touch()
    await rig.finished(6)
    assert len(begun()) == 5


async def test_an_executor_without_room_for_harnesses_asks_for_none(
    rig: Any, harnesses: Harnesses, answer_type: Any
) -> None:
    rig.upstream.answers = [answer_type(chunks=stream({"content": "A"}))]
    rig.harness_cells = 0
    rig.queue.add(rig.lease(9))
    await harnesses.start("end()")
    await rig.finished(1)
    assert rig.queue.drivers == {"preview", "scicode", "single_turn"}
    assert [lease.cell for lease in rig.queue.waiting] == [0]


RAW = """
import socket, urllib.parse
seat = given["endpoints"]["subject"]
where = urllib.parse.urlsplit(seat["base_url"])
def connect(length, token=None, path="/v1/chat/completions", more=""):
    raw = socket.create_connection((where.hostname, where.port))
    raw.sendall(f"POST {path} HTTP/1.1\\r\\nhost: x\\r\\nauthorization: Bearer {token or seat['api_key']}\\r\\n"
                f"content-length: {length}\\r\\n{more}\\r\\n".encode())
    return raw
def status(raw):
    raw.settimeout(30)
    return int(raw.recv(65536).split()[1])
def post(body):
    raw = connect(len(body))
    try:
        raw.sendall(body)
    except OSError:
        pass
    return status(raw)
"""


async def test_bodies_that_are_made_to_hurt_are_refused_and_cost_nothing(rig: Any, harnesses: Harnesses) -> None:
    outcome = await harnesses.run(
        RAW
        + """
deep = b'{"messages":[{"role":"user","content":' + b"[" * 200_000 + b"]" * 200_000 + b"}]}"
bodies = [b"x" * (9 << 20), deep, b"", b"\\xff\\xfe", b'{"messages":[NaN]}', b"[" * 100_000,
          b'{"messages":"hi"}', b'{"messages":[{"role":"user","content":"hi"}],"max_tokens":' + b"9" * 5000 + b"}",
          b'{"messages":[{"role":"user","content":"hi"}],"max_tokens":true}',
          b'{"messages":[{"role":"user","content":"hi"}],"n":2}']
keep("seen.json", [post(body) for body in bodies])
end(reward=0)
"""
    )
    assert outcome.state == queue_pb.CELL_STATE_DONE, outcome.message
    seen = harnesses.kept("seen.json")
    assert [status for status in seen if status not in (400, 413)] == [], seen
    assert rig.ledger.dispatches == []


async def test_texts_that_are_no_unicode_are_asked_once_and_answered(
    rig: Any, harnesses: Harnesses, answer_type: Any
) -> None:
    rig.upstream.answers = [answer_type(chunks=stream({"content": "hello"}))]
    outcome = await harnesses.run(
        RAW
        + r"""
keep("seen.json", post(b'{"model":"\\ud800\\r\\nx: y","messages":[{"role":"user","content":"\\ud800\\u0000 half"}]}'))
end()
"""
    )
    assert outcome.state == queue_pb.CELL_STATE_DONE, outcome.message
    assert harnesses.kept("seen.json") in (200, 400)
    assert len(rig.ledger.dispatches) == len(rig.ledger.settles) == len(rig.upstream.requests)


async def test_a_request_that_comes_slowly_over_the_deadline_leaves_no_more(
    rig: Any, harnesses: Harnesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token is good when the body begins, and dead when it ends."""
    note, over = tmp_path / "status", tmp_path / "over"
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 1000 * over.exists())
    monkeypatch.setattr(process, "time", clock)
    monkeypatch.setattr(attempt, "time", clock)
    outcome = await harnesses.run(
        RAW
        + f"""
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
body = b'{{"messages":[{{"role":"user","content":"hi"}}]}}'
raw = connect(len(body), more="expect: 100-continue\\r\\n")
assert status(raw) == 100, "the head is let in: its body is asked for"
raw.sendall(body[:5])
open({str(over)!r}, "w").close()
raw.sendall(body[5:])
open({str(note)!r}, "w").write(str(status(raw)))
# It is still there when the executor looks at the time.
signal.signal(signal.SIGTERM, signal.SIG_DFL)
time.sleep(600)
"""
    )
    assert (outcome.state, outcome.reason) == (queue_pb.CELL_STATE_FAILED, "deadline_exceeded")
    assert note.read_text() == "401"
    assert rig.ledger.dispatches == []


async def test_connections_that_say_nothing_hold_nobody_up(rig: Any, harnesses: Harnesses, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=stream({"content": "hello"}))]
    outcome = await harnesses.run(
        RAW
        + """
silent = [socket.create_connection((where.hostname, where.port)) for _ in range(100)]
halves = [connect(1000) for _ in range(100)]
strangers = [connect(8 << 20, "srh-made-up") for _ in range(50)]
keep("seen.json", ask()[0])
end()
"""
    )
    assert outcome.state == queue_pb.CELL_STATE_DONE, outcome.message
    assert harnesses.kept("seen.json") == 200


async def test_a_token_is_good_for_its_own_cell_and_role_whatever_the_request_says(
    rig: Any, harnesses: Harnesses, answer_type: Any, tmp_path: Path
) -> None:
    """A harness that gets hold of another's token asks at that other's cost, under its role, and only while it lives."""
    rig.upstream.answers = [answer_type(chunks=stream({"content": "hello"})) for _ in range(4)]
    context = rig.queue.context
    context.auxiliary_targets.add(id="sim", model="sim-model", base_url=rig.upstream.base_url)
    context.benchmark_options.CopyFrom(to_value({"b": {"simulator": "sim"}}))
    swap = tmp_path / "swap"
    swap.mkdir()
    rig.queue.add(rig.lease(1, driver="harness:scripted", grader="harness"))
    await harnesses.start(
        f"""
folder, cell = {str(swap)!r}, given["cell"]
open(os.path.join(folder, f"token-{{cell}}.new"), "w").write(given["endpoints"]["simulator"]["api_key"])
os.rename(os.path.join(folder, f"token-{{cell}}.new"), os.path.join(folder, f"token-{{cell}}"))
other = os.path.join(folder, f"token-{{1 - cell}}")
while not os.path.exists(other):
    time.sleep(0.01)
if cell == 0:
    found = [ask(token=open(other).read(), model="subject")[0]]
    open(os.path.join(folder, "asked"), "w").close()
    while not os.path.exists(os.path.join(folder, "over")):
        time.sleep(0.01)
    keep("seen.json", [*found, ask(token=open(other).read())[0]])
else:
    while not os.path.exists(os.path.join(folder, "asked")):
        time.sleep(0.01)
end()
"""
    )
    await rig.finished(1)
    assert rig.queue.completions[0].lease.cell == 1
    (swap / "over").touch()
    await rig.finished(2)
    assert harnesses.kept("seen.json") == [200, 401]
    assert [(d.key.cell, d.role) for d in rig.ledger.dispatches] == [(1, pb.CALL_ROLE_SIMULATOR)]
