"""The report as a `srbench.v1.Report`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from srbench.v1 import plan_pb2, usage_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import report_pb2 as pb
from srbench_kit.values import fill_value, to_value

from srbench_accounting.diagnostics import OutputDiagnostics
from srbench_accounting.filling import fill
from srbench_accounting.metrics import Metrics
from srbench_accounting.report import VERSION, ChildAttempt, Failure, Report, RunFacts, TargetProfile
from srbench_accounting.saying_convert import messages

if TYPE_CHECKING:
    pass

# Fields of `Metrics` whose message has another form than the value.
_SHAPED = frozenset(
    {"accuracy_ci95", "tokens", "continuity", "output_diagnostics", "cache_read"}
    | {"estimated_accuracy_ci95", "estimated_tokens"}
)
_MAPS = frozenset({"selected_models", "decisions", "failure_reasons", "selection_statuses", "selection_reasons"})


def report(made: Report) -> pb.Report:
    """The message; what is `None` stays absent."""
    facts, summary = made.facts, made.summary
    message = pb.Report(
        version=VERSION,
        run_id=facts.run_id,
        status=facts.status,
        mode=facts.mode,
        cost_policy=facts.cost_policy,
        failure=_failure(made.failure),
        child_attempts=[_child(one) for one in facts.child_attempts],
        summary=pb.ReportSummary(
            targets=[metrics(row) for row in summary.targets],
            wall_time_s=summary.wall_time_s,
            total_spend_picodollars=summary.total_spend_picodollars,
            known_spend_picodollars=summary.known_spend_picodollars,
            spend_upper_picodollars=summary.spend_upper_picodollars,
        ),
        benchmarks=[metrics(row) for row in made.benchmarks],
        limitations=made.limitations,
        sayings=messages(_sentences(made)),
        provenance=_provenance(facts),
        claims=[plan_pb2.Claim(kind=one.kind, margin=one.margin, target_id=one.target_id or None) for one in facts.claims],
    )
    fill_value(message.recovery, facts.recovery)
    return message


def _sentences(made: Report) -> Iterator[str]:
    yield from made.limitations
    for row in (*made.summary.targets, *made.benchmarks):
        yield from (row.accuracy_denominator, row.cache_neutral_cost_basis)


def metrics(row: Metrics) -> pb.Metrics:
    """One row of figures."""
    message = pb.Metrics(
        accuracy_ci95=row.accuracy_ci95,
        tokens=None if row.tokens is None else usage_pb2.TokenUsage(),
        estimated_accuracy_ci95=row.estimated_accuracy_ci95,
        estimated_tokens=None if row.estimated_tokens is None else usage_pb2.TokenUsage(),
        continuity=pb.Continuity(),
        output_diagnostics=_diagnostics(row.output_diagnostics),
        cache_read=pb.CacheRead(),
    )
    fill(message, row, skip=_SHAPED | _MAPS)
    if row.tokens is not None:
        fill(message.tokens, row.tokens)
    if row.estimated_tokens is not None:
        fill(message.estimated_tokens, row.estimated_tokens)
    fill(message.continuity, row.continuity)
    fill(message.cache_read, row.cache_read)
    for name in _MAPS:
        getattr(message, name).update(getattr(row, name))
    return message


def _diagnostics(made: OutputDiagnostics) -> pb.OutputDiagnostics:
    return pb.OutputDiagnostics(
        planned_cases=made.planned_cases,
        result_cases=made.result_cases,
        output_limit_cases=made.output_limit_cases,
        strict_format=pb.StrictFormat(
            checked_cases=made.format_checked_cases,
            failed_cases=made.format_failed_cases,
            unassessed_cases=made.format_unassessed_cases,
        ),
        subject_calls=pb.SubjectCalls(
            total=made.subject_call_total,
            finish_reasons=made.finish_reasons,
            unknown_finish_reason=made.unknown_finish_reason,
        ),
    )


def _child(one: ChildAttempt) -> pb.ChildAttempt:
    return pb.ChildAttempt(id=one.id, status=one.status, progress=planner_pb.Progress(**one.progress))


def _failure(made: Failure | None) -> pb.ReportFailure | None:
    if made is None:
        return None
    return pb.ReportFailure(
        case_id=made.case_id,
        target_id=made.target_id,
        reason=made.reason,
        inferred_from_saved_results=made.inferred_from_saved_results,
    )


def _provenance(facts: RunFacts) -> pb.ReportProvenance:
    return pb.ReportProvenance(
        accounting_correction=to_value(facts.accounting_correction),
        runner=to_value(facts.runner),
        plan_sha256=facts.plan_sha256,
        case_sha256=facts.case_sha256,
        dataset=to_value(facts.dataset),
        sampling=to_value(facts.sampling),
        adapter_versions=facts.adapter_versions,
        custom_subset=facts.custom_subset,
        target_profiles=[_profile(one) for one in facts.target_profiles],
        profile=facts.profile,
        seed=facts.seed,
    )


def _profile(one: TargetProfile) -> pb.TargetProfile:
    return pb.TargetProfile(
        id=one.id,
        model=one.model,
        kind=one.kind,
        request_params=to_value(one.request_params),
        config_hash=one.config_hash,
    )
