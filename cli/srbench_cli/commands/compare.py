"""`compare`, `pairs` and `comparison-options`: a router's run against the strongest single model of another."""

from __future__ import annotations

from pathlib import Path

import click
from srbench.v1 import comparison_pb2 as pb
from srbench_kit import views

from srbench_cli import printing
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S

# The comparison says no.
EXIT_NO = 1
OUTCOMES = ("win", "loss", "tie", "both_right", "both_wrong")
SORTS = ("case", "outcome", "cost_delta", "latency_delta")


@click.command()
@click.argument("baseline", metavar="BASELINE")
@click.argument("candidates", metavar="CANDIDATE...", nargs=-1, required=True)
@click.option(
    "--margin",
    type=float,
    help="Largest loss of quality that counts as none, such as 0.02; exploratory. Claims stand in the plan.",
)
@click.option("--require-gain", is_flag=True, help="Exit with 1 unless every candidate is better.")
@click.option("--figures-only", is_flag=True, help="Leave out the null routers and the regret.")
@click.option("--lineage", is_flag=True, help="Merge each run with its recoveries; the comparison says so.")
@click.option("--output", type=click.Path(path_type=Path), help="New file for the comparison as JSON.")
@shared_options
@pass_session
def compare(
    session: Session,
    baseline: str,
    candidates: tuple[str, ...],
    margin: float | None,
    require_gain: bool,
    figures_only: bool,
    lineage: bool,
    output: Path | None,
) -> None:
    """Compares every target of the CANDIDATE runs with the strongest single model of the BASELINE run.

    Exits with 1 when a candidate is worse, when a claim of a plan is not supported; with --margin also when it is not shown
    to lose less than that; with --require-gain also when it is not better.
    """
    from srbench_cli import comparison_table

    printing.check_new_file(output)
    request = pb.CompareRunsRequest(
        baseline_run_id=baseline,
        candidate_run_ids=candidates,
        margin=margin,
        figures_only=figures_only,
        lineage=lineage,
    )
    found = session.door.call(session.door.accounting.CompareRuns, request, SLOW_CALL_TIMEOUT_S)
    shown = views.deep(found)
    printing.write_json(output, shown)
    printing.show(shown, lambda: comparison_table.comparison(found), as_json=session.as_json)
    objections = [text for one in found.comparisons for text in no_to(one, require_gain=require_gain)]
    for text in objections:
        printing.print_error("COMPARISON_SAYS_NO", text)
    if objections:
        raise click.exceptions.Exit(EXIT_NO)


def no_to(made: pb.Comparison, *, require_gain: bool) -> list[str]:
    """Why a comparison says no, in sentences; empty when it does not."""
    found = []
    if made.verdict == "worse" or (require_gain and made.verdict != "better"):
        found.append(made.verdict_sentence)
    margins = [*made.claims, *([made.non_inferiority] if made.HasField("non_inferiority") else [])]
    return found + [one.sentence for one in margins if one.verdict != "supported"]


@click.command()
@click.argument("baseline", metavar="BASELINE")
@click.argument("candidate", metavar="CANDIDATE")
@click.option("--baseline-target", default="", help="A target of the baseline.  [default: the strongest single model]")
@click.option("--candidate-target", default="", help="A target of the candidate; needed when it has several.")
@click.option("--outcome", type=click.Choice(OUTCOMES), help="Only these questions.")
@click.option("--benchmark", default="", help="Only this benchmark.")
@click.option("--sort", type=click.Choice(SORTS), default="case", show_default=True, help="The order.")
@click.option("--descending", is_flag=True, help="The other way round.")
@click.option("--texts", is_flag=True, help="With the final texts; JSON only.")
@click.option("--after", default="", help="Where the page begins: what the page before called next.")
@click.option("--limit", type=click.IntRange(1, 200), default=25, show_default=True, help="Questions a page.")
@shared_options
@pass_session
def pairs(
    session: Session,
    baseline: str,
    candidate: str,
    baseline_target: str,
    candidate_target: str,
    outcome: str | None,
    benchmark: str,
    sort: str,
    descending: bool,
    texts: bool,
    after: str,
    limit: int,
) -> None:
    """Lists the questions of a comparison, each with both answers."""
    from srbench_cli import comparison_table

    request = pb.ComparePairsRequest(
        baseline_run_id=baseline,
        candidate_run_id=candidate,
        baseline_target_id=baseline_target,
        candidate_target_id=candidate_target,
        outcome=outcome or "",
        benchmark=benchmark,
        sort=sort,
        descending=descending,
        texts=texts,
        page_token=after,
        page_size=limit,
    )
    found = session.door.call(session.door.accounting.ComparePairs, request, SLOW_CALL_TIMEOUT_S)
    shown = views.deep(found)
    shown.pop("next_page_token")
    shown |= {"limit": limit, "next_cursor": found.next_page_token or None, "model_requests": 0}
    printing.show(shown, lambda: comparison_table.pair_page(found), as_json=session.as_json)
    if found.next_page_token:
        printing.notice(f"more with --after {found.next_page_token}")


@click.command("comparison-options")
@click.argument("baseline", metavar="[BASELINE]", default="")
@click.option("--after", default="", help="Where the page begins: what the page before called next.")
@click.option("--limit", type=click.IntRange(1, 25), default=10, show_default=True, help="Runs a page.")
@shared_options
@pass_session
def comparison_options(session: Session, baseline: str, after: str, limit: int) -> None:
    """Lists runs that can be compared with BASELINE, and why the others cannot; without it, runs that can be one."""
    from srbench_cli import comparison_table

    # Released clients begin with 0.
    token = "" if after == "0" else after
    request = pb.ListComparisonOptionsRequest(baseline_run_id=baseline, page_size=limit, page_token=token)
    found = session.door.call(session.door.accounting.ListComparisonOptions, request, SLOW_CALL_TIMEOUT_S)
    shown = views.deep(found)
    shown.pop("next_page_token")
    shown["next_cursor"] = found.next_page_token or None
    printing.show(shown, lambda: comparison_table.options(found), as_json=session.as_json)
    if found.next_page_token:
        printing.notice(f"more with --after {found.next_page_token}")
