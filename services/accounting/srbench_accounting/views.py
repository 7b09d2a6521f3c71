"""What readers see, read on one connection: spend, reports, pages, calls with their texts, evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import plan_pb2, report_pb2, routing_flow_pb2, run_times_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit.errors import DataLoss, NotFound
from srbench_kit.values import object_of

from srbench_accounting import convert, corrections, judging, schema
from srbench_accounting.derived import LoadedRun
from srbench_accounting.listing import CallWithEnd, Filter, Page, Start
from srbench_accounting.ranking import Ranking
from srbench_accounting.rows import Stored
from srbench_accounting.run_facts import KnownRun, PlanCases
from srbench_accounting.store import Store

NOTHING = -1
# A run and its recoveries, oldest first: as the ledger knows each, and as the planner does.
LineageRuns: TypeAlias = Sequence[tuple[KnownRun, planner_pb.Run]]
Wanted: TypeAlias = tuple[Filter, Ranking]


def spend(store: Store, connection: Connection, run: KnownRun) -> pb.Spend:
    """A run's money."""
    row = connection.execute(sa.select(schema.runs).where(schema.runs.c.run_no == run.run_no)).one()
    return pb.Spend(
        run_id=run.run_id,
        known_cost_picodollars=row.spent,
        reserved_picodollars=row.open_reserved + row.held_reserved,
        max_cost_picodollars=row.max_cost,
        call_count=row.call_count,
        open_call_count=row.open_call_count,
        unknown_cost_count=row.unknown_cost_count,
    )


def load_run(store: Store, connection: Connection, run: KnownRun, planner_run: planner_pb.Run) -> LoadedRun:
    """A run with the columns of its facts."""
    eligible_s = planner_run.create_time.seconds + planner_run.create_time.nanos / 1e9
    return LoadedRun(planner_run, *store.loader.load(connection, run.run_no, eligible_s))


def report(store: Store, connection: Connection, lineage: LineageRuns, cases: PlanCases) -> report_pb2.Report:
    """The report of the first run of a lineage, computed from its plan and facts."""
    run, planner_run = lineage[0]
    loaded = load_run(store, connection, run, planner_run)
    made = store.corrections.of_run(connection, _corrected_run(connection, run, planner_run), calls=False)
    routings = None
    if planner_run.plan.mode == "preview":
        # Imported when needed, as all that works on columns is.
        from srbench_accounting import routing_rows

        routings = routing_rows.load(connection, run.run_no)
    found = store.deriving.report(
        planner_run,
        cases.cases,
        loaded.outcomes,
        loaded.calls,
        correction=corrections.shown(made[-1] if made else None),
        recoveries=[recovery for _, recovery in lineage[1:]],
        routings=routings,
    )
    judges = judging.section(store, connection, run, planner_run.plan, cases, found)
    if judges is not None:
        found.judging.CopyFrom(judges)
    return found


def _corrected_run(connection: Connection, run: KnownRun, planner_run: planner_pb.Run) -> int:
    """The run whose corrections are in a run's figures: its own, or those of the answers that a replay has copies of."""
    if planner_run.plan.mode != "replay":
        return run.run_no
    sources = object_of(planner_run.plan.manifest).get("replay_sources")
    source = sources.get("baseline_run_id") if isinstance(sources, dict) else None
    found = connection.execute(sa.select(schema.runs.c.run_no).where(schema.runs.c.run_id == source)).scalar()
    return run.run_no if found is None else int(found)


def merged_report(store: Store, connection: Connection, lineage: LineageRuns, cases: PlanCases) -> report_pb2.Report:
    """The report of a run together with its recoveries."""
    loaded = [load_run(store, connection, run, planner_run) for run, planner_run in lineage]
    return store.deriving.merged_report(loaded, cases.cases)


def routing_flow(
    store: Store, connection: Connection, run: KnownRun, cases: PlanCases, target_id: str
) -> routing_flow_pb2.RoutingFlow:
    """Where a run's questions went. Raises: `NotFound` (`NO_SUCH_TARGET`)."""
    # NumPy takes longer to import than the service may take to start.
    from srbench_accounting import routing_flow_convert, routing_rows

    ids = [target.id for target in run.context.targets]
    if target_id and target_id not in ids:
        raise NotFound("NO_SUCH_TARGET", f"run {run.run_id} has no target {target_id!r}", target_id=target_id)
    outcomes, calls = store.loader.load(connection, run.run_no, 0.0)
    wanted = ids.index(target_id) if target_id else None
    # A preview makes no calls; its routes stand in its outcomes.
    routings = None if len(calls.case) else routing_rows.load(connection, run.run_no)
    return routing_flow_convert.message(run.run_id, ids, cases.cases, wanted, outcomes, calls, routings)


