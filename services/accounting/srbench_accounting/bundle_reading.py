"""The members of a bundle as the messages that they hold. Everything in them comes from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import zstandard
from google.protobuf.message import DecodeError
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import comparison_pb2, plan_pb2
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit import bundle_files as files
from srbench_kit.bundles import FORMAT, Opened
from srbench_kit.errors import DataLoss
from srbench_kit.values import Json

MAX_JSON_BYTES = 1024**3
MAX_PACKED_BYTES = 256 * 1024**2
# Far above what the executor's guards let through.
MAX_EVIDENCE_BYTES = 1024**3


@dataclass(frozen=True, slots=True)
class Index:
    """What a bundle says of itself: the runs that were asked for, and the recoveries of every run in it."""

    runs: list[str]
    recoveries: dict[str, list[str]]


@dataclass(slots=True)
class BundledRun:
    """One run as bundled. `reports` are the reports by the member's name; `answers` whole cases by index."""

    run: planner_pb.Run
    cases: list[plan_pb2.PlanCase]
    calls: list[ledger_pb.LedgerCall]
    outcomes: list[ledger_pb.LedgerOutcome]
    corrections: list[comparison_pb2.AccountingCorrection] = field(default_factory=list)
    reports: dict[str, Json] = field(default_factory=dict)
    answers: dict[int, Json] = field(default_factory=dict)


def read_index(opened: Opened) -> Index:
    """Raises: `DataLoss` (`BAD_MEMBER`)."""
    value = files.read_json(_content(opened, files.BUNDLE), files.BUNDLE)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise DataLoss("BAD_MEMBER", f"{files.BUNDLE} is not of the format {FORMAT}", member=files.BUNDLE)
    runs, recoveries = _ids(value.get("runs")), value.get("recoveries")
    if runs is None or not isinstance(recoveries, dict):
        raise DataLoss("BAD_MEMBER", f"{files.BUNDLE} names no runs", member=files.BUNDLE)
    read = {run: _ids(children) for run, children in recoveries.items()}
    lists = {run: children for run, children in read.items() if children is not None}
    named = {*runs, *(child for children in lists.values() for child in children)}
    if len(lists) < len(read) or not named <= lists.keys():
        raise DataLoss("BAD_MEMBER", f"{files.BUNDLE} does not say the recoveries of every run", member=files.BUNDLE)
    return Index(runs, lists)


def run_members(opened: Opened, run_id: str) -> list[str]:
    """The names of a run's members that are there."""
    names = [files.run_file(run_id, name) for name in files.RUN_FILES]
    return [name for name in names if name in opened.members]


def read_run(opened: Opened, run_id: str) -> BundledRun:
    """The run. Raises: `DataLoss` (`BAD_MEMBER`) naming the member that is missing or no such thing."""

    def content(name: str) -> tuple[bytes, str]:
        member = files.run_file(run_id, name)
        return _content(opened, member), member

    found = BundledRun(
        run=files.read_message(planner_pb.Run, *content(files.RUN)),
        cases=list(files.read_messages(plan_pb2.PlanCase, *content(files.CASES))),
        calls=list(files.read_messages(ledger_pb.LedgerCall, *content(files.CALLS))),
        outcomes=list(files.read_messages(ledger_pb.LedgerOutcome, *content(files.OUTCOMES))),
    )
    _check_run(found, run_id)
    if files.run_file(run_id, files.CORRECTIONS) in opened.members:
        found.corrections = list(files.read_messages(comparison_pb2.AccountingCorrection, *content(files.CORRECTIONS)))
    for name in (files.REPORT, files.MERGED):
        if name == files.REPORT or files.run_file(run_id, name) in opened.members:
            found.reports[name] = files.read_json(*content(name))
    if files.run_file(run_id, files.ANSWERS) in opened.members:
        found.answers = _answers(*content(files.ANSWERS))
    return found


def read_evidence(opened: Opened, sha256: str) -> pb.Evidence:
    """A call's evidence. Raises: `DataLoss` (`BAD_MEMBER`)."""
    name = files.evidence_file(sha256)
    packed = _content(opened, name, MAX_PACKED_BYTES)
    try:
        with zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(packed) as reader:
            data = reader.read(MAX_EVIDENCE_BYTES + 1)
        if len(data) > MAX_EVIDENCE_BYTES:
            raise DataLoss("BAD_MEMBER", f"{name} unpacks to more than {MAX_EVIDENCE_BYTES} bytes", member=name)
        return pb.Evidence.FromString(data)
    except (zstandard.ZstdError, DecodeError):
        raise DataLoss("BAD_MEMBER", f"{name} is no zstd-compressed Evidence", member=name) from None


