"""`agreement` and `audit`: how well a run's judges judge, by a second judge and by people."""

from __future__ import annotations

import csv
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path

import click
from srbench.v1 import accounting_service_pb2 as facts
from srbench.v1 import judging_pb2 as pb
from srbench.v1 import planner_service_pb2 as planner
from srbench_kit import views
from srbench_kit.documents import decode_utf8
from srbench_kit.errors import Conflict, InvalidInput
from srbench_kit.given_files import read_given
from srbench_kit.spreadsheets import plain, read_back
from srbench_kit.values import from_value, object_of

from srbench_cli import judging_table, printing
from srbench_cli.context import ANY_INT, Session, pass_session, shared_options
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S

PAGE = 500
COLUMNS = ("case_id", "target_id", "question", "answer", "correct")
_YES, _NO = ("true", "yes", "1", "right", "correct"), ("false", "no", "0", "wrong", "incorrect")


@click.command()
@click.argument("run_id", metavar="RUN")
@shared_options
@pass_session
def agreement(session: Session, run_id: str) -> None:
    """Shows Cohen's kappa of a run's two judges, and accuracies corrected by an audit."""
    request = pb.GetJudgingRequest(run_id=run_id)
    found = session.door.call(session.door.accounting.GetJudging, request, SLOW_CALL_TIMEOUT_S)
    if not found.agreements and not found.audited:
        raise Conflict(
            "NO_SECOND_JUDGE",
            f"no answer of {run_id} was judged twice or audited; name a second_judge in the options, or use sr-bench audit",
        )
    printing.show(views.deep(found), lambda: judging_table.judging(found), as_json=session.as_json)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--sample", type=click.IntRange(2, 5000), help="Draw so many graded answers of each benchmark and target.")
@click.option("--seed", type=ANY_INT, default=20260918, show_default=True, help="Which sample.")
@click.option("--output", type=click.Path(path_type=Path), help="New CSV file for the sample.")
@click.option("--labels", type=click.Path(path_type=Path), help="The CSV file, filled in.")
@click.option("--auditor", default="", help="Who labelled it.")
@shared_options
@pass_session
def audit(
    session: Session, run_id: str, sample: int | None, seed: int, output: Path | None, labels: Path | None, auditor: str
) -> None:
    """Draws a random sample of judged answers for people, or imports what they say of it.

    The sample does not show the judge's verdict. Fill in the column `correct` with true or false.
    """
    if (sample is None) == (labels is None) or (sample is not None and output is None):
        raise InvalidInput("BAD_OPTION", "give either --sample with --output, or --labels with --auditor")
    if labels is not None:
        request = pb.ImportAuditRequest(run_id=run_id, auditor=auditor, labels=read_labels(labels))
        found = session.door.call(session.door.accounting.ImportAudit, request, SLOW_CALL_TIMEOUT_S)
        printing.show(views.deep(found), lambda: judging_table.judging(found), as_json=session.as_json)
        return
    assert sample is not None
    assert output is not None
    printing.check_new_file(output)
    chosen = drawn(_judged(session, run_id), sample, seed)
    if not chosen:
        raise Conflict("NOT_JUDGED", f"no answer of {run_id} was graded by a judge")
    _write(session, run_id, chosen, output)
    printing.notice(f"{len(chosen)} answers are in {output}; fill in the column correct, then use --labels {output}")


def drawn(outcomes: Sequence[facts.Outcome], sample: int, seed: int) -> list[facts.Outcome]:
    """`sample` outcomes of each benchmark and target, in an order that depends on the seed and their names alone."""
    groups: dict[tuple[str, str], list[facts.Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.benchmark, outcome.target_id].append(outcome)

    def place(outcome: facts.Outcome) -> bytes:
        return hashlib.sha256(f"{seed}\n{outcome.case_id}\n{outcome.target_id}".encode()).digest()

    return [outcome for _, group in sorted(groups.items()) for outcome in sorted(group, key=place)[:sample]]


def read_labels(path: Path) -> list[pb.AuditLabel]:
    """The labels in a CSV file.

    Raises: `InvalidInput` (`NO_SUCH_FILE`, `NOT_A_FILE`, `BAD_ENCODING`, `MISSING_COLUMN`, `BAD_LABEL`).
    """
    text = decode_utf8(read_given(path), str(path))
    # Questions may be longer than what the module takes for a field.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.DictReader(StringIO(text, newline=""), restval="")
    missing = {"case_id", "target_id", "correct"} - set(reader.fieldnames or ())
    if missing:
        raise InvalidInput("MISSING_COLUMN", f"{path} has no column {', '.join(sorted(missing))}", field=min(missing))
    return [_label(row, f"line {reader.line_num} of {path}") for row in reader]


def _label(row: dict[str, str], where: str) -> pb.AuditLabel:
    said = row["correct"].strip().lower()
    if said not in (*_YES, *_NO):
        raise InvalidInput("BAD_LABEL", f"{where}: correct is {said!r}; expected true or false", field="correct")
    names = {field: read_back(row[field]) for field in ("case_id", "target_id")}
    return pb.AuditLabel(**names, correct=said in _YES)


def _judged(session: Session, run_id: str) -> list[facts.Outcome]:
    """The outcomes that a judge graded."""
    return [
        outcome
        for outcome in _outcomes(session, run_id)
        if outcome.HasField("correct") and "verdict" in object_of(outcome.details)
    ]


def _outcomes(session: Session, run_id: str) -> Iterator[facts.Outcome]:
    request = facts.ListOutcomesRequest(run_id=run_id, page_size=PAGE)
    while True:
        page = session.door.call(session.door.accounting.ListOutcomes, request)
        yield from page.results
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _write(session: Session, run_id: str, chosen: Sequence[facts.Outcome], output: Path) -> None:
    text = StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for outcome in chosen:
        asked = planner.GetRunCaseRequest(run_id=run_id, case_id=outcome.case_id)
        case = session.door.call(session.door.planner.GetRunCase, asked)
        answer = from_value(outcome.answer)
        texts = (outcome.case_id, outcome.target_id, case.question, "" if answer is None else str(answer), "")
        writer.writerow([plain(cell) for cell in texts])
    printing.write_new_file(output, text.getvalue().encode())
