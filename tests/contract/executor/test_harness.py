"""Harnesses under the executor: real processes that ask the loopback endpoint, between fake services."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_executor.harness import process
from srbench_executor.harness.runners import Runner
from srbench_kit.values import object_of, to_value

from tests.contract.executor.harness_scripts import PRELUDE, Harnesses, alive, event, stream
from tests.waiting import until_async


async def test_every_request_is_a_metered_call_and_the_reward_reaches_the_grader(
    rig: Any, harnesses: Harnesses, answer_type: Any
) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"x": 1}'}}
    rig.upstream.answers = [
        answer_type(chunks=stream({"tool_calls": [call]}, "tool_calls")),
        answer_type(chunks=stream({"content": "done"})),
    ]
    outcome = await harnesses.run("""
tools = [{"type": "function", "function": {"name": "run"}}]
status, first = ask(tools=tools, tool_choice="auto", parallel_tool_calls=False)
message = first["choices"][0]["message"]
talk = [{"role": "user", "content": "hi"}, message, {"role": "tool", "tool_call_id": "c1", "content": "2"}]
status, second = ask(messages=talk, tools=tools)
keep("seen.json", [given["task"], first, second, ask(path="models")[1]])
keep("trajectory.json", talk)
end(trajectory="trajectory.json", versions={"harness": "1"}, message="fine")
""")
    assert (outcome.state, outcome.reason) == (queue_pb.CELL_STATE_DONE, ""), outcome.message
    assert [(d.key.ordinal, d.role) for d in rig.ledger.dispatches] == [
        (0, pb.CALL_ROLE_SUBJECT),
        (1, pb.CALL_ROLE_SUBJECT),
    ]
    assert [settle.receipt.status for settle in rig.ledger.settles] == [pb.CALL_STATUS_COMPLETED] * 2
    sent = [json.loads(body) for _, body in rig.upstream.requests]
    assert sent[0]["tools"] == [{"type": "function", "function": {"name": "run"}}]
    assert (sent[0]["tool_choice"], sent[0]["parallel_tool_calls"], sent[0]["model"]) == ("auto", False, "m")
    assert sent[1]["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"x": 1}'
    task, first, second, models = harnesses.kept("seen.json")
    assert task == {"name": "one"}
    assert first["choices"][0]["finish_reason"] == "tool_calls"
    assert first["usage"]["total_tokens"] == 25
    assert second["choices"][0]["message"]["content"] == "done"
    assert [model["id"] for model in models["data"]] == ["subject"]
    (answer,) = rig.grader.answers
    assert json.loads(answer.text)["reward"] == 1.0
    facts = object_of(outcome.details)["harness"]
    assert facts["calls"] == {"subject": 2}
    assert facts["trajectory"] == "trajectory.json"
    assert not list((rig.folder / "work").rglob("*.json"))


async def test_roles_ask_their_own_targets_under_their_own_frozen_parameters(
    rig: Any, harnesses: Harnesses, answer_type: Any
) -> None:
    rig.upstream.answers = [answer_type(chunks=stream({"content": "hello"}))]
    context = rig.queue.context
    context.auxiliary_targets.add(id="sim", model="sim-model", base_url=rig.upstream.base_url)
    context.benchmark_options.CopyFrom(to_value({"b": {"simulator": "sim"}}))
    context.sampling.CopyFrom(to_value({"temperature": 0, "max_tokens": 100}))
    context.targets[0].request_params.CopyFrom(to_value({"top_p": None}))
    await harnesses.run("""
ask(temperature=0.9, top_p=0.5, max_completion_tokens=9999, seed=7)
ask("simulator", temperature=0.9, top_p=0.5)
end()
""")
    subject, simulator = (json.loads(body) for _, body in rig.upstream.requests)
    assert (subject["temperature"], subject["max_tokens"], subject["seed"]) == (0, 100, 7)
    assert not {"top_p", "max_completion_tokens"} & set(subject)
    assert (simulator["model"], simulator["temperature"], simulator["top_p"]) == ("sim-model", 0, 0.5)
    roles = [(d.role, d.auxiliary_target_id) for d in rig.ledger.dispatches]
    assert roles == [(pb.CALL_ROLE_SUBJECT, ""), (pb.CALL_ROLE_SIMULATOR, "sim")]


async def test_a_runner_gets_no_token_for_a_role_that_it_does_not_ask(rig: Any, harnesses: Harnesses) -> None:
    context = rig.queue.context
    for name in ("sim", "judge-a"):
        context.auxiliary_targets.add(id=name, model=name, base_url=rig.upstream.base_url)
    context.benchmark_options.CopyFrom(to_value({"b": {"simulator": "sim", "judge": "judge-a"}}))
    await harnesses.run('keep("roles.json", sorted(given["endpoints"]))\nend()', roles=("simulator",))
    assert harnesses.kept("roles.json") == ["simulator", "subject"]


async def test_answers_come_as_events_when_asked_for(rig: Any, harnesses: Harnesses, answer_type: Any) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    rig.upstream.answers = [answer_type(chunks=stream({"content": "so", "tool_calls": [call]}, "tool_calls"))]
    await harnesses.run("""
