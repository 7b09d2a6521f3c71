"""What operators' settlements do to the columns of a report. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from srbench.v1 import accounting_service_pb2 as pb

from srbench_accounting.columns import UNKNOWN, CallColumns, CallEnd, Ints
from srbench_accounting.settled import BUCKETS, known_values, undone


class _Columns:
    """Copies of the columns that a settlement changes."""

    NAMES = ("end", "prompt_tokens", "cost", "cache_neutral_cost", "inference_calls", *BUCKETS)

    def __init__(self, calls: CallColumns) -> None:
        self._copies: dict[str, Ints] = {name: getattr(calls, name).copy() for name in self.NAMES}

    def settle(self, row: int, settlement: pb.CallSettlement) -> None:
        """Writes one settlement into its row."""
        copies = self._copies
        unknown_end = copies["end"][row] == CallEnd.SENT_UNKNOWN
        if undone(settlement, int(copies["end"][row])):
            copies["end"][row], copies["cost"][row] = CallEnd.NOT_ACCEPTED, 0
        if settlement.verdict != pb.SETTLEMENT_VERDICT_HAPPENED:
            return
        if unknown_end:
            copies["end"][row] = CallEnd.FAILED
        for name, value in known_values(settlement).items():
            copies[name][row] = value

    def on(self, calls: CallColumns) -> CallColumns:
        """`calls` with the copies in place of their own."""
        changed: Any = self._copies
        return replace(calls, **changed)


def settle_columns(calls: CallColumns, in_force: Mapping[int, pb.CallSettlement]) -> CallColumns:
    """The calls as the settlements in force have them. `in_force` is by row.

    A call that did not happen becomes one that was provably not accepted; one that did becomes a failed one. Neither is
    touched once its receipt knows the cost.
    """
    used = {row: one for row, one in in_force.items() if calls.cost[row] == UNKNOWN and calls.end[row] != CallEnd.SENT}
    if not used:
        return calls
    columns = _Columns(calls)
    for row, settlement in used.items():
        columns.settle(row, settlement)
    return columns.on(calls)


def in_force_by_row(settlements: Mapping[int, list[pb.CallSettlement]]) -> dict[int, pb.CallSettlement]:
    """The settlement in force by row of the columns: calls are numbered from 1 without a gap."""
    return {sequence - 1: found[-1] for sequence, found in settlements.items()}
