"""Executors that come and go share a folder of spools: each has its own, and what a killed one left is taken first."""

from __future__ import annotations

import os
from pathlib import Path

from srbench.v1 import accounting_service_pb2 as pb
from srbench_executor import spool_slots
from srbench_kit.redact import Redactor


def test_each_takes_a_free_one_and_a_restart_the_same_again(tmp_path: Path) -> None:
    first, second = spool_slots.take(tmp_path), spool_slots.take(tmp_path)
    assert [first.folder.name, second.folder.name] == ["0", "1"]
    name = first.executor_id
    first.close()
    assert spool_slots.take(tmp_path).executor_id == name
    second.close()


def test_what_a_killed_one_left_is_taken_before_an_empty_folder(tmp_path: Path) -> None:
    spools = [spool_slots.take(tmp_path) for _ in range(3)]
    spools[2].open(pb.Dispatch(key=pb.CallKey(run_id="r", cell=7)), Redactor([]))
    for spool in spools:
        # As after SIGKILL.
        os.close(spool._lock)
    taken = spool_slots.take(tmp_path)
    assert taken.folder.name == "2"
    assert [call.dispatch.key.cell for call in taken.left_over()] == [7]