def _content(opened: Opened, name: str, most: int = MAX_JSON_BYTES) -> bytes:
    if name not in opened.members:
        raise DataLoss("BAD_MEMBER", f"the bundle has no member {name}", member=name)
    return opened.content(name, most)


def _check_run(found: BundledRun, run_id: str) -> None:
    """Raises: `DataLoss` (`BAD_MEMBER`) for messages that no ledger holds, so that what follows need not look again."""
    run, plan = found.run, found.run.plan
    targets, auxiliaries = len(plan.targets), {target.id for target in (*plan.auxiliary_targets, *plan.targets)}

    def check(fine: bool, name: str, what: str) -> None:
        if not fine:
            member = files.run_file(run_id, name)
            raise DataLoss("BAD_MEMBER", f"{member}: {what}", member=member)

    check(run.id == run_id, files.RUN, f"it is of run {run.id[:64]!r}")
    check([case.index for case in found.cases] == list(range(len(found.cases))), files.CASES, "cases are not in order")
    check(len(found.cases) == plan.case_count, files.CASES, f"it has {len(found.cases)} cases of {plan.case_count}")
    planned = all(0 <= at < targets for case in found.cases for at in case.target_indexes)
    check(planned, files.CASES, "a case names a target that the plan does not have")
    check([call.sequence for call in found.calls] == list(range(1, len(found.calls) + 1)), files.CALLS, "calls are missing")
    for call in found.calls:
        sent = call.dispatch
        fits = 0 <= sent.case_index < len(found.cases) and 0 <= sent.target_index < targets
        known = not sent.auxiliary_target_id or sent.auxiliary_target_id in auxiliaries
        check(fits and known, files.CALLS, f"{call.id[:64]} is of no cell of the plan")
    numbers = sorted(row.sequence for row in found.outcomes if row.sequence)
    check(numbers == list(range(1, len(numbers) + 1)), files.OUTCOMES, "outcomes are missing")
    for row in found.outcomes:
        fits = 0 <= row.outcome.case_index < len(found.cases) and 0 <= row.outcome.target_index < targets
        check(fits, files.OUTCOMES, f"the outcome of cell {row.outcome.cell} is of no cell of the plan")


def corrections_in_force(bundled: BundledRun) -> dict[str, comparison_pb2.CallCorrection]:
    """By call, what the latest correction says of it: where it, or one before it, changed the receipt's figures."""
    found: dict[str, comparison_pb2.CallCorrection] = {}
    for correction in bundled.corrections:
        for entry in correction.calls:
            if entry.verified and (entry.corrected or entry.call_id in found):
                found[entry.call_id] = entry
    return found


def read_comparison(opened: Opened) -> Json:
    """The comparison of the runs; `None` when the bundle has none. Raises: `DataLoss` (`BAD_MEMBER`)."""
    if files.COMPARISON not in opened.members:
        return None
    return files.read_json(_content(opened, files.COMPARISON), files.COMPARISON)


def _answers(data: bytes, name: str) -> dict[int, Json]:
    answers: dict[int, Json] = {}
    for line in data.splitlines():
        row = files.read_json(line, name)
        index = row.get("index") if isinstance(row, dict) else None
        if not isinstance(row, dict) or not isinstance(index, int):
            raise DataLoss("BAD_MEMBER", f"{name} holds a line that is no case", member=name)
        answers[index] = row.get("case")
    return answers


def _ids(value: Json) -> list[str] | None:
    if not isinstance(value, list):
        return None
    return [item for item in value if isinstance(item, str)] if all(isinstance(item, str) for item in value) else None


def referenced(runs: Mapping[str, BundledRun]) -> dict[str, list[str]]:
    """The digests of all evidence that receipts name, each with the ids of its calls."""
    found: dict[str, list[str]] = {}
    for bundled in runs.values():
        for call in bundled.calls:
            for receipt in (call.receipt, *call.receipts_apart):
                if receipt.evidence_sha256:
                    found.setdefault(receipt.evidence_sha256, []).append(call.id)
    return found
