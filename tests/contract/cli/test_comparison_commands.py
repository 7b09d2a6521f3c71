"""The commands about comparisons and finished runs: what they ask, print, write, and with which code they end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

RUN_ID = "run-0199b2c3d4e5f6a7b8c9"


def test_compare_takes_any_number_of_candidates(service: Any, command: Any) -> None:
    service.verdicts = ["better", "not established"]
    ran = command("compare", RUN_ID, "run-b", "run-c", "--url", service.url)
    assert ran.code == 0, ran.err
    (asked,) = service.requests["CompareRuns"]
    assert (asked.baseline_run_id, list(asked.candidate_run_ids), asked.HasField("margin")) == (
        RUN_ID,
        ["run-b", "run-c"],
        False,
    )
    assert [one["verdict"] for one in ran.json["comparisons"]] == ["better", "not established"]
    assert ran.json["comparisons"][0]["total_cost_saving"] is None


@pytest.mark.parametrize(
    ("verdicts", "options", "code"),
    [
        (["better"], [], 0),
        (["not established"], [], 0),
        (["worse"], [], 1),
        (["better", "worse"], [], 1),
        (["better"], ["--require-gain"], 0),
        (["not established"], ["--require-gain"], 1),
        (["better", "not established"], ["--require-gain"], 1),
    ],
)
def test_exit_code_1_means_that_the_comparison_says_no(
    service: Any, command: Any, verdicts: list[str], options: list[str], code: int
) -> None:
    service.verdicts = verdicts
    candidates = [f"run-{number}" for number in range(len(verdicts))]
    ran = command("compare", RUN_ID, *candidates, *options, "--url", service.url)
    assert ran.code == code
    assert len(ran.json["comparisons"]) == len(verdicts), "the figures are printed all the same"
    assert ("error [COMPARISON_SAYS_NO]" in ran.err) == (code == 1)


@pytest.mark.parametrize(("word", "code"), [("supported", 0), ("not shown", 1), ("contradicted", 1)])
def test_a_margin_must_be_supported(service: Any, command: Any, word: str, code: int) -> None:
    service.margin_verdict = word
    ran = command("compare", RUN_ID, "run-b", "--margin", "0.02", "--url", service.url)
    assert ran.code == code
    assert service.requests["CompareRuns"][0].margin == 0.02
    assert (f"Margin 0.02: {word}." in ran.err) == (code == 1)


@pytest.mark.parametrize(("word", "code"), [("supported", 0), ("not shown", 1), ("contradicted", 1)])
def test_a_claim_of_a_plan_must_be_supported_without_being_asked_for(
    service: Any, command: Any, word: str, code: int
) -> None:
    service.claim_verdict = word
    ran = command("compare", RUN_ID, "run-b", "--url", service.url)
    assert ran.code == code
    assert (f"The claim is {word}." in ran.err) == (code == 1)


def test_compare_writes_its_answer_once(service: Any, command: Any, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    assert command("compare", RUN_ID, "run-b", "--output", str(path), "--url", service.url).code == 0
    assert json.loads(path.read_text())["baseline_run_id"] == RUN_ID
    again = command("compare", RUN_ID, "run-b", "--output", str(path), "--url", service.url)
    assert (again.code, "OUTPUT_EXISTS" in again.err) == (2, True)
    assert len(service.requests["CompareRuns"]) == 1


def test_compare_needs_a_candidate(service: Any, command: Any) -> None:
    assert command("compare", RUN_ID, "--url", service.url).code == 2


def test_people_see_tables_in_which_nothing_of_strangers_is_obeyed() -> None:
    from rich.console import Console
    from srbench.v1 import comparison_pb2 as pb
    from srbench_cli import comparison_table

    hostile = "\x1b]0;owned\x07[red]evil[/red]"
    found = pb.ComparisonReport(baseline_run_id="b", baseline_selected_target_id=hostile)
    one = found.comparisons.add(candidate_target_id=hostile, quality_delta=0.125, wins=3, losses=1, ties=12)
    one.quality_delta_ci95.extend([-0.1, 0.35])
    one.quality_delta_adaptive_ci95.extend([0.01, 0.24])
    for name, ends in ((hostile, (-0.02, 0.27)), ("weak", (0.2, 0.5))):
        one.band.singles.add(target_id=name, interval=ends)
    one.band.best_single_delta_interval.extend([-0.02, 0.27])
    one.claims.add(margin=0.02, sentence=f"Claimed by the plan of run c. Supported: {hostile} loses at most 2 points.")
    one.verdict_sentence = "It is not established."
    one.subject_cost_saving.low_percent, one.subject_cost_saving.high_percent = 10, 30
    one.subject_cost_saving.unknown_cost_calls = 2
    one.null_routers.static_mix_reason = "the router's cost is unknown"
    one.regret.total.selection_error = 0.25
    one.total_cost_comparison_reason = "the candidate's cost is unknown"
    console = Console(width=100, highlight=False)
    with console.capture() as seen:
        console.print(comparison_table.comparison(found))
    text = seen.get()
    folded = " ".join(text.split())
    assert "\x1b]0;" not in text
    assert "[red]evil[/red]" in text
    for shown in (
        "+12.5",
        "[-10.0, +35.0]",
        "[+1.0, +24.0]",
        "against the truly best of them [-2.0, +27.0]",
        "Claimed by the plan of run c. Supported",
        "10.0 to 30.0 %",
        "It is not established.",
        "the wrong model was chosen 25.0 %",
    ):
        assert shown in folded, shown
    assert "No saving: the candidate's cost is unknown." in text


def test_pairs_and_options_page(service: Any, command: Any) -> None:
    ran = command("pairs", RUN_ID, "run-b", "--outcome", "loss", "--sort", "cost_delta", "--url", service.url)
    assert (ran.code, ran.json["next_cursor"]) == (0, "next")
    asked = service.requests["ComparePairs"][0]
    assert (asked.outcome, asked.sort, asked.page_size) == ("loss", "cost_delta", 25)
    assert "more with --after next" in ran.err
    shown = command("comparison-options", RUN_ID, "--url", service.url).json
    assert shown["options"][0]["id"] == "run-fits"
    assert shown["incompatible"][0]["reasons"][0]["reason"] == "SAMPLING_DIFFERS"
    assert command("comparison-options", "--limit", "26", "--url", service.url).code == 2


def test_regrade_writes_a_file_and_says_what_changed(service: Any, command: Any, tmp_path: Path) -> None:
    path = tmp_path / "grades.json"
    ran = command("regrade", RUN_ID, "--output", str(path), "--url", service.url)
    assert (ran.code, ran.json["changed_count"]) == (0, 1)
    assert json.loads(path.read_text())["results"][0]["changed"] is True
    assert command("regrade", RUN_ID, "--url", service.url).code == 2


def test_export_writes_json_or_parquet(service: Any, command: Any, tmp_path: Path) -> None:
    for name, options in (("e.json", []), ("e.parquet", []), ("odd", ["--format", "parquet"])):
        ran = command("export", RUN_ID, "--output", str(tmp_path / name), *options, "--url", service.url)
        assert (ran.code, ran.json["answer_count"], ran.json["case_count"]) == (0, 1, 1), ran.err
    assert json.loads((tmp_path / "e.json").read_text())["cases"][0]["targets"][0]["id"] == "alpha"
    for name in ("e.parquet", "odd"):
        assert parquet.read_table(tmp_path / name).to_pylist()[0]["cost_picodollars"] == 5


@pytest.mark.parametrize("name", ["e.json", "e.parquet"])
def test_a_refused_export_leaves_no_file(service: Any, command: Any, tmp_path: Path, name: str) -> None:
    ran = command("export", "run-holdout", "--output", str(tmp_path / name), "--url", service.url)
    assert (ran.code, "error [HOLDOUT]" in ran.err) == (2, True)
    assert not (tmp_path / name).exists()


def test_reconcile_usage_prints_the_correction(service: Any, command: Any) -> None:
    ran = command("reconcile-usage", RUN_ID, "--url", service.url)
    assert (ran.code, ran.json["id"], ran.json["calls"][0]["reason"]) == (0, "accounting-1", "no_evidence")


def test_plan_power_spends_nothing_and_freezes_nothing(service: Any, command: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(json.dumps({"version": "sr-bench-1.0", "targets": [], "cases": []}))
    ran = command("plan", "--manifest", str(path), "--power", "--discordance", "0.2", "--url", service.url)
    assert ran.code == 0, ran.err
    assert ran.json["profiles"][0]["detectable_difference"] is None
    asked = service.requests["EstimatePower"][0]
    assert (asked.discordance, asked.HasField("power")) == (0.2, False)
    assert "FreezePlan" not in service.requests
    without = command("plan", "--manifest", str(path), "--discordance", "0.2", "--url", service.url)
    assert (without.code, "NEEDS_POWER" in without.err) == (2, True)
