"""Tasks that are folders, as Terminal-Bench has them: a TOML file, an instruction, and files that no case holds."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from srbench_kit.canonical import digest
from srbench_kit.values import Json

from srbench_planner.benchmark import Row
from srbench_planner.files import MAX_ROW_BYTES, MAX_ROWS, open_regular, sha256_of, too_many_rows

TASK_FILE, INSTRUCTION = "task.toml", "instruction.md"


def read_task_folders(files: Iterable[tuple[str, Path]]) -> Iterator[Row]:
    """A row a folder: `id` (its name), `task` (what its TOML file says), `instruction`, `tree_sha256`.

    Nothing else of the folder enters a row: tests and solutions stay where they are, named by the digest of the whole tree.
    """
    for position, (name, group) in enumerate(groupby(files, key=lambda file: file[0].partition("/")[0])):
        if position >= MAX_ROWS:
            raise too_many_rows("the folder")
        inside = {path.partition("/")[2]: found for path, found in group}
        try:
            values: dict[str, Json] = {
                "id": name,
                "task": _toml(inside[TASK_FILE]),
                "instruction": _text(inside[INSTRUCTION]),
                "tree_sha256": digest({path: sha256_of(found) for path, found in inside.items()}),
            }
        except KeyError:
            yield Row(position=position, where=name, problem=f"it has no {INSTRUCTION}")
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError) as error:
            yield Row(position=position, where=name, problem=f"its {TASK_FILE} or {INSTRUCTION} cannot be read: {error}")
        else:
            yield Row(position=position, where=name, values=values)


def _text(path: Path) -> str:
    with open_regular(path, MAX_ROW_BYTES) as file:
        return file.read().decode("utf-8")


def _toml(path: Path) -> Json:
    """What a TOML file says; dates have no place in JSON and are refused."""
    found: Json = json.loads(json.dumps(tomllib.loads(_text(path))))
    return found
