"""A page of the questions of a comparison, each with both answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.engine import Connection
from srbench.v1 import comparison_pb2 as pb
from srbench.v1 import plan_pb2, usage_pb2
from srbench_kit import pages
from srbench_kit.errors import InvalidInput, NotFound

from srbench_accounting import convert, pairs
from srbench_accounting.cell_costs import case_costs
from srbench_accounting.columns import UNKNOWN, CallColumns, CallEnd, Floats, Ints, Labels, Role, sum_if_known
from srbench_accounting.compare import right_of, strongest_single
from srbench_accounting.figures import Side
from srbench_accounting.rows import Stored
from srbench_accounting.schema import row_id
from srbench_accounting.store import Store

PAGE_SIZE, MAX_PAGE_SIZE = 25, 200
_FILTERS = (
    *("baseline_run_id", "candidate_run_id", "baseline_target_id", "candidate_target_id", "outcome", "benchmark"),
    *("sort", "descending", "case_id"),
)
_BUCKETS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """One target's answers by case, in the order of its own plan.

    Attributes:
        rows: place of each case's outcome in the run's outcomes, -1 without one.
        calls: the subject's calls that were accepted.
        call_places: place of each of them in the run's calls.
        cost, latency_s: by case; NaN where unknown.
    """

    target_id: str
    right: Ints
    rows: Ints
    calls: CallColumns
    call_places: Ints
    models: Labels
    cost: Floats
    latency_s: Floats

    @classmethod
    def of(cls, side: Side, target_id: str) -> Answers:
        """The answers of one target. Raises: `NotFound` (`NO_SUCH_TARGET`)."""
        figures = side.figures
        names, count, calls = list(figures.plan.target_ids), len(figures.plan.case_ids), figures.calls
        if target_id not in names:
            known = ", ".join(names)
            raise NotFound("NO_SUCH_TARGET", f"run {side.run.id} has no target {target_id!r}; it has {known}")
        assert calls is not None
        target = names.index(target_id)
        rows = np.full(count, UNKNOWN)
        own = np.flatnonzero(figures.outcomes.target == target)
        rows[figures.outcomes.case[own]] = own
        places = np.flatnonzero(
            (calls.target == target) & (calls.role == Role.SUBJECT) & (calls.end != CallEnd.NOT_ACCEPTED)
        )
        subject = calls.take(places)
        called = np.bincount(subject.case, minlength=count) > 0
        costs = case_costs(calls, target, np.arange(count), count, subject_only=True)
        seconds = np.bincount(subject.case, weights=subject.latency_s, minlength=count)
        return cls(
            target_id=target_id,
            right=right_of(figures, target_id),
            rows=rows,
            calls=subject,
            call_places=places,
            models=subject.observed_model(),
            cost=np.where(called & (costs.low == costs.high), costs.low, np.nan),
            latency_s=np.where(called, seconds, np.nan),
        )


def pair_columns(first: Answers, second: Answers, planned: Ints, places: Ints, benchmark: Ints) -> pairs.PairColumns:
    """Both targets' answers. `planned` and `places`: where each pair stands in the first's and in the second's plan."""
    return pairs.PairColumns(
        first=first.right[planned],
        second=second.right[places],
        benchmark=benchmark[planned],
        cost_delta=second.cost[places] - first.cost[planned],
        latency_delta=second.latency_s[places] - first.latency_s[planned],
    )


def check_request(request: pb.ComparePairsRequest) -> None:
    """Raises: `InvalidInput`: `MISSING_FIELD` without both runs, `BAD_FIELD` for a filter or order that there is not."""
    for name in ("baseline_run_id", "candidate_run_id"):
        if not getattr(request, name):
            raise InvalidInput("MISSING_FIELD", f"{name} is missing", field=name)
    for name, value, known in (("outcome", request.outcome, pairs.OUTCOMES), ("sort", request.sort, pairs.SORTS)):
        if value and value not in known:
            raise InvalidInput("BAD_FIELD", f"{name} is {value!r}; expected {', '.join(known)}", field=name)


def position(request: pb.ComparePairsRequest) -> int:
    """How many pairs come before the page. Raises: `InvalidInput` (`BAD_PAGE_TOKEN`, `BAD_FIELD`)."""
    after = pages.decode(request.page_token, *_asked(request))
    if not isinstance(after, int | None) or (after or 0) < 0:
        raise InvalidInput("BAD_PAGE_TOKEN", "the page token is not one that this service gave out")
    if request.offset < 0:
        raise InvalidInput("BAD_FIELD", f"offset is {request.offset}; expected 0 or more", field="offset")
    return (after or 0) + request.offset


