"""Distributions of times: their percentiles are the report's, and what is not known is in none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from srbench_accounting.columns import CallEnd, CellEnd, Role
from srbench_accounting.metrics import measure
from srbench_accounting.report import target_scopes
from srbench_accounting.run_times import SHARES, times

from tests.unit.accounting_core.test_report import calls_of, outcomes_of, plan_of

SECONDS = st.none() | st.floats(0, 1e4)


@given(st.lists(st.tuples(SECONDS, SECONDS, st.sampled_from([CellEnd.DONE, CellEnd.FAILED])), max_size=12))
def test_the_percentiles_are_those_of_the_report(rows: list[tuple[float | None, float | None, CellEnd]]) -> None:
    plan = plan_of(["arc"] * len(rows), ["t"])
    outcomes = outcomes_of(*({"case": case, "end": end} for case, (_, _, end) in enumerate(rows)))
    calls = calls_of(*({"case": case, "latency_s": took, "ttft_s": first} for case, (took, first, _) in enumerate(rows)))
    (scope,) = target_scopes(plan, outcomes, calls)
    found, figures = times(scope), measure(scope)
    for distribution, median, high in (
        (found.answers, figures.latency_p50_s, figures.latency_p95_s),
        (found.first_tokens, figures.ttft_p50_s, figures.ttft_p95_s),
    ):
        quantiles = distribution.quantiles_s
        assert len(quantiles) == (len(SHARES) if distribution.count else 0)
        assert list(quantiles) == sorted(quantiles)
        assert (quantiles[50], quantiles[95]) == (median, high) if quantiles else median is high is None


def test_judges_and_offers_that_were_not_accepted_take_no_time_of_an_answer() -> None:
    calls = calls_of(
        {"case": 0, "latency_s": 2.0, "ttft_s": 1.0},
        {"case": 0, "latency_s": 50.0, "ttft_s": 40.0, "role": Role.JUDGE},
        {"case": 0, "latency_s": 60.0, "ttft_s": 45.0, "end": CallEnd.NOT_ACCEPTED},
    )
    (scope,) = target_scopes(plan_of(["arc"], ["t"]), outcomes_of({"case": 0}), calls)
    found = times(scope)
    assert (found.answers.count, set(found.answers.quantiles_s)) == (1, {2.0})
    assert (found.first_tokens.count, set(found.first_tokens.quantiles_s)) == (1, {1.0})
