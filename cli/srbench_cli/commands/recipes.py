"""`recipes`: the routers' configurations that were captured when a run started."""

from __future__ import annotations

from pathlib import Path

import click
from srbench.v1 import recipe_pb2 as pb
from srbench_kit import views
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_cli import loop_tables, printing
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.tables import cell
from srbench_cli.terminal import json_text


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--target", "target_id", help="Only this router's, with its document.")
@click.option("--output", type=click.Path(path_type=Path), help="With --target: new file for the recipe.")
@shared_options
@pass_session
def recipes(session: Session, run_id: str, target_id: str | None, output: Path | None) -> None:
    """Says whether the recipe of each router was captured; one that was not is never taken from another run."""
    door = session.door
    if target_id is None:
        if output is not None:
            raise InvalidInput("MISSING_OPTION", "--output needs --target")
        found = door.call(door.planner.ListRunRecipes, pb.ListRunRecipesRequest(run_id=run_id))
        rows: list[Json] = [views.run_recipe(item) for item in found.recipes]
        printing.show({"recipes": rows}, lambda: loop_tables.recipes(found.recipes), as_json=session.as_json)
        return
    printing.check_new_file(output)
    one = door.call(door.planner.GetRunRecipe, pb.GetRunRecipeRequest(run_id=run_id, target_id=target_id))
    shown = views.recipe(one)
    printing.write_json(output, shown)
    printing.show(shown, lambda: cell(json_text(shown)), as_json=session.as_json)