def page(
    store: Store, connection: Connection, request: pb.ComparePairsRequest, baseline: Side, candidate: Side, after: int
) -> tuple[pb.ComparePairsResponse, list[tuple[pb.PairSide, Stored]]]:
    """The page of pairs after the first `after`, and where the answers lie that are still missing in it.

    Raises: `NotFound` (`NO_SUCH_TARGET`), `InvalidInput` (`MISSING_FIELD`, `BAD_PAGE_SIZE`).
    """
    size = pages.page_size(request.page_size, PAGE_SIZE, MAX_PAGE_SIZE)
    first = Answers.of(baseline, request.baseline_target_id or _strongest(baseline, candidate))
    second = Answers.of(candidate, request.candidate_target_id or _only_target(candidate))
    plan, strata = baseline.figures.plan, baseline.cases.cases
    place = {case: index for index, case in enumerate(candidate.figures.plan.case_ids)}
    # Cases that the baseline's targets do not answer are in neither run's comparison.
    planned = np.unique(plan.cell_case)
    places = np.array([place[plan.case_ids[case]] for case in planned.tolist()], dtype=np.int64)
    columns = pair_columns(first, second, planned, places, plan.case_benchmark.codes)
    names = plan.case_benchmark.vocabulary
    benchmark = (names.index(request.benchmark) if request.benchmark in names else UNKNOWN) if request.benchmark else None
    rows = pairs.chosen(
        columns,
        outcome=request.outcome,
        benchmark=benchmark,
        sort=request.sort or "case",
        descending=request.descending,
    )
    if request.case_id:
        rows = rows[[plan.case_ids[int(planned[row])] == request.case_id for row in rows.tolist()]]
    shown = rows[after : after + size].tolist()
    reader = PairReader(store, connection, texts=request.texts)
    ones = reader.sides(baseline, first, [int(planned[row]) for row in shown])
    others = reader.sides(candidate, second, [int(places[row]) for row in shown])
    response = pb.ComparePairsResponse(
        total=len(rows),
        baseline_target_id=first.target_id,
        candidate_target_id=second.target_id,
        counts=pairs.counts(columns, benchmark),
    )
    missing: list[tuple[pb.PairSide, Stored]] = []
    for row, (one, at), (other, other_at) in zip(shown, ones, others, strict=True):
        case = strata[int(planned[row])]
        outcome = pairs.word(int(columns.first[row]), int(columns.second[row]))
        response.pairs.append(_pair(case, one, other, outcome))
        made = response.pairs[-1]
        missing += [(side, place) for side, place in ((made.baseline, at), (made.candidate, other_at)) if place is not None]
    if after + len(shown) < len(rows) and shown:
        response.next_page_token = pages.encode(after + len(shown), *_asked(request))
    return response, missing


def _asked(request: pb.ComparePairsRequest) -> tuple[object, ...]:
    return tuple(getattr(request, name) for name in _FILTERS)


def _strongest(baseline: Side, candidate: Side) -> str:
    if baseline.run.id == candidate.run.id:
        sentence = "baseline_target_id is missing; name it when both runs are the same"
        raise InvalidInput("MISSING_FIELD", sentence, field="baseline_target_id")
    best, _ = strongest_single(baseline.figures)
    return best.id


def _only_target(side: Side) -> str:
    names = list(side.figures.plan.target_ids)
    if len(names) != 1:
        sentence = f"candidate_target_id is missing; run {side.run.id} has {', '.join(names)}"
        raise InvalidInput("MISSING_FIELD", sentence, field="candidate_target_id")
    return names[0]


class PairReader:
    """Reads the sides of some pairs from the ledger."""

    def __init__(self, store: Store, connection: Connection, *, texts: bool) -> None:
        self._store = store
        self._connection = connection
        self._texts = texts

    def sides(self, side: Side, given: Answers, cases: Sequence[int]) -> list[tuple[pb.PairSide, Stored | None]]:
        """The answers of `given` to `cases`, positions in the run's own plan, in order, and where their texts lie."""
        store, connection, run = self._store, self._connection, side.known
        outcome_ids = {case: row_id(run.run_no, int(given.rows[case]) + 1) for case in cases if given.rows[case] >= 0}
        outcomes = dict(store.lists.outcomes(connection, sorted(outcome_ids.values())))
        words = store.vocabulary.words(connection, (row.reason for row in outcomes.values()))
        found: list[tuple[pb.PairSide, Stored | None]] = []
        for case in cases:
            message = pb.PairSide()
            if case in outcome_ids:
                identifier = outcome_ids[case]
                row = outcomes[identifier]
                shown = convert.outcome(identifier, row, [], None, run=run, case=None, words=words)
                message.status, message.reason = shown.status, shown.reason
                message.answer.CopyFrom(shown.answer)
                if shown.HasField("correct"):
                    message.correct = shown.correct
            found.append((message, self._fill_calls(message, side, given, case)))
        return found

    def _fill_calls(self, message: pb.PairSide, side: Side, given: Answers, case: int) -> Stored | None:
        own = np.flatnonzero(given.calls.case == case)
        if not len(own):
            return None
        last, calls = int(own[-1]), given.calls.take(own)
        message.model = _word(given.models, last)
        message.decision = _word(given.calls.decision, last)
        if not np.isnan(given.cost[case]):
            message.cost_picodollars = int(given.cost[case])
        if not np.isnan(given.latency_s[case]):
            message.latency_s = float(given.latency_s[case])
        message.usage.CopyFrom(usage_pb2.TokenUsage(**{name: sum_if_known(getattr(calls, name)) for name in _BUCKETS}))
        identifier = row_id(side.known.run_no, int(given.call_places[last]) + 1)
        ((row, end),) = self._store.lists.calls(self._connection, [identifier])
        message.call_id = convert.call_id(side.known.run_id, row.cell, row.ordinal, row.offer)
        return None if end is None or not self._texts else self._store.known_calls.stored(self._connection, end)


def _pair(case: plan_pb2.PlanCase, first: pb.PairSide, second: pb.PairSide, outcome: str) -> pb.Pair:
    message = pb.Pair(
        case_id=case.case_id,
        benchmark=case.benchmark,
        stratum=case.stratum,
        outcome=outcome,
        baseline=first,
        candidate=second,
    )
    if first.HasField("cost_picodollars") and second.HasField("cost_picodollars"):
        message.cost_delta_picodollars = second.cost_picodollars - first.cost_picodollars
    if first.HasField("latency_s") and second.HasField("latency_s"):
        message.latency_delta_s = second.latency_s - first.latency_s
    return message


def _word(labels: Labels, row: int) -> str:
    code = int(labels.codes[row])
    return labels.vocabulary[code] if code >= 0 else ""