keep("events.json", ask(stream=True, stream_options={"include_usage": True})[1].decode())
end()
""")
    events = [line[6:] for line in harnesses.kept("events.json").split("\n") if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    chunks = [json.loads(item) for item in events]
    assert chunks[0]["choices"][0]["delta"]["tool_calls"][0] | {} == call
    assert chunks[1]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[2]["usage"]["prompt_tokens"] == 20


async def test_two_requests_at_once_are_two_calls_in_order(rig: Any, harnesses: Harnesses, answer_type: Any) -> None:
    rig.upstream.answers = [answer_type(chunks=[(200, b""), *stream({"content": "a"})])]
    await harnesses.run("""
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    keep("statuses.json", [answer[0] for answer in pool.map(lambda _: ask(), range(4))])
end()
""")
    assert harnesses.kept("statuses.json") == [200] * 4
    assert [d.key.ordinal for d in rig.ledger.dispatches] == [0, 1, 2, 3]
    assert len(rig.upstream.requests) == len(rig.ledger.settles) == 4


async def test_a_runner_sees_no_secret_of_the_executor(
    rig: Any, harnesses: Harnesses, answer_type: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-very-secret-value")
    monkeypatch.setenv("SR_BENCH_INTERNAL_TOKEN", "internal-very-secret")
    rig.queue.context.targets[0].api_key_env = "MODEL_KEY"
    rig.upstream.answers = [answer_type(chunks=stream({"content": "your key is sk-very-secret-value"}))]
    await harnesses.run("""
keep("env.json", [dict(os.environ), given, ask()[1]])
end()
""")
    assert b"Bearer sk-very-secret-value" in rig.upstream.requests[0][0]
    seen = json.dumps(harnesses.kept("env.json"))
    assert "very-secret" not in seen


async def test_errors_of_endpoints_reach_the_harness_and_fail_the_cell(
    rig: Any, harnesses: Harnesses, answer_type: Any
) -> None:
    body = json.dumps({"error": {"message": "no such thing"}}).encode()
    rig.upstream.answers = [answer_type(status=404, headers={"content-type": "application/json"}, chunks=[(0, body)])]
    outcome = await harnesses.run("""
keep("error.json", ask())
end(reward=0)
""")
    status, told = harnesses.kept("error.json")
    assert (status, told["error"]["type"], told["retry"]) == (404, "upstream_error", "false")
    assert "no such thing" in told["error"]["message"]
    assert outcome.state == queue_pb.CELL_STATE_FAILED
    assert outcome.reason == rig.ledger.settles[0].receipt.reason == told["error"]["code"]
    assert len(rig.upstream.requests) == 1


async def test_bad_requests_are_refused_by_name_and_cost_nothing(rig: Any, harnesses: Harnesses) -> None:
    await harnesses.run("""
keep("errors.json", [ask(n=2), ask(messages=[]), ask(service_tier="fast"), ask(max_tokens=-1), ask(token="srh-made-up")])
end()
""")
    errors = [(status, told["error"]["code"], told["error"]["param"]) for status, told in harnesses.kept("errors.json")]
    assert errors == [
        (400, "bad_field", "n"),
        (400, "bad_field", "messages"),
        (400, "unknown_field", "service_tier"),
        (400, "bad_field", "max_tokens"),
        (401, "unknown_token", None),
    ]
    assert rig.ledger.dispatches == []


async def test_after_the_call_limit_a_completed_result_still_counts(rig: Any, harnesses: Harnesses) -> None:
    rig.ledger.refusals[0, 0] = pb.FactAck(reason="CALL_LIMIT", message="one too many")
    outcome = await harnesses.run("""
