"""`plan`: check a manifest and freeze it, without calling any model."""

from __future__ import annotations

from pathlib import Path

import click
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import power_pb2
from srbench_kit import views
from srbench_kit.errors import InvalidInput
from srbench_kit.values import to_value

from srbench_cli import manifests, printing, tables
from srbench_cli.context import ANY_INT, Session, pass_session, shared_options
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S


@click.command()
@click.option("--manifest", required=True, help="Manifest file (.json, .yaml, .yml, .jsonl); - reads stdin.")
@click.option("--output", type=click.Path(path_type=Path), help="New file for the frozen manifest; `run` takes it.")
@click.option("--power", is_flag=True, help="Say what it could show and would cost, by profile, instead of freezing it.")
@click.option(
    "--discordance", type=float, help="With --power: share of the cases on which two targets disagree.  [default: 0.15]"
)
@click.option("--chance", type=float, help="With --power: chance to establish the detectable difference.  [default: 0.8]")
@click.option(
    "--answer-tokens", type=ANY_INT, help="With --power: output tokens of a typical answer.  [default: a tenth of the cap]"
)
@shared_options
@pass_session
def plan(
    session: Session,
    manifest: str,
    output: Path | None,
    power: bool,
    discordance: float | None,
    chance: float | None,
    answer_tokens: int | None,
) -> None:
    """Checks a manifest and freezes it."""
    printing.check_new_file(output)
    document = manifests.read_manifest(manifest, Path.cwd())
    if power:
        asked = power_pb2.EstimatePowerRequest(discordance=discordance, power=chance, expected_output_tokens=answer_tokens)
        asked.manifest.CopyFrom(to_value(document))
        _power(session, asked, output)
        return
    if (discordance, chance, answer_tokens) != (None, None, None):
        raise InvalidInput("NEEDS_POWER", "--discordance, --chance and --answer-tokens need --power")
    request = pb.FreezePlanRequest(manifest=to_value(document))
    found = session.door.call(session.door.planner.FreezePlan, request, SLOW_CALL_TIMEOUT_S)
    shown = views.plan_checked(found)
    printing.write_json(output, shown["manifest"])
    printing.show(shown, lambda: tables.plan(found), as_json=session.as_json)


def _power(session: Session, request: power_pb2.EstimatePowerRequest, output: Path | None) -> None:
    from srbench_cli import comparison_table

    found = session.door.call(session.door.planner.EstimatePower, request, SLOW_CALL_TIMEOUT_S)
    shown = views.deep(found)
    printing.write_json(output, shown)
    printing.show(shown, lambda: comparison_table.power(found), as_json=session.as_json)
