"""Every rule by which sr-bench refuses a comparison, a preview, a replay or a look back, with its stable reason.

The table follows chapters 7 and 8 of the released protocol, rule by rule. Each reason must be one that the product gives,
that a test of its own provokes, and, where users branch on it, that a page explains.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("services", "cli", "gateway/srbench_gateway")
# Reasons that a page lists: those of comparisons and of what comes after them.
PAGES = ("docs/comparisons.md", "docs/recovery-and-bundles.md")

RULES: dict[str, tuple[str, ...]] = {
    # 7.1 Compare
    "a run is over": ("RUN_NOT_OVER",),
    "a run is live": ("NOT_LIVE",),
    "the baseline has a single model": ("NO_SINGLE_MODEL",),
    "the targets of a run plan the same cases, and some": ("PARTIAL_MATRIX", "NO_CASES"),
    "every cell has one end, and a grade or a failure": ("CELLS_PENDING", "CELLS_UNFINISHED", "CELLS_UNGRADED"),
    "the runs are two": ("SAME_RUN", "REPEATED_RUN", "TOO_MANY_RUNS"),
    "the runs plan the same cases": ("CASES_DIFFER", "CASE_CONTENT_DIFFERS"),
    "the runs keep one protocol": ("VERSION_DIFFERS", "OUTPUT_POLICY_DIFFERS", "NATIVE_LIMITS_DIFFER"),
    "the runs ask alike": ("SAMPLING_DIFFERS", "OPTIONS_DIFFER", "LIMITS_DIFFER"),
    "the runs grade alike": ("WEIGHTS_DIFFER", "ADAPTERS_DIFFER", "EVALUATORS_DIFFER", "NO_WEIGHT"),
    "a model has one price and a target one meaning": ("PRICES_DIFFER", "PARAMETERS_DIFFER"),
    "a margin is a part of one": ("BAD_MARGIN",),
    # 8.1 Preview
    "a preview answers, in JSON, for the configuration asked for": (
        *("http_error", "protocol_error", "config_hash_mismatch", "idle_timeout", "deadline_exceeded", "missing_key"),
    ),
    # 8.2 Replay
    "a replay is eligible": ("REPLAY_INELIGIBLE",),
    "the runs of a replay fit": (
        *("native_output_not_replayable", "baseline_not_completed_live", "preview_not_completed", "version_mismatch"),
        *("partial_matrix", "duplicate_case_ids", "case_receipt_mismatch", "case_set_mismatch", "case_content_mismatch"),
        *("benchmark_not_replayable", "grader_protocol_mismatch", "baseline_models_not_unique"),
    ),
    "the preview settles every case": (
        *("preview_rows_incomplete", "state_dependent_preview", "route_not_deterministic", "plugins_not_replayable"),
        *("model_missing", "sampling_mismatch"),
    ),
    "the saved answer is the one asked for": (
        *("saved_generation_incomplete", "saved_grade_missing", "saved_prompt_mismatch"),
        *("saved_request_parameters_mismatch", "saved_model_mismatch"),
    ),
    # 8.3 Regrade, 8.4 Export
    "only completed live runs are regraded and exported": ("NOT_COMPLETED", "NOT_LIVE"),
    "regrading needs answers that no judge and no program grades, one call each": ("NOT_REGRADABLE", "SEVERAL_CALLS"),
    "only development cases are exported, all of them": ("HOLDOUT", "PARTIAL_MATRIX"),
    # 8.5 Reconcile usage
    "a reconciled run is over, live and has calls": ("RUN_NOT_OVER", "NOT_LIVE", "NO_CALLS"),
    "a stream settles a call": (
        *("no_end", "not_accepted", "no_evidence", "evidence_damaged", "answer_incomplete"),
        *("usage_missing", "cost_unknown"),
    ),
    # 8.6 Recover
    "a cell is eligible": (
        *("completed_evidence_is_preserved", "already_claimed_by_child_attempt"),
        *("ambiguous_dispatch_requires_reconciliation", "ambiguous_saved_result_requires_reconciliation"),
        *("already_dispatched_requires_explicit_new_attempt", "never_dispatched_use_undispatched_mode"),
        "unfinished_or_unknown_accounting_requires_reconciliation",
    ),
    "a recovery is reviewed, acknowledged and of the same terms": (
        *("RECOVERY_PLAN_REQUIRED", "ACKNOWLEDGMENT_REQUIRED", "DUPLICATE_CELL", "BAD_IDEMPOTENCY_KEY"),
        *("PARENT_PLAN_CHANGED", "IDEMPOTENCY_CONFLICT"),
    ),
    "a settlement is of a call of unknown cost": ("CALL_OPEN", "COST_KNOWN", "NOT_SENT_UNKNOWN", "EVIDENCE_CONTRADICTS"),
    "what is bundled is over and live": ("RUN_NOT_OVER", "NOT_LIVE"),
    # 8.7 Candidate plan
    "a candidate's baseline is whole": ("BASELINE_NOT_ELIGIBLE",),
    "a candidate is registered and asked the same": ("TARGET_NOT_REGISTERED", "CANDIDATE_PLAN_CHANGED"),
    # 8.8 Recipe capture
    "a recipe is the one that runs": (
        *("RECIPE_CAPTURE_FAILED", "NO_EXECUTOR", "not_active", "config_hash_mismatch", "etag_mismatch"),
        *("config_changed", "RECIPE_UNAVAILABLE"),
    ),
}
CODES = [(rule, code) for rule, codes in RULES.items() for code in codes]


@cache
def texts(*folders: str) -> str:
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")) if path != Path(__file__)]
    return "\n".join(path.read_text() for path in paths)


@pytest.mark.parametrize(("rule", "code"), CODES, ids=[f"{rule}-{code}" for rule, code in CODES])
def test_every_rule_has_a_reason_that_the_product_gives_and_a_test_provokes(rule: str, code: str) -> None:
    assert re.search(rf'"{code}"', texts(*PRODUCT)), f"no code gives {code}, by which {rule}"
    assert re.search(rf"[\"']{code}[\"']", texts("tests")), f"no test provokes {code}, by which {rule}"


def test_every_reason_on_the_pages_about_comparisons_is_in_the_table() -> None:
    known = {code for _, code in CODES}
    # What is said of other things on those pages: a request's fields, other runs, constants.
    others = {"MISSING_FIELD", "NO_SUCH_RUN"}
    for page in PAGES:
        named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", (ROOT / page).read_text()))
        assert named <= known | others, page


def test_every_reason_of_a_refused_comparison_is_explained() -> None:
    page = (ROOT / "docs/comparisons.md").read_text()
    comparisons = [code for rule, codes in list(RULES.items())[:12] for code in codes]
    assert [code for code in comparisons if f"`{code}`" not in page] == []


def test_every_reason_against_a_cells_recovery_is_explained() -> None:
    page = (ROOT / "docs/recovery-and-bundles.md").read_text()
    assert [code for code in RULES["a cell is eligible"] if f"`{code}`" not in page] == []
