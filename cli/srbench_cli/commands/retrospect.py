"""`regrade`, `export` and `reconcile-usage`: what is done with a finished run. No model is called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from srbench.v1 import comparison_pb2 as pb
from srbench_kit import exports, views

from srbench_cli import printing
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--output", type=click.Path(path_type=Path), required=True, help="New file for the grades as JSON.")
@shared_options
@pass_session
def regrade(session: Session, run_id: str, output: Path) -> None:
    """Has the installed graders judge the run's saved answers again. The run stays as it is."""
    from srbench_cli import comparison_table

    printing.check_new_file(output)
    request = pb.RegradeRunRequest(run_id=run_id)
    found = session.door.call(session.door.accounting.RegradeRun, request, SLOW_CALL_TIMEOUT_S)
    shown = views.deep(found)
    printing.write_json(output, shown)
    printing.show(shown, lambda: comparison_table.regrading(found), as_json=session.as_json)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--output", type=click.Path(path_type=Path), required=True, help="New file.")
@click.option(
    "--format", "chosen", type=click.Choice(exports.FORMATS), help="The file's format.  [default: by its suffix, else json]"
)
@shared_options
@pass_session
def export(session: Session, run_id: str, output: Path, chosen: str | None) -> None:
    """Exports a run over development cases with all answers, for training a router. Holds the reference answers."""
    printing.check_new_file(output)
    form = chosen or ("parquet" if output.suffix == ".parquet" else "json")
    parts = session.door.stream(session.door.accounting.ExportRun, pb.ExportRunRequest(run_id=run_id))
    head, counted = pb.ExportHeader(), _Counted()
    data = (
        _parquet(counted.of(parts, head)) if form == "parquet" else b"".join(exports.json_chunks(counted.of(parts, head)))
    )
    printing.write_new_file(output, data)
    printing.notice(f"wrote {output}")
    shown = {**views.plain(head), "format": form, "output": str(output), "answer_count": counted.answers}
    printing.show(shown, lambda: _export_table(head, counted.answers), as_json=session.as_json)


class _Counted:
    """Counts what passes by."""

    def __init__(self) -> None:
        self.answers = 0

    def of(self, parts: Iterator[pb.ExportPart], head: pb.ExportHeader) -> Iterator[pb.ExportPart]:
        """The parts; their header is written into `head`."""
        for part in parts:
            if part.HasField("header"):
                head.CopyFrom(part.header)
            self.answers += len(part.case.targets)
            yield part


def _parquet(parts: Iterator[pb.ExportPart]) -> bytes:
    # The refusal of a run comes before the first part; nobody waits for the import then.
    first = next(parts)
    writer = exports.ParquetWriter()
    writer.add(first)
    for part in parts:
        writer.add(part)
    return writer.end()


def _export_table(head: pb.ExportHeader, answers: int) -> RenderableType:
    from srbench_cli.tables import pairs

    rows = [("run", head.source_run_id), ("split", head.split), ("cases", head.case_count), ("answers", answers)]
    return pairs(rows)


@click.command("reconcile-usage")
@click.argument("run_id", metavar="RUN")
@shared_options
@pass_session
def reconcile_usage(session: Session, run_id: str) -> None:
    """Reads usage and cost again from the run's retained streams, and keeps what differs beside the receipts."""
    from srbench_cli import comparison_table

    request = pb.ReconcileUsageRequest(run_id=run_id)
    found = session.door.call(session.door.accounting.ReconcileUsage, request, SLOW_CALL_TIMEOUT_S)
    printing.show(views.deep(found), lambda: comparison_table.correction(found), as_json=session.as_json)
