"""Each command over the wire, against a service with canned answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from srbench_kit import pages
from srbench_kit.errors import Conflict, Exhausted, Forbidden, Unreachable
from srbench_kit.values import object_of

RUN_ID = "run-0199b2c3d4e5f6a7b8c9"


def test_a_piped_run_prints_the_report_as_json_and_its_progress_on_stderr(
    service: Any, command: Any, manifest: Path
) -> None:
    ran = command("run", "--manifest", str(manifest), "--url", service.url)
    assert ran.code == 0, ran.err
    assert ran.json["run_id"] == RUN_ID
    assert f"run {RUN_ID} (4 cells)" in ran.err
    assert "4/4 cells" in ran.err
    assert "spent $0.001 of $5" in ran.err


def test_options_may_stand_before_or_after_the_command(service: Any, command: Any) -> None:
    before = command("--url", service.url, "--json", "catalog")
    after = command("catalog", "--json", "--url", service.url)
    by_variable = command("catalog", SR_BENCH_URL=service.url)
    assert before.code == after.code == by_variable.code == 0
    assert before.out == after.out == by_variable.out
    assert before.json["benchmarks"][0]["id"] == "mmlu-pro"


def test_the_same_commands_work_under_vllm_sr_benchmark(service: Any, command: Any) -> None:
    ran = command("benchmark", "--url", service.url, "catalog", module="srbench_cli.vllm_sr")
    assert ran.code == 0, ran.err
    assert ran.json["benchmarks"][0]["id"] == "mmlu-pro"


@pytest.mark.parametrize("end", ["failed", "cancelled", "interrupted"])
def test_a_run_that_does_not_complete_exits_with_1_and_still_prints_its_report(
    service: Any, command: Any, manifest: Path, end: str
) -> None:
    service.end = end
    ran = command("run", "--manifest", str(manifest), "--url", service.url, "--json")
    assert ran.code == 1
    assert ran.json["run_id"] == RUN_ID
    assert f"error [RUN_INCOMPLETE]: the run {RUN_ID} ended as {end}" in ran.err


def test_a_target_behind_a_closed_port_makes_run_exit_non_zero_and_not_2(
    service: Any, command: Any, manifest: Path
) -> None:
    # Every cell of one target failed although the run as a whole went to its end.
    row = service.reports.summary.targets[0]
    row.completed, row.failed = 0, 4
    ran = command("run", "--manifest", str(manifest), "--url", service.url, "--json")
    assert ran.code == 1
    assert ran.json["summary"]["targets"][0]["failed"] == 4
    assert "no answer at all came from alpha" in ran.err


def test_each_start_has_its_own_key_and_a_given_key_is_kept(service: Any, command: Any, manifest: Path) -> None:
    for extra in ([], [], ["--idempotency-key", "mine"]):
        ran = command("run", "--manifest", str(manifest), "--url", service.url, "--detach", *extra)
        assert ran.code == 0
        assert ran.json["id"] == RUN_ID
    first, second, third = (request.idempotency_key for request in service.requests["CreateRun"])
    assert first != second
    assert min(len(first), len(second)) > 20
    assert third == "mine"


def test_a_start_without_an_answer_says_how_to_ask_again_without_paying_twice(
    service: Any, command: Any, manifest: Path
) -> None:
    service.refuse = Unreachable("STORAGE_UNAVAILABLE", "the store does not answer; nothing was recorded")
    ran = command("run", "--manifest", str(manifest), "--url", service.url)
    keys = {request.idempotency_key for request in service.requests["CreateRun"]}
    assert ran.code == 6
    assert len(service.requests["CreateRun"]) > 1
    assert len(keys) == 1
    assert f"--idempotency-key {keys.pop()}" in ran.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Conflict("IDEMPOTENCY_CONFLICT", "the key belongs to another plan"), 4),
        (Exhausted("STORAGE_FULL", "no space"), 5),
        (Forbidden("WRONG_ROLE", "readers may not start runs"), 8),
    ],
)
def test_errors_are_one_line_with_their_reason_and_their_exit_code(
    service: Any, command: Any, manifest: Path, error: Any, code: int
) -> None:
    service.refuse = error
    ran = command("run", "--manifest", str(manifest), "--url", service.url)
    assert ran.code == code
    assert ran.err == f"error [{error.reason}]: {error.message}\n"
    assert ran.out == ""


def test_an_unknown_run_is_exit_3_and_bad_usage_exit_2_on_one_line(service: Any, command: Any) -> None:
    missing = command("show", "run-none", "--url", service.url)
    assert (missing.code, missing.err) == (3, "error [NO_SUCH_RUN]: there is no run run-none\n")
    usage = command("show", "--url", service.url)
    assert usage.code == 2
    assert usage.err.startswith("error [USAGE]: Missing argument 'RUN'")
    assert usage.err.count("\n") == 1
    two_views = command("show", RUN_ID, "--calls", "--events", "--url", service.url)
    assert (two_views.code, two_views.err.split(":")[0]) == (2, "error [ONE_VIEW]")


def test_output_never_overwrites_and_is_checked_before_the_call(
    service: Any, command: Any, manifest: Path, tmp_path: Path
) -> None:
    taken = tmp_path / "taken.json"
    taken.write_text("mine")
    ran = command("plan", "--manifest", str(manifest), "--output", str(taken), "--url", service.url)
    assert (ran.code, ran.err.split(":")[0]) == (2, "error [OUTPUT_EXISTS]")
    assert taken.read_text() == "mine"
    assert "FreezePlan" not in service.requests
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "nowhere")
    assert command("report", RUN_ID, "--output", str(link), "--url", service.url).code == 2
    assert command("report", RUN_ID, "--output", str(tmp_path / "no" / "r.json"), "--url", service.url).code == 2
    assert "GetReport" not in service.requests


def test_plan_writes_the_frozen_manifest_and_prints_what_the_http_api_answers(
    service: Any, command: Any, manifest: Path, tmp_path: Path
) -> None:
    frozen = tmp_path / "frozen.json"
    ran = command("plan", "--manifest", str(manifest), "--output", str(frozen), "--url", service.url)
    assert ran.code == 0, ran.err
    assert ran.json["plan_sha256"] == "ab" * 32
    assert (ran.json["total"], ran.json["status"], ran.json["model_requests"]) == (4, "validated", 0)
    assert json.loads(frozen.read_text()) == ran.json["manifest"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["frozen.json", "m.json"]


def test_a_manifest_comes_from_stdin_too_and_its_dataset_path_is_made_absolute(
    service: Any, command: Any, tmp_path: Path
) -> None:
    text = "version: sr-bench-1.0\ndataset:\n  path: sets/cases.jsonl\n  sha256: x\n"
    assert command("plan", "--manifest", "-", "--url", service.url, stdin=text).code == 0
    folder = tmp_path / "deep"
    folder.mkdir()
    (folder / "m.yaml").write_text(text)
    assert command("plan", "--manifest", "deep/m.yaml", "--url", service.url).code == 0
    sent = [_member(request.manifest, "dataset", "path") for request in service.requests["FreezePlan"]]
    assert sent == [str(tmp_path / "sets/cases.jsonl"), str(folder / "sets/cases.jsonl")]


def _member(value: Any, *keys: str) -> Any:
    for key in keys:
        value = next(member.value for member in value.object_value.members if member.key == key)
    return value.string_value


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("m.json", '{"a": 1, "a": 2}', "DUPLICATE_KEY"),
        ("m.json", '{"a": NaN}', "BAD_NUMBER"),
        ("m.json", "[1]", "BAD_MANIFEST"),
        ("m.json", "", "BAD_JSON"),
        ("m.yaml", "a: &x 1\nb: *x\n", "YAML_ALIAS"),
        ("m.yaml", "a: 1\na: 2\n", "DUPLICATE_KEY"),
        ("m.txt", "{}", "BAD_SUFFIX"),
        ("none.json", None, "NO_SUCH_FILE"),
    ],
)
def test_bad_documents_are_refused_before_anything_is_sent(
    service: Any, command: Any, tmp_path: Path, name: str, text: str | None, reason: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    ran = command("run", "--manifest", name, "--url", service.url)
    assert ran.code == 2
    assert ran.err.startswith(f"error [{reason}]: ")
    assert ran.err.count("\n") == 1
    assert service.requests == {}


@pytest.mark.parametrize(
    ("shell", "code", "said"),
    [
        ("catalog > /dev/full", 5, "error [OUTPUT_FAILED]: the output cannot be written: No space left on device\n"),
        ("catalog >&-", 0, ""),
        ("catalog <&- 2>&- > /dev/null", 0, ""),
        ("catalog | true", 0, ""),
    ],
)
def test_an_output_that_takes_nothing_is_no_bug(service: Any, tmp_path: Path, shell: str, code: int, said: str) -> None:
    line = f"set -o pipefail; {sys.executable} -m srbench_cli --url {service.url} {shell}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (code, said)


def test_an_interrupt_while_the_program_is_imported_is_told_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    done = subprocess.run(
        [sys.executable, "-m", "srbench_cli", "runs"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "error [INTERRUPTED]: stopped at your request\n")


def test_a_misspelt_command_is_answered_with_the_one_that_was_meant(command: Any) -> None:
    ran = command("rnus")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error [USAGE]: there is no command 'rnus'; did you mean 'runs'? (see `sr-bench --help`)\n"


def test_a_file_that_is_not_there_is_bad_input_for_every_command(command: Any) -> None:
    for arguments in (
        ("verify", "none.tar"),
        ("run", "--manifest", "none.json"),
        ("target", "register", "--file", "none.json"),
    ):
        ran = command(*arguments)
        assert (ran.code, ran.err[:22]) == (2, "error [NO_SUCH_FILE]: ")


def test_a_pipe_is_refused_before_it_can_hang_a_command(command: Any, tmp_path: Path) -> None:
    for name in ("pipe", "pipe.json"):
        os.mkfifo(tmp_path / name)
    for arguments in (
        ("run", "--manifest", "pipe.json"),
        ("verify", "pipe"),
        ("verify", "none.tar", "--public-key", "pipe"),
        ("bundle", RUN_ID, "--output", "b.tar", "--sign-key", "pipe"),
        ("audit", RUN_ID, "--labels", "pipe"),
    ):
        ran = command(*arguments)
        assert (ran.code, ran.err[:20]) == (2, "error [NOT_A_FILE]: "), (arguments, ran.err)
    unreadable = command("verify", "/proc/self/mem")
    assert (unreadable.code, unreadable.err[:22]) == (2, "error [NO_SUCH_FILE]: "), unreadable.err


def test_what_is_no_text_or_very_long_is_bad_input_of_one_short_line(service: Any, command: Any) -> None:
    broken = command("runs", "--query", "caf\udce9", "--url", service.url)
    assert (broken.code, broken.err) == (2, "error [BAD_ENCODING]: the argument caf\\udce9 is not UTF-8 text\n")
    for arguments in (
        ("catalog", "--output", "x" * 5000),
        ("report", RUN_ID, "--output", "x" * 5000),
        ("runs", "y" * 9000),
    ):
        ran = command(*arguments, "--url", service.url)
        assert (ran.code, ran.err.count("\n"), len(ran.err) < 1200) == (2, 1, True), ran.err[:200]
    assert service.requests == {}


def test_every_number_that_a_command_takes_fits_a_message() -> None:
    import click
    from srbench_cli.main import benchmark

    def commands(found: click.Command) -> Iterator[click.Command]:
        yield found
        if isinstance(found, click.Group):
            for name in found.list_commands(click.Context(found)):
                one = found.get_command(click.Context(found), name)
                assert one is not None
                yield from commands(one)

    numbers = [
        parameter.type
        for found in commands(benchmark)
        for parameter in found.params
        if isinstance(parameter.type, click.types.IntParamType)
    ]
    assert len(numbers) > 10
    for kind in numbers:
        assert isinstance(kind, click.IntRange)
        assert kind.min is not None
        assert kind.max is not None
        assert -(2**63) <= kind.min < kind.max < 2**63


def test_runs_walks_all_pages_and_limit_bounds_it(service: Any, command: Any) -> None:
    assert len(command("runs", "--url", service.url).json["runs"]) == 2
    service.requests.clear()
    assert len(command("runs", "--limit", "1", "--url", service.url).json["runs"]) == 1
    assert [request.page_size for request in service.requests["ListRuns"]] == [1]


def test_pages_of_results_take_the_integer_cursor_that_released_clients_know(service: Any, command: Any) -> None:
    ran = command("show", RUN_ID, "--results", "--limit", "1", "--url", service.url)
    assert ran.json["results"][0]["cost_usd"] is None
    assert ran.json["next_cursor"] == pages.as_number(pages.encode(1))
    again = command("show", RUN_ID, "--results", "--after", str(ran.json["next_cursor"]), "--url", service.url)
    assert again.code == 0
    assert [request.page_token for request in service.requests["ListOutcomes"]] == ["", pages.encode(1)]
    bad = command("show", RUN_ID, "--results", "--after", "x", "--url", service.url)
    assert (bad.code, bad.err.split(":")[0]) == (2, "error [BAD_AFTER]")


def test_active_calls_and_events_are_asked_for_as_such(service: Any, command: Any) -> None:
    ran = command("show", RUN_ID, "--calls", "--active", "--url", service.url)
    assert ran.json["calls"][0]["activity"]["phase"] == "streaming"
    assert service.requests["ListCalls"][0].active
    assert command("show", RUN_ID, "--events", "--after", "3", "--url", service.url).json["next_cursor"] == 7
    assert service.requests["ListRunEvents"][0].after == 3


def test_targets_are_printed_as_they_may_be_registered_again(service: Any, command: Any, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("[]")
    ran = command("target", "register", "--file", "t.json", "--url", service.url)
    assert ran.json["registered"] == 1
    assert ran.json["targets"][0]["prices"]["m"] == {"input": 0.25, "cached_input": 0.025, "cache_write": 0, "output": 2}
    assert ran.json["revision"] == "r2"
    listed = command("target", "list", "--url", service.url).json
    for again in (listed, listed["targets"]):
        (tmp_path / "again.json").write_text(json.dumps(again))
        ran = command("target", "register", "--file", "again.json", "--expect", listed["revision"], "--url", service.url)
        assert ran.code == 0
        assert service.requests["RegisterTargets"][-1].expected_revision == "r1"


def test_benchmark_options_are_shown_and_replaced_by_a_file(service: Any, command: Any, tmp_path: Path) -> None:
    shown = command("target", "options", "--url", service.url)
    assert shown.json == {"benchmark_options": {"hle": {"judge": "alpha"}}, "revision": "o1"}
    (tmp_path / "o.json").write_text('{"hle": {"judge": "beta"}}')
    ran = command("target", "options", "--file", "o.json", "--expect", "o1", "--url", service.url)
    assert ran.json == {"benchmark_options": {"hle": {"judge": "beta"}}, "revision": "o2"}
    (asked,) = service.requests["RegisterBenchmarkOptions"]
    assert (object_of(asked.document), asked.expected_revision) == ({"hle": {"judge": "beta"}}, "o1")


def test_preparing_waits_and_prints_the_dataset_and_a_failed_one_exits_with_1(
    service: Any, command: Any, tmp_path: Path
) -> None:
    arguments = [
        "dataset",
        "prepare",
        "--benchmark",
        "arc-agi-2",
        "--source-path",
        "src",
        "--revision",
        "r",
        "--url",
        service.url,
    ]
    ran = command(*arguments)
    assert ran.code == 0, ran.err
    assert (ran.json["sha256"], ran.json["path"]) == ("12" * 32, "/d/cases.jsonl")
    assert service.requests["CreateDatasetPreparation"][0].source_path == str(tmp_path / "src")
    service.end = "failed"
    failed = command(*arguments)
    assert (failed.code, failed.out) == (1, "")
    assert "error [BAD_SOURCE]: no such folder" in failed.err
    assert command(*arguments, "--no-wait").json["preparation"]["status"] == "running"
    assert command("dataset", "prepare", "--benchmark", "x", "--source-path", "p", "--url", service.url).code == 2


def test_combine_takes_ids_and_manifest_files(service: Any, command: Any, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"id": "aa" * 32}))
    assert command("dataset", "combine", "manifest.json", "bb" * 32, "--url", service.url).code == 0
    assert list(service.requests["ComposeDatasets"][0].dataset_ids) == ["aa" * 32, "bb" * 32]


def test_evidence_is_the_body_as_received_and_damage_is_found(service: Any, command: Any, tmp_path: Path) -> None:
    ran = command("evidence", RUN_ID, "call-1", "--url", service.url)
    assert (ran.code, ran.out) == (0, 'data: {"x":"\x1b[31m"}\n\n')
    assert command("evidence", RUN_ID, "call-1", "--output", "e.bin", "--stored", "--url", service.url).code == 0
    assert (tmp_path / "e.bin").read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
    damaged = command("evidence", RUN_ID, "call-damaged", "--url", service.url)
    assert (damaged.code, damaged.out) == (9, "")


def test_a_token_is_sent_and_a_missing_or_wrong_one_is_exit_7(serve_fake: Callable[..., Any], command: Any) -> None:
    fake = serve_fake(token="s" * 40)
    assert command("catalog", "--url", fake.url, SR_BENCH_TOKEN="s" * 40).code == 0
    assert command("catalog", "--url", fake.url, SR_BENCH_TOKEN_ENV="OWN", OWN="s" * 40).code == 0
    assert fake.tokens == [f"Bearer {'s' * 40}"] * 2
    for wrong in ({}, {"SR_BENCH_TOKEN": "wrong-token-of-mine"}):
        ran = command("catalog", "--url", fake.url, **wrong)
        assert (ran.code, ran.err.split(":")[0]) == (7, "error [BAD_TOKEN]")
        assert "wrong-token-of-mine" not in ran.err
    assert command("catalog", "--url", fake.url, SR_BENCH_TOKEN_ENV="NOT_SET").code == 2


def test_a_named_service_of_another_store_is_refused(service: Any, command: Any, tmp_path: Path) -> None:
    assert command("catalog", "--url", service.url, "--store", str(service.store)).code == 0
    ran = command("catalog", "--url", service.url, "--store", str(tmp_path / "other"))
    assert (ran.code, ran.err.split(":")[0]) == (4, "error [OTHER_STORE]")


def test_nothing_at_the_address_is_exit_6_and_nothing_is_started(command: Any, tmp_path: Path) -> None:
    ran = command("runs", "--url", "http://127.0.0.1:9")
    assert (ran.code, ran.err) == (6, "error [NO_SERVICE]: no service answers at http://127.0.0.1:9\n")
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_paused_and_waited_for_resumed_and_given_another_concurrency(service: Any, command: Any) -> None:
    paused = command("pause", RUN_ID, "--json", "--url", service.url)
    assert (paused.code, paused.json["paused"]) == (0, True), paused.err
    waited = command("pause", RUN_ID, "--wait", "--json", "--url", service.url)
    assert waited.code == 0, waited.err
    assert len(service.requests["GetRun"]) == 1
    assert command("resume", RUN_ID, "--json", "--url", service.url).json["paused"] is False
    changed = command("concurrency", RUN_ID, "7", "--json", "--url", service.url)
    assert (changed.code, changed.json["concurrency"]) == (0, 7), changed.err
    assert command("concurrency", RUN_ID, "many", "--url", service.url).code == 2
