"""What a machine has room for."""

from __future__ import annotations

from pathlib import Path

import pytest
from srbench_kit import machine
from srbench_kit.machine import GIB, harness_cells, memory_bytes


@pytest.mark.parametrize(
    ("processors", "gib", "cells"), [(1, 1, 1), (2, 23, 2), (8, 16, 4), (64, 256, 64), (16, 7, 1), (4, 0, 1)]
)
def test_harnesses_have_a_processor_and_memory_each_and_there_is_always_room_for_one(
    processors: int, gib: int, cells: int
) -> None:
    assert harness_cells(processors, gib * GIB) == cells


def test_the_bound_of_a_container_counts_and_what_says_nothing_does_not(tmp_path: Path) -> None:
    none, bound = tmp_path / "memory.max", tmp_path / "limit"
    none.write_text("max\n")
    bound.write_text("1048576\n")
    whole = memory_bytes([tmp_path / "missing", none])
    assert whole > 1048576
    assert memory_bytes([none, bound]) == 1048576
    assert machine.usual_harness_cells() >= 1
