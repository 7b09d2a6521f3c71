"""`agreement`: how far the two judges of a run agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import click
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.errors import Conflict
from srbench_kit.values import Json, object_of

from srbench_cli import printing, tables
from srbench_cli.agreement import agreement as measured
from srbench_cli.context import Session, pass_session, shared_options

PAGE = 500


@click.command()
@click.argument("run_id", metavar="RUN")
@shared_options
@pass_session
def agreement(session: Session, run_id: str) -> None:
    """Shows Cohen's kappa of a run's two judges, by benchmark."""
    by_benchmark: dict[str, list[dict[str, Json]]] = defaultdict(list)
    for outcome in _outcomes(session, run_id):
        by_benchmark[outcome.benchmark].append(object_of(outcome.details))
    found = {name: measured(details) for name, details in sorted(by_benchmark.items())}
    found = {name: figures for name, figures in found.items() if figures.pairs or figures.unpaired}
    if not found:
        raise Conflict("NO_SECOND_JUDGE", f"no answer of {run_id} was judged twice; name a second_judge in the options")
    columns = ("benchmark", "pairs", "unpaired", "observed", "kappa")
    rows = [(name, each.pairs, each.unpaired, each.observed, each.kappa) for name, each in found.items()]
    shown: Json = {"run_id": run_id, "benchmarks": [dict(zip(columns, row, strict=True)) for row in rows]}
    printing.show(shown, lambda: tables.table(columns, [_texts(row) for row in rows]), as_json=session.as_json)


def _outcomes(session: Session, run_id: str) -> Iterator[pb.Outcome]:
    request = pb.ListOutcomesRequest(run_id=run_id, page_size=PAGE)
    while True:
        page = session.door.call(session.door.accounting.ListOutcomes, request)
        yield from page.results
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _texts(row: tuple[str, int, int, float | None, float | None]) -> tuple[str, ...]:
    name, pairs, unpaired, observed, kappa = row
    figures = ["unknown" if value is None else f"{value:.3f}" for value in (observed, kappa)]
    return (name, str(pairs), str(unpaired), *figures)
