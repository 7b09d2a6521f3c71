"""Real processes, real answers: two runs compared, looked at question by question, regraded, exported, reconciled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from srbench.v1 import comparison_pb2 as pb
from srbench_kit import exports
from srbench_kit.values import object_of

from tests.e2e.evaluations import finish, manifest, report, start, target
from tests.e2e.processes import Processes, running
from tests.e2e.upstream import Upstream, upstream

pytestmark = pytest.mark.e2e
FAST: dict[str, Any] = {"ttft_ms": 5, "itl_ms": 1, "chunks": 5}
CASES = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("loop")


@pytest.fixture(scope="module")
def endpoint(folder: Path) -> Iterator[Upstream]:
    skills = {"strong": 0.9, "weak": 0.3, "other": 0.6}
    models = [{"id": name, "skill": {"default": skill}} | FAST for name, skill in skills.items()]
    with upstream(folder, {"models": models}) as running_upstream:
        yield running_upstream


@pytest.fixture(scope="module")
def runs(folder: Path, endpoint: Upstream) -> Iterator[tuple[Processes, str, str]]:
    """The processes, a run of two models and a run of a third over the same questions under another budget."""
    with running(folder / "store") as processes:
        singles = [target(name, endpoint.base_url) for name in ("strong", "weak")]
        base = start(processes, manifest(CASES, singles, concurrency=8), "base")
        other = [target("other", endpoint.base_url)]
        claims = [{"kind": "non_inferiority", "margin": 0.05, "target_id": "other"}]
        claiming = manifest(CASES, other, concurrency=4, max_cost_usd=2) | {"claims": claims}
        cand = start(processes, claiming, "cand")
        assert finish(processes, base).status == finish(processes, cand).status == "completed"
        yield processes, base, cand


def test_a_comparison_of_two_real_runs(runs: tuple[Processes, str, str]) -> None:
    processes, base, cand = runs
    with processes.accounting() as stub:
        made = stub.CompareRuns(pb.CompareRunsRequest(baseline_run_id=base, candidate_run_ids=[cand]), timeout=60)
        (one,) = made.comparisons
        assert made.baseline_selected_target_id in ("strong", "weak")
        assert (one.candidate_target_id, one.paired_cases) == ("other", CASES)
        assert one.wins + one.losses + one.ties == CASES
        assert one.total_cost_saving.unknown_cost_calls == 0
        low, high = one.quality_delta_adaptive_ci95
        assert low <= one.quality_delta <= high
        assert [row.target_id for row in one.band.singles] == ["strong", "weak"]
        (claim,) = one.claims
        assert (claim.margin, claim.plan_run_id, claim.exploratory) == (0.05, cand, False)
        request = pb.ComparePairsRequest(baseline_run_id=base, candidate_run_id=cand, outcome="loss", texts=True)
        losses = stub.ComparePairs(request, timeout=60)
        assert losses.total == one.losses
        assert all(pair.baseline.correct and not pair.candidate.correct for pair in losses.pairs)
        assert all(pair.candidate.final for pair in losses.pairs)
        options = stub.ListComparisonOptions(pb.ListComparisonOptionsRequest(baseline_run_id=base), timeout=60)
        assert [run.id for run in options.options] == [cand]


def test_a_real_run_regraded_changes_nothing(runs: tuple[Processes, str, str]) -> None:
    processes, base, _ = runs
    with processes.accounting() as stub:
        found = stub.RegradeRun(pb.RegradeRunRequest(run_id=base), timeout=60)
    assert (len(found.results), found.changed_count) == (2 * CASES, 0)
    assert all(result.answer_status for result in found.results)


def test_a_real_run_exported(runs: tuple[Processes, str, str]) -> None:
    processes, base, _ = runs
    with processes.accounting() as stub:
        parts = list(stub.ExportRun(pb.ExportRunRequest(run_id=base), timeout=60))
    shown = json.loads(b"".join(exports.json_chunks(parts)))
    assert len(shown["cases"]) == CASES
    assert {case["answer"] for case in shown["cases"]} == {"A"}
    assert all(answer["cost_usd"] > 0 and answer["final"] for case in shown["cases"] for answer in case["targets"])


def test_a_real_run_reconciled_agrees_with_its_receipts(runs: tuple[Processes, str, str]) -> None:
    processes, base, _ = runs
    before = report(processes, base)
    with processes.accounting() as stub:
        found = stub.ReconcileUsage(pb.ReconcileUsageRequest(run_id=base), timeout=60)
        assert stub.ReconcileUsage(pb.ReconcileUsageRequest(run_id=base), timeout=60) == found
    assert (found.qualified, found.verified_call_count, found.corrected_call_count) == (True, 2 * CASES, 0)
    after = report(processes, base)
    assert after.summary == before.summary
    assert object_of(after.provenance.accounting_correction)["id"] == found.id


def test_power_is_told_before_anything_is_spent(runs: tuple[Processes, str, str], endpoint: Upstream) -> None:
    from srbench.v1 import power_pb2
    from srbench_kit.values import to_value

    processes, _, _ = runs
    asked = len(endpoint.ledger())
    document = manifest(CASES, [target("strong", endpoint.base_url)])
    with processes.planner() as stub:
        found = stub.EstimatePower(power_pb2.EstimatePowerRequest(manifest=to_value(document)), timeout=60)
    assert [row.profile for row in found.profiles] == ["this plan", "smoke", "quick", "standard"]
    assert found.profiles[3].detectable_difference < found.profiles[2].detectable_difference
    assert len(endpoint.ledger()) == asked
