"""Tables on terminals of every width, and what a report says of a cost that is not known."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1 import report_pb2, usage_pb2
from srbench_cli import tables
from srbench_cli.report_table import reservations, sentences
from srbench_kit.values import to_value

CALL = "call-014f1db7b0e6980b0000000000000000"


def shown(renderable: RenderableType, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(renderable)
    return out.getvalue()


def listed() -> accounting.ListCallsResponse:
    one = accounting.Call(
        id=CALL, case_id="mmlu-pro/1000188", target_id="frontier", model="frontier-2026-11", cost_picodollars=160_500_000,
        status=accounting.CALL_STATUS_COMPLETED, latency_s=0.864,
    )  # fmt: skip
    return accounting.ListCallsResponse(calls=[one, one], total=2)


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_width_cuts_what_people_copy_or_compare(width: int) -> None:
    text = shown(tables.calls(listed()), width)
    for whole in (CALL, "mmlu-pro/1000188", "completed", "864 ms", "$0.0001605", "2 of 2"):
        assert text.count(whole) == 1 if whole == "2 of 2" else 2, text


def test_a_wide_terminal_has_a_line_for_a_row() -> None:
    assert len(shown(tables.calls(listed()), 160).splitlines()) == 4


def test_facts_of_events_stand_on_one_line() -> None:
    event = planner.RunEvent(seq=4, type="created", data=to_value({"facts": [24, "87f6"]}))
    text = shown(tables.events(planner.ListRunEventsResponse(events=[event])), 120)
    assert '{"facts": [24, "87f6"]}' in text


def unknown(**more: object) -> str:
    row = report_pb2.Metrics(
        **{"id": "m", "total": 8, "completed": 8, "request_count": 8, "spend_upper_picodollars": 14_000_000_000, **more}  # type: ignore[arg-type]
    )
    found = report_pb2.Report(cost_policy="require_priced", summary=report_pb2.ReportSummary(targets=[row]))
    return " ".join(reservations(found))


def test_why_a_cost_is_unknown() -> None:
    assert unknown() == "The cost of m is unknown: some calls have no usage, or not all of it; at most $0.014."
    split = (
        "The cost of m is unknown: the endpoint does not say what a cache served of its prompts (had none done so: $0.002)"
    )
    assert unknown(cache_neutral_cost_picodollars=2_000_000_000) == f"{split}; at most $0.014."
    open_ = "The cost of m is unknown: some cells were never sent, or some calls have no usage, or not all of it"
    assert unknown(completed=7) == f"{open_}; at most $0.014."
    assert "at least 2 of 8 cells were never sent" in unknown(completed=6, request_count=6)
    assert "some calls have no price" in unknown(tokens=usage_pb2.TokenUsage(output_tokens=1))


def test_cells_without_an_answer_are_told_by_their_number() -> None:
    failed = {"cost_picodollars": 1, "failed": 2, "failure_reasons": {"http_error": 2}}
    assert unknown(**failed) == "m: 2 of 8 cells failed (http_error 2)."
    assert unknown(cost_picodollars=1, pending=1) == "m: 1 of 8 cells has no end."
    assert unknown(**failed, pending=3) == "m: 2 of 8 cells failed (http_error 2), 3 of 8 cells have no end."


def test_a_call_of_unknown_cost_shows_its_bounds() -> None:
    text = shown(tables.call(accounting.Call(id=CALL, cost_lower_picodollars=10**9, cost_upper_picodollars=2 * 10**9)), 80)
    assert "unknown, from $0.001 to $0.002" in text
    assert "unknown, from" not in shown(tables.call(accounting.Call(id=CALL)), 80)


def test_a_run_that_ended_without_a_failed_cell_says_so() -> None:
    found = report_pb2.Report(status="failed", failure=report_pb2.ReportFailure(reason="storage_full"))
    assert list(reservations(found)) == ["The run ended as failed; no cell failed; reason: storage_full."]
    found.failure.case_id, found.failure.target_id = "q1", "m"
    assert list(reservations(found)) == ["The first failure was storage_full, at q1 on m."]


def test_the_strongest_single_model_is_the_one_that_a_comparison_starts_from() -> None:
    rows = [
        report_pb2.Metrics(id=name, total=10, correct=right, accuracy=right / 10, macro_accuracy=macro)
        for name, right, macro in (("broad", 8, 0.5), ("deep", 7, 0.75), ("r", 7, 0.5))
    ]
    found = report_pb2.Report(summary=report_pb2.ReportSummary(targets=rows))
    found.benchmarks.extend(report_pb2.Metrics(id="broad", benchmark=name) for name in ("a", "b"))
    for name, kind in (("broad", "single"), ("deep", "single"), ("r", "mom")):
        found.provenance.target_profiles.add(id=name, kind=kind)
    strongest, router = sentences(found)
    assert strongest == "Strongest single model: deep, 7 of 10 right (70.0 %), macro 75.0 %, cost unknown."
    assert router.startswith("Router r: 7 of 10 right, as good as deep (macro: 25.0 points below), cost unknown.")
    rows[2].macro_accuracy = 0.75
    equal = report_pb2.Report(summary=report_pb2.ReportSummary(targets=rows), benchmarks=found.benchmarks)
    equal.provenance.CopyFrom(found.provenance)
    assert "as good as deep (macro: no difference), cost" in list(sentences(equal))[1]