def run_times(store: Store, connection: Connection, run: KnownRun, cases: PlanCases) -> run_times_pb2.RunTimes:
    """How long a run's answers took."""
    # NumPy takes longer to import than the service may take to start.
    from srbench_accounting import report_input, run_times
    from srbench_accounting.report import target_scopes

    plan = report_input.plan_columns(plan_pb2.Plan(targets=run.context.targets), cases.cases)
    outcomes, calls = store.loader.load(connection, run.run_no, 0.0)
    found = [run_times.times(scope) for scope in target_scopes(plan, outcomes, calls)]
    rows = [
        run_times_pb2.TargetTimes(
            target_id=row.target_id,
            answer_count=row.answers.count,
            answer_quantiles_s=row.answers.quantiles_s,
            first_token_count=row.first_tokens.count,
            first_token_quantiles_s=row.first_tokens.quantiles_s,
        )
        for row in found
    ]
    return run_times_pb2.RunTimes(run_id=run.run_id, targets=rows)


def outcome_filter(request: pb.ListOutcomesRequest, run: KnownRun, cases: PlanCases) -> Filter:
    """What a list of outcomes is narrowed to."""
    benchmark = request.benchmark
    return Filter(
        target=_target(request.target_id, run),
        cases=frozenset(cases.indexes_by_benchmark.get(benchmark, ())) if benchmark else None,
        state=request.state or None,
        correct=int(request.correct) if request.HasField("correct") else None,
        cell=request.cell if request.HasField("cell") else None,
    )


def outcome_ranking(request: pb.ListOutcomesRequest) -> Ranking:
    """What a list of outcomes is narrowed to and ordered by beyond its filter. Raises: `InvalidInput`."""
    words = (("reason", request.reason), ("model", request.model), ("decision", request.decision))
    return Ranking(
        words=tuple((name, word) for name, word in words if word),
        query=request.query.lower(),
        order_by=request.order_by,
        descending=request.descending,
    )


def call_ranking(request: pb.ListCallsRequest) -> Ranking:
    """What a list of calls is narrowed to and ordered by beyond its filter. Raises: `InvalidInput`."""
    words = {"reason": request.reason, "model": request.model, "decision": request.decision}
    words["finish_reason"] = request.finish_reason
    numbers = [(name, int(number)) for name, number in (("status", request.status), ("role", request.role)) if number]
    return Ranking(
        words=tuple((name, word) for name, word in words.items() if word),
        numbers=tuple(numbers),
        unknown_cost=request.unknown_cost,
        order_by=request.order_by,
        descending=request.descending,
    )


def call_filter(request: pb.ListCallsRequest, run: KnownRun, cases: PlanCases) -> Filter:
    """What a list of calls is narrowed to."""
    case_id = request.case_id
    return Filter(
        target=_target(request.target_id, run),
        cases=frozenset({cases.index_by_id.get(case_id, NOTHING)}) if case_id else None,
    )


def outcomes(
    store: Store, connection: Connection, run: KnownRun, cases: PlanCases, wanted: Wanted, start: Start, size: int
) -> tuple[Page, list[pb.Outcome]]:
    """A page of outcomes, each with the sums over its subject's calls."""
    narrowed, ranking = wanted
    if ranking.changes_nothing and narrowed.everything:
        page = store.lists.outcome_page(connection, run.run_no, start, size)
    elif ranking.changes_nothing and narrowed.cell is not None and narrowed == Filter(cell=narrowed.cell):
        page = store.lists.cell_page(connection, run.run_no, narrowed.cell, start)
    else:
        page = store.ranks.outcomes.page(connection, run.run_no, cases, wanted, start, size)
    rows = store.lists.outcomes(connection, page.ids)
    settled = {place: found[-1] for place, found in store.settlements.of_run(connection, run.run_no).items()}
    ends = store.lists.subject_ends(connection, run.run_no, [row.cell for _, row in rows], settled)
    answered = store.lists.answered(connection, run.run_no, [row.cell for _, row in rows])
    numbers = {row.reason for _, row in rows} | {number for each in answered.values() for number in each}
    words = store.vocabulary.words(connection, numbers)
    found = [
        convert.outcome(
            *(identifier, row, ends.get(row.cell, []), answered.get(row.cell)),
            run=run,
            case=_case(cases, row.case_index),
            words=words,
        )
        for identifier, row in rows
    ]
    return page, found