keep("errors.json", [ask(), ask()])
end(reward=0)
""")
    first, second = harnesses.kept("errors.json")
    assert (first[0], first[1]["error"]["code"]) == (403, "call_limit")
    assert (second[0], second[1]["error"]["code"]) == (401, "call_limit")
    assert outcome.state == queue_pb.CELL_STATE_DONE


async def test_an_attempt_that_was_under_way_before_is_not_resumed(rig: Any, harnesses: Harnesses) -> None:
    known = pb.KnownCall(status=pb.CALL_STATUS_COMPLETED, receipt=pb.Receipt(output_complete=True), final_text="B")
    rig.ledger.refusals[0, 0] = pb.FactAck(reason="ALREADY_DISPATCHED", known_call=known)
    outcome = await harnesses.run("keep('error.json', ask()); time.sleep(60); end()")
    assert (outcome.state, outcome.reason) == (queue_pb.CELL_STATE_INTERRUPTED, "executor_lost")
    assert rig.upstream.requests == []


async def test_the_deadline_ends_the_runner_with_all_that_it_started_and_the_call_under_way(
    rig: Any, harnesses: Harnesses, answer_type: Any, tmp_path: Path
) -> None:
    # Long enough for a busy machine to start both processes.
    rig.queue.context.limits.case_timeout_s = 20
    rig.upstream.answers = [answer_type(chunks=[(0, event({"choices": []}))], end="hang")]
    note = tmp_path / "pids"
    outcome = await harnesses.run(f"""
import signal
import subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
away = subprocess.Popen([sys.executable, "-c", "import os, time; os.setsid(); time.sleep(100)"])
open({str(note)!r}, "w").write(f"{{os.getpid()}} {{away.pid}}")
ask()
""")
    assert (outcome.state, outcome.reason) == (queue_pb.CELL_STATE_FAILED, "deadline_exceeded")
    assert not [pid for pid in map(int, note.read_text().split()) if alive(pid)]
    (settle,) = rig.ledger.settles
    assert settle.receipt.reason == "deadline_exceeded"


async def test_a_runner_that_ended_while_the_executor_stood_still_ended_in_time(
    harnesses: Harnesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "launcher"

    def monotonic() -> float:
        is_over = note.exists() and note.read_text().endswith(";") and not alive(int(note.read_text()[:-1]))
        return time.monotonic() + 1000 * is_over

    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=monotonic))
    outcome = await harnesses.run(f"open({str(note)!r}, 'w').write(str(os.getppid()) + ';'); end()")
    assert (outcome.state, outcome.reason) == (queue_pb.CELL_STATE_DONE, "")


async def test_a_runner_that_left_no_result_when_its_time_was_over_is_late(
    harnesses: Harnesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "over"
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 1000 * note.exists()))
    outcome = await harnesses.run(f"open({str(note)!r}, 'w').close()")
    assert (outcome.state, outcome.reason) == (queue_pb.CELL_STATE_FAILED, "deadline_exceeded")


async def test_a_dead_token_says_why(rig: Any, harnesses: Harnesses, answer_type: Any) -> None:
    outside = """
