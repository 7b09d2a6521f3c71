"""Every number of a bundle derived again: calls from raw streams, reports from calls; and what rests on the record."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench.v1 import report_pb2
from srbench_kit import bundle_files as files
from srbench_kit import views
from srbench_kit.bundles import Opened
from srbench_kit.completion import Completion
from srbench_kit.errors import Conflict, DataLoss, InvalidInput
from srbench_kit.values import Json

from srbench_accounting import answers, comparison_convert, corrections
from srbench_accounting.bundle_reading import (
    BundledRun,
    Index,
    corrections_in_force,
    read_comparison,
    read_evidence,
    read_index,
    read_run,
    referenced,
    run_members,
)
from srbench_accounting.compare import RunFigures
from srbench_accounting.comparing import compare_all
from srbench_accounting.derived import Derived, LoadedRun, TargetDeriving
from srbench_accounting.deriving import CoreDeriving
from srbench_accounting.ledger_columns import DerivedCall, call_columns, outcome_columns
from srbench_accounting.rederive import (
    Difference,
    corrected_values,
    derived_values,
    receipt_from,
    receipt_values,
    reserved_value,
    settlement_values,
)
from srbench_accounting.regrade_bundle import all_made_again, regrade
from srbench_accounting.run_job import derive
from srbench_accounting.settled import derive_settlement

RAW_AND_ANSWERS = "raw streams and answers"
RAW, GRADES, CLOCKS, RECORD = "raw streams", "recorded grades", "recorded clocks", "recorded plan and outcomes"
# Fields of a report whose numbers follow from grades, and from clocks; all money and tokens follow from raw streams.
_GRADED = frozenset(
    {"scored", "correct", "accuracy", "accuracy_ci95", "macro_accuracy", "sr_bench_score"}
    | {"switched_accuracy", "unswitched_accuracy", "checked_cases", "failed_cases", "unassessed_cases"}
)
_STREAMED = frozenset(
    {"call_count", "request_count", "selected_models", "decisions", "finish_reasons", "unknown_finish_reason"}
    | {"input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "prompt_tokens", "cost_complete"}
    | {"reported_calls", "unreported_calls", "cache_read_rate", "model_switches", "switched_tasks", "unswitched_tasks"}
)
# What a call without evidence says.
NOTHING = answers.read(pb.Evidence())
# Two machines may round the last bit of a float differently; nothing else.
_TOLERANCE = 1e-12


@dataclass(slots=True)
class RunResult:
    """One run derived again.

    Attributes:
        call_numbers: how many values of each name were compared over all calls, and how many are equal.
        differing: values of calls that differ.
        reports: every value of every report.
        unread: why nothing was derived; empty when it was.
    """

    run_id: str
    call_numbers: dict[str, list[int]] = field(default_factory=dict)
    differing: list[dict[str, Json]] = field(default_factory=list)
    reports: list[dict[str, Json]] = field(default_factory=list)
    call_count: int = 0
    streams: int = 0
    grades: dict[str, Json] = field(default_factory=dict)
    unread: str = ""

    @property
    def equal(self) -> bool:
        """Whether every value is equal."""
        regraded = not self.grades.get("differing")
        return not self.unread and not self.differing and regraded and all(row["equal"] for row in self.reports)

    def to_json(self) -> dict[str, Json]:
        """As the verifier prints it."""
        report_equal = sum(bool(row["equal"]) for row in self.reports)
        calls: dict[str, Json] = {
            name: {"compared": compared, "equal": equal} for name, (compared, equal) in sorted(self.call_numbers.items())
        }
        rests = Counter(str(row["rests_on"]) for row in self.reports)
        return {
            "run_id": self.run_id,
            "equal": self.equal,
            "unread": self.unread or None,
            "call_count": self.call_count,
            "streams_read": self.streams,
            "call_values": calls,
            "differing_call_values": list(self.differing),
            "report_values_compared": len(self.reports),
            "report_values_equal": report_equal,
            "report_values_rest_on": {name: rests[name] for name in sorted(rests)},
            "report_values": list(self.reports),
            "grades": self.grades or None,
        }


class Verification:
    """Derives the runs of an opened bundle again."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._core = CoreDeriving()
        self.results: dict[str, RunResult] = {}
        self.texts: dict[str, dict[int, str]] = {}
        self.runs: dict[str, BundledRun] = {}
        self.comparison: list[dict[str, Json]] = []

    def run(self) -> None:
        """Derives everything; what cannot be read becomes a problem of the bundle, naming the member."""
        try:
            index = read_index(self._opened)
        except DataLoss as error:
            self._problem(error)
            return
        self._check_names(index)
        for run_id in index.recoveries:
            self.results[run_id] = RunResult(run_id)
            self._read(run_id)
        self._check_evidence()
        loaded = {run_id: found for run_id in self.runs if (found := self._calls(run_id)) is not None}
        for run_id in loaded:
            self._grades(run_id)
        for run_id in loaded:
            self._reports(run_id, index.recoveries[run_id], loaded)
        self._comparison(index, loaded)

    def _problem(self, error: DataLoss) -> None:
        self._opened.problems.append((error.facts.get("member", "the archive"), error.message))

    def _read(self, run_id: str) -> None:
        broken = self._opened.damaged & {*run_members(self._opened, run_id), "the archive"}
        if broken:
            self.results[run_id].unread = f"not derived, because {', '.join(sorted(broken))} is damaged"
            return
        try:
            self.runs[run_id] = read_run(self._opened, run_id)
        except DataLoss as error:
            self._problem(error)
            self.results[run_id].unread = error.message

    def _check_names(self, index: Index) -> None:
        known = {files.BUNDLE, files.COMPARISON} | {
            files.run_file(run, name) for run in index.recoveries for name in files.RUN_FILES
        }
        for name in self._opened.members:
            if name not in known and not name.startswith("evidence/"):
                self._opened.problems.append((name, "no bundle has such a member"))

    def _check_evidence(self) -> None:
        """Every evidence is named by a receipt, and every one that is named is there."""
        if len(self.runs) < len(self.results):
            return
        named = {files.evidence_file(sha256): calls for sha256, calls in referenced(self.runs).items()}
        for name in self._opened.members:
            if name.startswith("evidence/") and name not in named:
                self._opened.problems.append((name, "no receipt names it"))
        for name, calls in named.items():
            if name not in self._opened.members:
                self._opened.problems.append((name, f"it is missing; it is the evidence of {', '.join(calls[:3])}"))

    def _calls(self, run_id: str) -> LoadedRun | None:
        """The run with the columns of its derived calls; `None` when evidence is damaged."""
        bundled, result = self.runs[run_id], self.results[run_id]
        result.call_count = len(bundled.calls)
        calls = _RunCalls(self._opened, self._core, bundled, result)
        try:
            rows = [calls.derive(call) for call in bundled.calls]
        except DataLoss as error:
            self._problem(error)
            result.unread = error.message
            return None
        self.texts[run_id] = calls.texts
        eligible_s = bundled.run.create_time.seconds + bundled.run.create_time.nanos / 1e9
        return LoadedRun(bundled.run, outcome_columns(bundled.outcomes, eligible_s), call_columns(rows))

    def _grades(self, run_id: str) -> None:
        """Makes the grades again where the bundle holds the answers."""
        bundled = self.runs[run_id]
        if not bundled.answers:
            return
        try:
            self.results[run_id].grades = regrade(bundled, self.texts[run_id])
        except DataLoss as error:
            self._problem(error)

    def _reports(self, run_id: str, recoveries: list[str], loaded: Mapping[str, LoadedRun]) -> None:
        bundled, result, own = self.runs[run_id], self.results[run_id], loaded[run_id]
        children = [self.runs[child].run for child in recoveries if child in self.runs]
        if len(children) < len(recoveries):
            result.unread = "its report was not derived, because a recovery of it cannot be read"
            return
        correction = corrections.shown(bundled.corrections[-1] if bundled.corrections else None)
        made = self._core.report(
            own.run, bundled.cases, own.outcomes, own.calls, correction=correction, recoveries=children
        )
        self._compare(result, files.REPORT, bundled, made)
        if files.MERGED not in bundled.reports:
            return
        if not all(child in loaded for child in recoveries):
            result.unread = "its merged report was not derived, because a recovery of it cannot be read"
            return
        lineage = [own, *(loaded[child] for child in recoveries)]
        self._compare(result, files.MERGED, bundled, self._core.merged_report(lineage, bundled.cases))

    def _comparison(self, index: Index, loaded: Mapping[str, LoadedRun]) -> None:
        """The first run against all others, each with its recoveries."""
        if files.COMPARISON in self._opened.damaged:
            return
        try:
            recorded = read_comparison(self._opened)
        except DataLoss as error:
            self._problem(error)
            return
        every = {run for first in index.runs for run in (first, *index.recoveries[first])}
        if recorded is None or not every <= loaded.keys():
            return
        baseline, *candidates = [self._side(first, index.recoveries[first], loaded) for first in index.runs]
        try:
            made = comparison_convert.comparison(compare_all(baseline, candidates))
        except (InvalidInput, Conflict) as error:
            row: dict[str, Json] = {"name": "comparison", "recorded": "a comparison", "derived": f"none: {error.message}"}
            self.comparison = [row | {"equal": False, "rests_on": RECORD}]
            return
        sides = (baseline, *candidates)
        made.merged_run_ids.extend(side.report.facts.run_id for side in sides if side.report.facts.merged)
        self.comparison = compare_values("comparison", recorded, views.deep(made))

    def _side(self, run_id: str, recoveries: list[str], loaded: Mapping[str, LoadedRun]) -> RunFigures:
        own, cases = loaded[run_id], self.runs[run_id].cases
        if not recoveries:
            return self._core.figures(own.run, cases, own.outcomes, own.calls)
        return self._core.merged_figures([own, *(loaded[child] for child in recoveries)], cases)

    def _compare(self, result: RunResult, name: str, bundled: BundledRun, made: report_pb2.Report) -> None:
        prefix = name.removesuffix(".json")
        rows = compare_values(prefix, bundled.reports[name], views.report(made))
        if name == files.REPORT and all_made_again(result.grades):
            rows = [row | {"rests_on": RAW_AND_ANSWERS} if row["rests_on"] == GRADES else row for row in rows]
        result.reports += rows


