"""Collecting a bundle: everything that is known of runs, through the front door, into one archive."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import comparison_pb2 as comparison_pb
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench.v1 import plan_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import recovery_service_pb2 as recovery_pb
from srbench_kit import bundle_files as files
from srbench_kit import views
from srbench_kit.archive import ArchiveWriter
from srbench_kit.bundles import FORMAT
from srbench_kit.canonical import digest
from srbench_kit.errors import Conflict, DataLoss, InvalidInput
from srbench_kit.values import Json

from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S, FrontDoor

ENDED = frozenset({"completed", "failed", "cancelled", "interrupted"})


@dataclass(slots=True)
class Bundler:
    """Writes runs into an archive; every evidence once.

    Attributes:
        answers: whole cases by their digest; those of split `dev` are written beside their run.
        answer_count: how many were.
        no_comparison: why the runs could not be compared; empty when they could, or when there is only one.
    """

    door: FrontDoor
    writer: ArchiveWriter
    program: str
    answers: dict[str, dict[str, Json]] = field(default_factory=dict)
    answer_count: int = 0
    no_comparison: str = ""

    def write(self, run_ids: Sequence[str]) -> None:
        """Writes the runs and all their recoveries.

        Raises: `NotFound` (`NO_SUCH_RUN`), `InvalidInput` (`NOT_LIVE`), `Conflict` (`RUN_NOT_OVER`, `CHANGED_MEANWHILE`),
        `DataLoss`.
        """
        lineages = {run_id: self._lineage(run_id) for run_id in dict.fromkeys(run_ids)}
        every = list(dict.fromkeys([*lineages, *(child for children in lineages.values() for child in children)]))
        for child in every:
            lineages.setdefault(child, self._lineage(child))
        document: Json = {
            "format": FORMAT,
            "program": self.program,
            "runs": list(dict.fromkeys(run_ids)),
            "recoveries": {run_id: list(lineages[run_id]) for run_id in every},
        }
        self.writer.add(files.BUNDLE, files.json_bytes(document))
        for run_id in every:
            self._write_run(run_id, merged=bool(lineages[run_id]))
        self._write_comparison(list(dict.fromkeys(run_ids)))

    def _lineage(self, run_id: str) -> list[str]:
        """The recoveries of a run, oldest first; all of them and the run itself must be over."""
        request = recovery_pb.GetLineageRequest(run_id=run_id)
        runs = self.door.call(self.door.recovery.GetLineage, request).runs
        for run in runs:
            if run.plan.mode != "live":
                # A preview has no calls, and a replay only copies of calls: nothing in them could be derived again.
                sentence = f"run {run.id} is a {run.plan.mode}; only live runs have streams of their own to bundle"
                raise InvalidInput("NOT_LIVE", sentence, run_id=run.id)
            if run.status not in ENDED:
                raise Conflict("RUN_NOT_OVER", f"run {run.id} is {run.status}; only runs that are over are bundled")
        return [run.id for run in runs[1:]]

    def _write_run(self, run_id: str, *, merged: bool) -> None:
        door = self.door
        run = door.call(door.planner.GetRun, planner_pb.GetRunRequest(id=run_id), SLOW_CALL_TIMEOUT_S)
        _drop_cases(run)
        reports = self._reports(run_id, merged=merged)
        self._add(run_id, files.RUN, files.message_line(run))
        cases = list(self._cases(run.plan.plan_sha256))
        self._add(run_id, files.CASES, files.message_lines(cases))
        self._write_answers(run_id, cases)
        self._write_ledger(run_id)
        self._write_corrections(run_id)
        for name, shown in reports.items():
            self._add(run_id, name, files.json_bytes(shown))
        if self._reports(run_id, merged=merged) != reports:
            raise Conflict("CHANGED_MEANWHILE", f"the facts of run {run_id} changed while it was bundled; try again")

    def _write_comparison(self, run_ids: Sequence[str]) -> None:
        """The first run against all others; runs that cannot be compared are bundled all the same."""
        if len(run_ids) < 2:
            return
        request = comparison_pb.CompareRunsRequest(baseline_run_id=run_ids[0], candidate_run_ids=run_ids[1:], lineage=True)
        try:
            found = self.door.call(self.door.accounting.CompareRuns, request, SLOW_CALL_TIMEOUT_S)
        except (InvalidInput, Conflict) as error:
            self.no_comparison = error.message
            return
        self.writer.add(files.COMPARISON, files.json_bytes(views.deep(found)))

    def _write_corrections(self, run_id: str) -> None:
        request = comparison_pb.ListCorrectionsRequest(run_id=run_id, calls=True)
        found = self.door.call(self.door.accounting.ListCorrections, request, SLOW_CALL_TIMEOUT_S).corrections
        if found:
            self._add(run_id, files.CORRECTIONS, files.message_lines(found))

    def _add(self, run_id: str, name: str, content: bytes) -> None:
        self.writer.add(files.run_file(run_id, name), content)

    def _reports(self, run_id: str, *, merged: bool) -> dict[str, Json]:
        shown: dict[str, Json] = {}
        for name, lineage in ((files.REPORT, False), (files.MERGED, True))[: 1 + merged]:
            request = accounting_pb.GetReportRequest(run_id=run_id, lineage=lineage)
            found = self.door.call(self.door.accounting.GetReport, request, SLOW_CALL_TIMEOUT_S)
            # Audits are no part of a bundle, which holds nothing that could not be derived from it again.
            found.ClearField("judging")
            shown[name] = views.report(found)
        return shown

    def _cases(self, plan_sha256: str) -> Iterator[plan_pb2.PlanCase]:
        request = planner_pb.StreamPlanCasesRequest(plan_sha256=plan_sha256, digests=True)
        for part in self.door.stream(self.door.planner.StreamPlanCases, request):
            yield from part.cases

    def _write_answers(self, run_id: str, cases: Sequence[plan_pb2.PlanCase]) -> None:
        rows: list[Json] = [
            {"index": case.index, "case": self.answers[case.sha256]}
            for case in cases
            if case.split == "dev" and case.sha256 in self.answers
        ]
        self.answer_count += len(rows)
        if rows:
            self._add(run_id, files.ANSWERS, b"".join(files.json_bytes(row) for row in rows))

    def _write_ledger(self, run_id: str) -> None:
        calls, outcomes, evidence = bytearray(), bytearray(), _Evidence()
        request = ledger_pb.StreamLedgerRequest(run_id=run_id, evidence=True)
        for part in self.door.stream(self.door.ledger.StreamLedger, request):
            calls += files.message_lines(part.calls)
            outcomes += files.message_lines(part.outcomes)
            for piece in part.evidence:
                whole = evidence.take(piece)
                name = files.evidence_file(piece.sha256)
                if whole is not None and name not in self.writer.written:
                    self.writer.add(name, whole)
        self._add(run_id, files.CALLS, bytes(calls))
        self._add(run_id, files.OUTCOMES, bytes(outcomes))


class _Evidence:
    """Puts evidence together of its parts, which follow each other."""

    def __init__(self) -> None:
        self._held = bytearray()

    def take(self, piece: ledger_pb.LedgerEvidence) -> bytes | None:
        """The whole evidence when `piece` is its last part. Raises: `DataLoss` (`EVIDENCE_DAMAGED`)."""
        if piece.offset == 0:
            self._held.clear()
        self._held += piece.data
        if len(self._held) < piece.byte_count:
            return None
        if hashlib.sha256(self._held).hexdigest() != piece.sha256:
            raise DataLoss("EVIDENCE_DAMAGED", f"the evidence {piece.sha256} came with another digest")
        return bytes(self._held)


def _drop_cases(run: planner_pb.Run) -> None:
    """Takes the cases' texts out of a run: they may be a holdout's, and their digests stand in a file of their own."""
    members = run.plan.manifest.object_value.members
    kept = [member for member in members if member.key != "cases"]
    if len(kept) < len(members):
        copies = [type(member).FromString(member.SerializeToString()) for member in kept]
        del members[:]
        members.extend(copies)


def answers_by_digest(rows: Json, name: str) -> dict[str, dict[str, Json]]:
    """Whole cases, as a dataset's `cases.jsonl` holds them, by their digest. Raises: `InvalidInput` (`BAD_ANSWERS`)."""
    found = rows if isinstance(rows, list) else [rows]
    answers: dict[str, dict[str, Json]] = {}
    for index, row in enumerate(found):
        if not isinstance(row, dict) or "id" not in row or "benchmark" not in row:
            raise InvalidInput("BAD_ANSWERS", f"line {index + 1} of {name} is no case; expected a dataset's cases.jsonl")
        answers[digest(row)] = row
    return answers
