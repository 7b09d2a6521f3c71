"""How the executor talks to a model for one cell. A driver is a coroutine from a cell to its verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from srbench_executor.caller import Caller
from srbench_executor.drivers import preview, scicode, single_turn
from srbench_executor.grading import GradeStream
from srbench_executor.work import Cell, Verdict

Driver: TypeAlias = Callable[[Cell, Caller, GradeStream], Awaitable[Verdict]]

DRIVERS: dict[str, Driver] = {
    "single_turn": single_turn.answer,
    "scicode": scicode.answer,
    "preview": preview.preview,
}