import urllib.request
keep("seat.json", given["endpoints"]["subject"])
end()
"""
    await harnesses.run(outside)
    seat = harnesses.kept("seat.json")
    code = (
        f"import sys; sys.argv = ['', {str(harnesses.folder / 'again.json')!r}, '']\n"
        + PRELUDE
        + "print(json.dumps(ask()))"
    )
    (harnesses.folder / "again.json").write_text(json.dumps({"endpoints": {"subject": seat}, "artifacts": ""}))
    # Not by the event loop, which forks: gRPC's threads do not survive that.
    asked = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], capture_output=True, check=True)
    status, told = json.loads(asked.stdout)
    assert (status, told["error"]["code"]) == (401, "attempt_over")
    assert rig.ledger.dispatches == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("print('I gave up'); sys.exit(3)", "harness_failed"),
        ("pass", "harness_result_invalid"),
        ("end(reward='much')", "harness_result_invalid"),
        ("end(reward=float('nan'))", "harness_result_invalid"),
        ("end(reward=float('inf'))", "harness_result_invalid"),
        ("end(status='failed', reward=None, reason='verifier_timeout')", "verifier_timeout"),
        ("end(status='failed', reward=1, reason='verifier_timeout')", "harness_result_invalid"),
        ("end(status='failed', reward=None, reason='no_container', message='it did not start')", "no_container"),
        ("end(trajectory='../../etc/passwd')", "harness_result_invalid"),
        ("while True: keep(str(time.time()), 'x' * 50_000)", "artifact_bytes_limit"),
        ("while True: print('x' * 10_000)", "artifact_bytes_limit"),
    ],
)
async def test_what_is_no_result_fails_the_cell_with_its_reason(harnesses: Harnesses, body: str, reason: str) -> None:
    outcome = await harnesses.run(body)
    assert (outcome.state, outcome.reason) == (queue_pb.CELL_STATE_FAILED, reason)
    # Absent is not zero.
    assert not outcome.HasField("score")
    assert not outcome.HasField("correct")
    if "gave up" in body:
        assert "I gave up" in outcome.message


async def test_a_reward_from_before_the_attempt_is_nobodys_reward(rig: Any, harnesses: Harnesses) -> None:
    stale = rig.folder / "work/run-1/0-1/result.json"
    stale.parent.mkdir(parents=True)
    stale.write_text(json.dumps({"schema": "sr-bench-harness-result-v1", "status": "completed", "reward": 1}))
    outcome = await harnesses.run("pass")
    assert (outcome.state, outcome.reason) == (queue_pb.CELL_STATE_FAILED, "harness_result_invalid")
    assert not outcome.HasField("score")


async def test_a_cancelled_run_ends_the_runner(rig: Any, harnesses: Harnesses, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    await harnesses.start(f"open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(100)")
    await until_async(note.exists)
    rig.queue.stopped = [queue_pb.StoppedRun(run_id="run-1", reason="cancelled")]
    (completion,) = await rig.finished(1)
    assert (completion.state, completion.reason) == (queue_pb.CELL_STATE_CANCELLED, "cancelled")
    assert not alive(int(note.read_text()))


async def test_a_runner_dies_with_its_executor(rig: Any, harnesses: Harnesses, tmp_path: Path) -> None:
    """The launcher is told by the kernel; here its parent is a process that can be killed."""
    from srbench_executor.harness.runners import SCRIPTS

    note, script = tmp_path / "pid", tmp_path / "sleeper.py"
    script.write_text(f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(100)")
    parent = (
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, {str(SCRIPTS / 'launch.py')!r}, str(os.getpid()), '1000000', '1',"
        f" sys.executable, {str(script)!r}], start_new_session=True)\n"
        "time.sleep(100)"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", parent)
    await until_async(lambda: note.exists() and note.read_text() != "")
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    await until_async(lambda: not alive(int(note.read_text())))


async def test_only_runners_that_lack_nothing_are_offered_and_the_planner_hears_what_is_missing(
    rig: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SR_BENCH_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    whole = Runner(name="whole", script=tmp_path / "s.py", variable="WHOLE", folder="whole", own_python=True)
    lacking = Runner(
        name="lacking",
        script=tmp_path / "s.py",
        variable="LACKING",
        folder="lacking",
        root_holds=("tasks",),
        containers=True,
    )
    modules = replace(whole, name="modules", modules=("nowhere_to_be_found",))
    rig.runners = {runner.name: runner for runner in (whole, lacking, modules)}
    await rig.start_executor()
    drivers = {"harness:whole", "preview", "scicode", "single_turn"}
    await until_async(lambda: bool(rig.queue.runner_reports) and rig.queue.drivers >= drivers)
    assert rig.queue.drivers == drivers
    assert rig.queue.capabilities == ["sandbox"], "what its grader has is asked before cells are"
    said = {setup.runner: setup.items for setup in rig.queue.runner_reports[0].runners}
    assert [(item.item, item.present) for item in said["lacking"]] == [
        ("interpreter", False),
        ("harness_root", False),
        ("containers", False),
    ]
    assert "SR_BENCH_LACKING_PYTHON" in said["lacking"][0].remedy
    assert "nowhere_to_be_found" in said["modules"][0].detail


async def test_a_runner_that_is_installed_is_seen_without_waiting_for_the_next_look(
    rig: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srbench_executor.harness.inspecting.LOOK_S", 1e9)
    monkeypatch.setattr("srbench_executor.harness.inspecting.REPORT_S", 0.05)
    monkeypatch.setenv("SR_BENCH_HOME", str(tmp_path))
    rig.runners = {"late": Runner(name="late", script=tmp_path / "s.py", variable="LATE", folder="late")}
    await rig.start_executor()
    await until_async(lambda: len(rig.queue.runner_reports) > 2)
    assert "harness:late" not in rig.queue.drivers
    python = tmp_path / "harnesses" / "late" / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    await until_async(lambda: "harness:late" in rig.queue.drivers)


async def test_a_harness_that_hangs_up_ends_its_call(rig: Any, harnesses: Harnesses, answer_type: Any) -> None:
    limits = rig.queue.context.limits
    limits.total_timeout_s = limits.idle_timeout_s = limits.case_timeout_s = 600
    rig.upstream.answers = [answer_type(chunks=[(0, event({"choices": []}))], end="hang")]
    outcome = await harnesses.run("""
import socket, urllib.parse
seat = given["endpoints"]["subject"]
where = urllib.parse.urlsplit(seat["base_url"])
body = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()
with socket.create_connection((where.hostname, where.port)) as raw:
    raw.sendall(f"POST /v1/chat/completions HTTP/1.1\\r\\nhost: x\\r\\nauthorization: Bearer {seat['api_key']}\\r\\n"
                f"content-length: {len(body)}\\r\\n\\r\\n".encode() + body)
    time.sleep(1)
time.sleep(0.5)
end(reward=0)
""")
    assert outcome.state == queue_pb.CELL_STATE_DONE
    (settle,) = rig.ledger.settles
    assert (settle.receipt.status, settle.receipt.reason) == (pb.CALL_STATUS_CANCELLED, "harness_hung_up")
