"""The testbed and the grader as processes: options, files, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import orjson
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from srbench.v1 import grader_service_pb2 as pb
from srbench.v1 import grader_service_pb2_grpc as rpc
from srbench_grader.choice import read_choice
from srbench_testbed.config import DEFAULT, config_json

from tests.waiting import until

pytestmark = pytest.mark.e2e


@contextmanager
def process(module: str, *options: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process and the address that it prints. Killed at the end if it still runs."""
    started = subprocess.Popen(
        [sys.executable, "-m", module, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert started.stdout is not None
        line = started.stdout.readline()
        assert line.startswith("listening "), started.stderr.read() if started.stderr else line
        yield started, line.removeprefix("listening ").strip()
    finally:
        if started.poll() is None:
            started.kill()
        started.communicate()


def run(module: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", module, *options], capture_output=True, text=True, timeout=60, check=False)


def ask(url: str, model: str, prompt: str) -> str:
    request = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    response = httpx.post(f"{url}/v1/chat/completions", json=request, timeout=60, trust_env=False)
    content: str = response.raise_for_status().json()["choices"][0]["message"]["content"]
    return content


def received(ledger: Path) -> list[dict[str, Any]]:
    """The chat requests of a ledger file, without a last line that is being written."""
    lines = [orjson.loads(line) for line in ledger.read_bytes().split(b"\n")[:-1]]
    return [line for line in lines if line["event"] == "received"]


def ask_in_vain(url: str) -> None:
    """Asks a testbed that is killed before it answers."""
    with pytest.raises(httpx.TransportError):
        ask(url, "small", "never answered")


def cases(path: Path) -> list[str]:
    prompts = [f"Question {number}?\n\nA. one\nB. two\nC. three" for number in range(40)]
    lines = [
        {
            "id": f"mmlu-pro/{number}",
            "benchmark": "mmlu-pro",
            "messages": [{"role": "user", "content": prompt}],
            "answer": "ABC"[number % 3],
            "metadata": {"stratum": "law"},
        }
        for number, prompt in enumerate(prompts)
    ]
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return prompts


def test_from_cases_to_a_key_to_answers_of_known_skill(tmp_path: Path) -> None:
    prompts = cases(tmp_path / "cases.jsonl")
    made = run("srbench_testbed.answer_key", "--cases", str(tmp_path / "cases.jsonl"), "--out", str(tmp_path / "key.jsonl"))
    assert (made.returncode, made.stderr) == (0, "40 prompts\n")
    (tmp_path / "bed.yaml").write_text(
        "models:\n- {id: genius, skill: {mmlu-pro: 1}}\n- {id: fool, skill: {mmlu-pro/law: 0}}\n"
    )
    options = ("--config", str(tmp_path / "bed.yaml"), "--answer-key", str(tmp_path / "key.jsonl"), "--pace", "zero")
    with process("srbench_testbed", "--write-targets", str(tmp_path / "targets.json"), *options) as (_, url):
        for number, prompt in enumerate(prompts):
            right = "ABC"[number % 3]
            assert read_choice(ask(url, "genius", prompt), 3).letter == right
            assert read_choice(ask(url, "fool", prompt), 3).letter not in (right, None)
        targets = orjson.loads((tmp_path / "targets.json").read_bytes())["targets"]
    assert [target["base_url"] for target in targets] == [f"{url}/v1"] * 2


def test_the_ledger_file_survives_a_kill_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    for round_number in range(2):
        with process("srbench_testbed", "--ledger", str(path), "--pace", "zero") as (started, url):
            ask(url, "small", f"prompt {round_number}")
            httpx.post(f"{url}/testbed/faults", json={"fault": "hang_before_headers"}, timeout=60, trust_env=False)
            asked = threading.Thread(target=ask_in_vain, args=(url,))
            asked.start()
            until(lambda count=2 * round_number + 2: len(received(path)) == count)
            os.kill(started.pid, signal.SIGKILL)
            started.wait()
            asked.join()
    found = received(path)
    assert [line["sequence"] for line in found] == [1, 3, 1, 3]
    assert found[1]["identity"] == found[3]["identity"]
    assert found[0]["identity"] != found[2]["identity"]


def test_it_ends_on_sigterm_even_with_an_answer_in_hand(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with process("srbench_testbed", "--ledger", str(path)) as (started, url):
        httpx.post(f"{url}/testbed/faults", json={"fault": "endless_stream"}, timeout=60, trust_env=False)
        request = {"model": "small", "messages": [{"role": "user", "content": "x"}], "stream": True}
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=request, timeout=60, trust_env=False) as response:
            parts = response.iter_raw()
            next(parts)
            started.send_signal(signal.SIGTERM)
            assert started.wait(60) == 0
    assert orjson.loads(path.read_bytes().splitlines()[-1])["ended"] == "shutdown"


def test_the_configuration_can_be_printed() -> None:
    shown = run("srbench_testbed", "--print-config")
    assert orjson.loads(shown.stdout) == orjson.loads(orjson.dumps(config_json(DEFAULT)))


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        (("--host", "0.0.0.0"), 2, "NOT_LOOPBACK"),
        (("--config", "nowhere.yaml"), 3, "NO_SUCH_FILE"),
        (("--answer-key", "nowhere.jsonl"), 3, "NO_SUCH_FILE"),
    ],
)
def test_bad_options_get_one_sentence_and_no_trace(options: tuple[str, ...], code: int, reason: str) -> None:
    failed = run("srbench_testbed", *options)
    assert failed.returncode == code
    assert failed.stderr.startswith(f"{reason}: ")
    assert "Traceback" not in failed.stderr


def test_arc_tasks_are_exported(tmp_path: Path) -> None:
    made = run("srbench_testbed.arc_export", "--out", str(tmp_path))
    assert made.stdout == "120 tasks, revision f3283f727488ad98fe575ea6a5ac981e4a188e49\n"


def test_the_grader_process_is_healthy_grades_and_drains(tmp_path: Path) -> None:
    environment = {"SR_BENCH_PLANNER_ADDRESS": f"unix:{tmp_path}/planner.sock", "SR_BENCH_INTERNAL_TOKEN": ""}
    with process("srbench_grader", "--listen", f"unix:{tmp_path}/grader.sock", **environment) as (started, address):
        with grpc.insecure_channel(address) as channel:
            health = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service="srbench.v1.GraderService")
            )
            assert health.status == health_pb2.HealthCheckResponse.SERVING
            reference = pb.Reference(case_index=0, choice_count=4)
            reference.answer.string_value = "B"
            request = pb.GradeBatchRequest(
                answers=[pb.Answer(sequence=1, grader="choice", text="**Answer:** B")], references=[reference]
            )
            graded = rpc.GraderServiceStub(channel).GradeBatch(
                request, metadata=(("x-srbench-role", "accounting"),), timeout=60
            )
            assert graded.grades[0].correct
        started.send_signal(signal.SIGTERM)
        assert started.wait(60) == 0


def test_the_grader_says_what_it_needs() -> None:
    failed = subprocess.run(
        [sys.executable, "-m", "srbench_grader"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={key: value for key, value in os.environ.items() if key != "SR_BENCH_PLANNER_ADDRESS"},
    )
    assert failed.returncode == 2
    assert failed.stderr.startswith("NO_ADDRESS: SR_BENCH_PLANNER_ADDRESS")
