"""Reads usage and cost of a run's calls again, from the retained streams alone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy.engine import Connection
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import comparison_pb2, usage_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit.canonical import digest
from srbench_kit.completion import Completion
from srbench_kit.errors import Conflict, DataLoss, InvalidInput
from srbench_kit.values import Json

from srbench_accounting import answers, convert
from srbench_accounting.corrections import FIGURES, Corrected, figures_of
from srbench_accounting.derived import Derived
from srbench_accounting.listing import CallWithEnd, Start
from srbench_accounting.rows import CallRow, ReceiptRow, Stored, receipt_of
from srbench_accounting.run_facts import KnownRun
from srbench_accounting.run_job import derive
from srbench_accounting.schema import row_id, sequence_of
from srbench_accounting.settlement import parse_json
from srbench_accounting.store import Store

VERSION = "sr-bench-accounting-v1"
TERMINAL = frozenset({"completed", "failed", "cancelled", "interrupted"})
BATCH = 500
_COST = list(FIGURES).index("cost")
_BUCKETS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")


@dataclass(slots=True)
class _Read:
    """What the stream of one call says."""

    entry: comparison_pb2.CallCorrection
    call: CallRow
    end: ReceiptRow | None
    derived: Derived | None = None


@dataclass(slots=True)
class _Call:
    """A call on its way to its stream; `None` where there is none to look at."""

    read: _Read
    words: convert.Words
    stored: Stored | None = None


async def reconcile(store: Store, run: KnownRun, planner_run: planner_pb.Run) -> comparison_pb2.AccountingCorrection:
    """The correction that the evidence of a run makes; the stored one when the same was made before.

    Raises: `InvalidInput` (`NOT_LIVE`), `Conflict` (`RUN_NOT_OVER`, `NO_CALLS`).
    """
    _check(planner_run)
    count, before = await store.reader.run(lambda connection: _known(store, connection, run))
    read: list[_Read] = []
    for first in range(1, count + 1, BATCH):
        batch = await store.reader.run(partial(_rows, store, run=run, first=first, end=min(first + BATCH, count + 1)))
        await store.reads.run(partial(_read_streams, store, run, batch))
        read += [one.read for one in batch]
    if not read:
        raise Conflict("NO_CALLS", f"run {run.run_id} made no calls; there is nothing to reconcile", run_id=run.run_id)
    made, corrected = _correction(run, planner_run, read, before)
    return await store.writer.run(lambda connection: store.corrections.append(connection, run.run_no, made, corrected))


def _check(run: planner_pb.Run) -> None:
    if run.plan.mode not in ("", "live"):
        raise InvalidInput("NOT_LIVE", f"run {run.id} is a {run.plan.mode}; only live runs have receipts of their own")
    if run.status not in TERMINAL:
        raise Conflict("RUN_NOT_OVER", f"run {run.id} is {run.status}; its usage can be reconciled when it has ended")


def _known(store: Store, connection: Connection, run: KnownRun) -> tuple[int, dict[int, int | None]]:
    """(how many calls there are, the costs that earlier corrections put in force by the call's place)."""
    figures = store.corrections.figures(connection, run.run_no)
    costs = {place: row[_COST] for place, row in figures.items()}
    return store.lists.call_page(connection, run.run_no, Start(), 1).total, costs


def _rows(store: Store, connection: Connection, run: KnownRun, first: int, end: int) -> list[_Call]:
    """The calls from place `first` to before `end`."""
    rows = store.lists.calls(connection, [row_id(run.run_no, place) for place in range(first, end)])
    numbers = {number for row, receipt in rows for number in convert.call_words(row, receipt)}
    words = store.vocabulary.words(connection, numbers)
    return [_row(store, connection, run, row, words) for row in rows]


def _row(store: Store, connection: Connection, run: KnownRun, row: CallWithEnd, words: convert.Words) -> _Call:
    """One call, with where its stream lies or why that is not looked at."""
    call, end = row
    entry = comparison_pb2.CallCorrection(call_id=convert.call_id(run.run_id, call.cell, call.ordinal, call.offer))
    found = _Call(_Read(entry, call, end), words)
    if end is None:
        entry.reason = "no_end"
        return found
    entry.original_usage.CopyFrom(_usage(end))
    if end.cost is not None:
        entry.original_cost_picodollars = end.cost
    entry.evidence_sha256 = end.evidence_sha256.hex() if end.evidence_sha256 is not None else ""
    if end.status == pb.CALL_STATUS_NOT_ACCEPTED:
        # Nothing was generated, so there is nothing to read and nothing to pay.
        entry.reason = "not_accepted"
        return found
    found.stored = store.known_calls.stored(connection, end)
    if found.stored is None:
        entry.reason = "no_evidence"
    return found


def _read_streams(store: Store, run: KnownRun, batch: Sequence[_Call]) -> None:
    """Reads the streams of some calls, without a connection to the database."""
    for one in batch:
        end = one.read.end
        if one.stored is None or end is None:
            continue
        try:
            answer = answers.read(store.evidence.open(one.stored))
        except DataLoss:
            one.read.entry.reason = "evidence_damaged"
            continue
        saved = receipt_of(end, dispatch_us=one.read.call.dispatch_us, words=one.words)
        _verify(one.read, run, answer, saved, one.words)


def _verify(read: _Read, run: KnownRun, answer: Completion, saved: pb.Receipt, words: convert.Words) -> None:
    """Derives the call's figures from its stream; they count only when nothing in them is unknown."""
    entry, call = read.entry, read.call
    auxiliary = words[call.auxiliary]
    target = run.auxiliaries[auxiliary] if auxiliary else run.targets[call.target_index]
    receipt = _receipt(answer, saved)
    derived = derive(target, receipt)
    entry.reason = _why_not(answer, receipt, derived)
    entry.contradicted.extend(_contradicted(saved, receipt))
    if entry.reason:
        return
    read.derived, entry.verified = derived, True
    entry.usage.CopyFrom(_usage(derived))
    assert derived.cost is not None
    entry.cost_picodollars = derived.cost
    assert read.end is not None
    entry.corrected = figures_of(derived) != _receipt_figures(read.end)


def _receipt(answer: Completion, saved: pb.Receipt) -> pb.Receipt:
    """The receipt that the stream itself gives; what only the wire knew is taken over."""
    receipt = pb.Receipt(
        status=saved.status,
        response_model=answer.model,
        usage_json=answer.usage_json,
        usage_final=answer.usage_final,
        router_receipt_json=answer.router_receipt,
        selected_model=answer.selected_model,
        content_chars=answer.content_chars,
        finish_reason=answer.finish_reason,
    )
    if answer.inference_call_count is not None:
        receipt.inference_call_count = answer.inference_call_count
    return receipt


def _why_not(answer: Completion, receipt: pb.Receipt, derived: Derived) -> str:
    if not answer.usage_final:
        return "answer_incomplete"
    if not receipt.usage_json and not receipt.router_receipt_json:
        return "usage_missing"
    return "" if derived.cost is not None else "cost_unknown"


def _contradicted(saved: pb.Receipt, read: pb.Receipt) -> list[str]:
    pairs = (
        ("usage", parse_json(saved.usage_json), parse_json(read.usage_json)),
        ("model", saved.response_model, read.response_model),
        ("finish_reason", saved.finish_reason, read.finish_reason),
        ("router_receipt", parse_json(saved.router_receipt_json), parse_json(read.router_receipt_json)),
    )
    return [name for name, one, other in pairs if one != other]


def _correction(
    run: KnownRun, planner_run: planner_pb.Run, read: list[_Read], before: dict[int, int | None]
) -> tuple[comparison_pb2.AccountingCorrection, list[Corrected]]:
    plan_sha256 = planner_run.plan.plan_sha256 or run.context.plan_sha256
    found: dict[str, Json] = {"plan_sha256": plan_sha256, "calls": [_identity(one) for one in read]}
    evidence = digest(found)
    verified = sum(one.entry.verified for one in read)
    name = digest({"run_id": run.run_id, "evidence_sha256": evidence})[:24]
    made = comparison_pb2.AccountingCorrection(
        version=VERSION,
        id=f"accounting-{name}",
        run_id=run.run_id,
        plan_sha256=plan_sha256,
        evidence_sha256=evidence,
        qualified=verified == len(read),
        verified_call_count=verified,
        unverifiable_call_count=len(read) - verified,
        corrected_call_count=sum(one.entry.corrected for one in read),
        original_known_spend_picodollars=sum(one.end.cost or 0 for one in read if one.end is not None),
        corrected_known_spend_picodollars=sum(_cost_in_force(one, before) or 0 for one in read),
        original_receipts_preserved=True,
        calls=[one.entry for one in read],
        create_time=Timestamp(),
    )
    made.create_time.FromNanoseconds(time.time_ns() // 1000 * 1000)
    # An earlier correction of a call is overruled even where its receipt was right after all.
    kept = [one for one in read if one.derived and (one.entry.corrected or sequence_of(one.call.call_id) in before)]
    return made, [_corrected(one) for one in kept]


def _identity(read: _Read) -> Json:
    """What makes a correction this one and no other: the evidence of each call and what was read in it."""
    figures: list[Json] = list(figures_of(read.derived)) if read.derived is not None else []
    return [read.entry.call_id, read.entry.evidence_sha256, read.entry.reason, figures]


def _cost_in_force(read: _Read, before: dict[int, int | None]) -> int | None:
    """The call's cost by this reading, else by an earlier one, else by its receipt: nothing known becomes unknown."""
    if read.derived is not None:
        return read.derived.cost
    earlier = before.get(sequence_of(read.call.call_id))
    return earlier if earlier is not None else None if read.end is None else read.end.cost


def _corrected(read: _Read) -> Corrected:
    assert read.derived is not None
    assert read.end is not None
    assert read.end.evidence_sha256 is not None
    return read.call.call_id, read.end.evidence_sha256, read.derived


def _receipt_figures(end: ReceiptRow) -> tuple[int | None, ...]:
    reported = None if end.cache_read_reported is None else bool(end.cache_read_reported)
    return figures_of(
        Derived(
            input_tokens=end.input_tokens,
            cached_input_tokens=end.cached_input_tokens,
            cache_write_tokens=end.cache_write_tokens,
            output_tokens=end.output_tokens,
            prompt_tokens=end.prompt_tokens,
            cache_read_reported=reported,
            cost=end.cost,
            cache_neutral_cost=end.cache_neutral_cost,
            inference_call_count=end.inference_call_count,
        )
    )


def _usage(of: ReceiptRow | Derived) -> usage_pb2.TokenUsage:
    return usage_pb2.TokenUsage(**{name: getattr(of, name) for name in _BUCKETS})