def calls(
    store: Store,
    connection: Connection,
    run: KnownRun,
    cases: PlanCases,
    wanted: Wanted,
    active: bool,
    start: Start,
    size: int,
) -> tuple[Page, list[pb.Call]]:
    """A page of calls without their texts."""
    narrowed, ranking = wanted
    if active:
        page = store.lists.open_page(connection, run.run_no, narrowed, start, size)
    elif ranking.changes_nothing and narrowed.everything:
        page = store.lists.call_page(connection, run.run_no, start, size)
    else:
        page = store.ranks.calls.page(connection, run.run_no, cases, wanted, start, size)
    return page, _calls(store, connection, run, cases, store.lists.calls(connection, page.ids))


async def whole_call(store: Store, run: KnownRun, cases: PlanCases, call_id: str) -> pb.Call:
    """One call with its texts, or with why they cannot be read. Raises: `NotFound` (`NO_SUCH_CALL`), `Unreachable`."""

    def read(connection: Connection) -> tuple[pb.Call, Stored | None]:
        found = _find(store, connection, run, call_id)
        (message,) = _calls(store, connection, run, cases, [found])
        auxiliary = found[0].auxiliary
        name = store.vocabulary.words(connection, [auxiliary])[auxiliary]
        convert.fill_request(message, run.context, name, found[0].target_index)
        return message, _stored(store, connection, found)

    message, stored = await store.reader.run(read)
    try:
        if stored is not None:
            convert.fill_texts(message, await store.reads.answer(stored))
    except DataLoss as error:
        # Everything else that is known of the call is in the ledger.
        message.evidence_error = error.message
    return message


async def evidence_of(store: Store, run: KnownRun, call_id: str) -> tuple[pb.CallKey, bytes]:
    """A call's key and its compressed evidence. Raises: `NotFound` (`NO_SUCH_CALL`, `NO_EVIDENCE`), `DataLoss`,
    `Unreachable`."""

    def read(connection: Connection) -> tuple[pb.CallKey, Stored]:
        found = _find(store, connection, run, call_id)
        stored, row = _stored(store, connection, found), found[0]
        if stored is None:
            raise NotFound("NO_EVIDENCE", f"call {call_id} has no evidence", call_id=call_id)
        return pb.CallKey(run_id=run.run_id, cell=row.cell, ordinal=row.ordinal, offer=row.offer), stored

    key, stored = await store.reader.run(read)
    return key, await store.reads.data(stored)


def _calls(store: Store, connection: Connection, run: KnownRun, cases: PlanCases, rows: list[CallWithEnd]) -> list[pb.Call]:
    numbers = {number for row, end in rows for number in convert.call_words(row, end)}
    words = store.vocabulary.words(connection, numbers)
    found = []
    settled = store.settlements.of_run(connection, run.run_no)
    going_on = [((run.run_id, row.cell, row.ordinal, row.offer), words[row.executor]) for row, end in rows if end is None]
    activities = store.activities.of(connection, going_on)
    for row, end in rows:
        message = convert.call(row, end, run=run, case=_case(cases, row.case_index), words=words)
        doing = activities.get((run.run_id, row.cell, row.ordinal, row.offer)) if end is None else None
        if doing is not None:
            message.activity.CopyFrom(doing)
        if message.sequence in settled:
            message.settlement.CopyFrom(settled[message.sequence][-1])
        found.append(message)
    return found


def _find(store: Store, connection: Connection, run: KnownRun, call_id: str) -> CallWithEnd:
    key = convert.call_key(run.run_id, call_id)
    found = store.lists.call(connection, run.run_no, *key)
    if found is None:
        raise NotFound("NO_SUCH_CALL", f"run {run.run_id} has no call {call_id!r}", run_id=run.run_id, call_id=call_id)
    return found


def _stored(store: Store, connection: Connection, found: CallWithEnd) -> Stored | None:
    end = found[1]
    return store.known_calls.stored(connection, end) if end is not None else None


def _case(cases: PlanCases, index: int) -> plan_pb2.PlanCase | None:
    return cases.cases[index] if index < len(cases.cases) else None


def _target(target_id: str, run: KnownRun) -> int | None:
    """The position of a target; a name that the plan does not have fits nothing."""
    if not target_id:
        return None
    ids = [target.id for target in run.context.targets]
    return ids.index(target_id) if target_id in ids else NOTHING