class _RunCalls:
    """Derives the calls of one run again. `texts` collects the last final text of each cell's subject."""

    def __init__(self, opened: Opened, core: CoreDeriving, bundled: BundledRun, result: RunResult) -> None:
        plan = bundled.run.plan
        self._opened = opened
        self._result = result
        self._targets = [core.target(target) for target in plan.targets]
        every = (*plan.targets, *plan.auxiliary_targets)
        self._auxiliaries = {target.id: core.target(target) for target in every}
        self._priced = plan.cost_policy == "require_priced"
        self._corrections = corrections_in_force(bundled)
        self.texts: dict[int, str] = {}

    def derive(self, call: ledger_pb.LedgerCall) -> DerivedCall:
        """The call from its raw stream, every value of it compared. Raises: `DataLoss` (`BAD_MEMBER`)."""
        sent = call.dispatch
        auxiliary = sent.auxiliary_target_id
        target = self._auxiliaries[auxiliary] if auxiliary else self._targets[sent.target_index]
        self._note(call, [reserved_value(call, target, priced=self._priced)])
        for settlement in call.settlements:
            self._note(call, settlement_values(settlement, derive_settlement(target, settlement)))
        for late in call.receipts_apart:
            self._receipt(call, late, target, "apart.")
        if not call.HasField("receipt"):
            return DerivedCall(call, None, None)
        receipt, derived = self._receipt(call, call.receipt, target, "")
        return DerivedCall(call, receipt, derived)

    def _receipt(
        self, call: ledger_pb.LedgerCall, recorded: ledger_pb.LedgerReceipt, target: TargetDeriving, prefix: str
    ) -> tuple[Any, Derived]:
        receipt, completion = recorded.receipt, NOTHING
        if recorded.evidence_sha256:
            completion = answers.read(read_evidence(self._opened, recorded.evidence_sha256))
            receipt = receipt_from(recorded.receipt, completion)
            self._note(call, receipt_values(recorded.receipt, receipt, completion), prefix)
            self._result.streams += 1
            self._keep_text(call, completion, prefix)
        correction = self._corrections.get(call.id)
        if prefix or correction is None or correction.evidence_sha256 != recorded.evidence_sha256:
            derived = derive(target, receipt)
            self._note(call, derived_values(recorded, derived), prefix)
            return receipt, derived
        # A correction stands on the stream as it is, however the call ended.
        receipt.usage_final = completion.usage_final
        derived = derive(target, receipt)
        self._note(call, corrected_values(correction, derived))
        return receipt, derived

    def _keep_text(self, call: ledger_pb.LedgerCall, completion: Completion, prefix: str) -> None:
        if not prefix and not call.dispatch.auxiliary_target_id:
            self.texts[call.dispatch.key.cell] = completion.text

    def _note(self, call: ledger_pb.LedgerCall, values: Any, prefix: str = "") -> None:
        for value in values:
            assert isinstance(value, Difference)
            counts = self._result.call_numbers.setdefault(prefix + value.name, [0, 0])
            counts[0] += 1
            counts[1] += value.equal
            if not value.equal:
                self._result.differing.append(
                    {
                        "call_id": call.id,
                        "name": prefix + value.name,
                        "recorded": value.recorded,
                        "derived": value.derived,
                    }
                )


