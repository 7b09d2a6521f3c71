"""How outputs look, and how much of the input caches served."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srbench_accounting.columns import CallColumns, CallEnd, OutcomeColumns, exact_sum


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDiagnostics:
    """Output limits, formats and finish reasons, flattened from `srbench.v1.OutputDiagnostics`."""

    planned_cases: int
    result_cases: int
    output_limit_cases: int
    format_checked_cases: int
    format_failed_cases: int
    format_unassessed_cases: int
    subject_call_total: int
    finish_reasons: dict[str, int]
    unknown_finish_reason: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRead:
    """Cached input of subject calls. Fields as in `srbench.v1.CacheRead`."""

    reported_calls: int
    unreported_calls: int
    cached_input_tokens: int
    prompt_tokens: int
    cache_read_rate: float | None


# What a run without requests read from caches.
NO_CACHE_READ = CacheRead(
    reported_calls=0, unreported_calls=0, cached_input_tokens=0, prompt_tokens=0, cache_read_rate=None
)


def output_diagnostics(planned: int, outcomes: OutcomeColumns, subject: CallColumns) -> OutputDiagnostics:
    """The figures of one scope; `planned` is its number of planned cells."""
    checked = int((outcomes.strict_format >= 0).sum())
    reasons = subject.finish_reason.counts()
    return OutputDiagnostics(
        planned_cases=planned,
        result_cases=len(outcomes),
        output_limit_cases=int((outcomes.output_limit == 1).sum()),
        format_checked_cases=checked,
        format_failed_cases=int((outcomes.strict_format == 0).sum()),
        format_unassessed_cases=planned - checked,
        subject_call_total=len(subject),
        finish_reasons=reasons,
        unknown_finish_reason=len(subject) - sum(reasons.values()),
    )


def cache_read(subject: CallColumns) -> CacheRead:
    """Cached input as part of all input, over the calls whose endpoint told it.

    The rate is unknown when nothing was told, and when the prompt of a call that told its cached part is not known.
    """
    ended = subject.end != CallEnd.SENT
    told = ended & (subject.cache_read_reported == 1)
    whole = told & (subject.prompt_tokens >= 0) & (subject.cached_input_tokens >= 0)
    cached, prompt = exact_sum(subject.cached_input_tokens[whole]), exact_sum(subject.prompt_tokens[whole])
    reported = int(told.sum())
    return CacheRead(
        reported_calls=reported,
        unreported_calls=int(ended.sum()) - reported,
        cached_input_tokens=cached,
        prompt_tokens=prompt,
        cache_read_rate=cached / prompt if prompt and bool(np.array_equal(whole, told)) else None,
    )