def compare_values(name: str, recorded: Json, derived: Json) -> list[dict[str, Json]]:
    """Every value of a document, by its path: as recorded, as derived again, equal or not, and what it rests on."""
    if isinstance(recorded, dict) and isinstance(derived, dict) and "sayings" not in recorded:
        # Recorded before sentences had codes; the sentences themselves are compared.
        derived = {key: value for key, value in derived.items() if key != "sayings"}
    first, second = dict(leaves(name, recorded)), dict(leaves(name, derived))
    missing = object()
    rows: list[dict[str, Json]] = []
    for path in first | second:
        mine, again = first.get(path, missing), second.get(path, missing)
        if mine is missing and again is None:
            # A field of later reports, of which the bundle has nothing to say.
            continue
        rows.append(
            {
                "name": path,
                "recorded": "(absent)" if mine is missing else mine,
                "derived": "(absent)" if again is missing else again,
                "equal": mine is not missing and again is not missing and same_value(mine, again),
                "rests_on": rests_on(path),
            }
        )
    return rows


def leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The plain values in a document, each with its path."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(f"{path}.{key}", item)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            named = item.get("id") if isinstance(item, dict) else None
            yield from leaves(f"{path}[{index}{':' + named if isinstance(named, str) else ''}]", item)
    else:
        yield path, value


def same_value(first: Any, second: Any) -> bool:
    """Whether two plain values are equal; floats may differ in their last bits."""
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=_TOLERANCE, abs_tol=0.0)
    return type(first) is type(second) and bool(first == second)


def rests_on(path: str) -> str:
    """What a report's value follows from."""
    names = [part.partition("[")[0] for part in path.split(".")]
    if _GRADED & set(names):
        return GRADES
    if any(name.endswith("_usd") for name in names) or _STREAMED & set(names):
        return RAW
    return CLOCKS if names[-1].endswith("_s") and "limits" not in names else RECORD
