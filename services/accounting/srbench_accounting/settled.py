"""What an operator's settlement means: the cost that counts, and what it does to the columns of a report. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import usage_pb2
from srbench_kit.completion import dump_json
from srbench_kit.values import from_value

from srbench_accounting.columns import UNKNOWN, CallColumns, CallEnd, Ints
from srbench_accounting.derived import Derived, TargetDeriving

BUCKETS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")


def settled_cost(settlement: pb.CallSettlement | None, status: int) -> int | None:
    """What a call costs by its settlement, when its receipt of `status` does not know; `None` when nobody does.

    A call that did not happen cost nothing, unless a receipt came that shows that it did.
    """
    if settlement is None or not settlement.HasField("cost_picodollars"):
        return None
    if settlement.verdict == pb.SETTLEMENT_VERDICT_DID_NOT_HAPPEN and status != pb.CALL_STATUS_SENT_UNKNOWN:
        return None
    return settlement.cost_picodollars


def same(first: pb.CallSettlement, second: pb.CallSettlement) -> bool:
    """Whether two settlements say the same, whoever said it and when."""
    plain = [pb.CallSettlement.FromString(one.SerializeToString()) for one in (first, second)]
    for one in plain:
        one.ClearField("create_time")
        one.ClearField("actor")
    return plain[0] == plain[1]


class _Columns:
    """Copies of the columns that a settlement changes."""

    NAMES = ("end", "prompt_tokens", "cost", "cache_neutral_cost", "inference_calls", *BUCKETS)

    def __init__(self, calls: CallColumns) -> None:
        self._copies: dict[str, Ints] = {name: getattr(calls, name).copy() for name in self.NAMES}

    def settle(self, row: int, settlement: pb.CallSettlement) -> None:
        """Writes one settlement into its row."""
        copies = self._copies
        unknown_end = copies["end"][row] == CallEnd.SENT_UNKNOWN
        if settlement.verdict == pb.SETTLEMENT_VERDICT_DID_NOT_HAPPEN and unknown_end:
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


def known_values(settlement: pb.CallSettlement) -> dict[str, int]:
    """What a settlement knows of tokens and money, by column."""
    usage = settlement.usage
    # The stubs know field names only one by one.
    values: dict[str, int] = {field.name: count for field, count in usage.ListFields()}
    if len(values) == len(BUCKETS):
        values["prompt_tokens"] = usage.input_tokens + usage.cached_input_tokens + usage.cache_write_tokens
    for name, field in (
        ("prompt_tokens", "prompt_tokens"),
        ("cost", "cost_picodollars"),
        ("cache_neutral_cost", "cache_neutral_cost_picodollars"),
        ("inference_calls", "inference_call_count"),
    ):
        if settlement.HasField(field):  # type: ignore[arg-type]
            values[name] = getattr(settlement, field)
    return values


def in_force_by_row(settlements: Mapping[int, list[pb.CallSettlement]]) -> dict[int, pb.CallSettlement]:
    """The settlement in force by row of the columns: calls are numbered from 1 without a gap."""
    return {sequence - 1: found[-1] for sequence, found in settlements.items()}


def derive_settlement(target: TargetDeriving, settlement: pb.CallSettlement) -> Derived:
    """Tokens and money of a settled call; nothing is known without a usage object or a router's receipt."""
    usage, routed = from_value(settlement.raw_usage), from_value(settlement.router_receipt)
    if settlement.verdict == pb.SETTLEMENT_VERDICT_DID_NOT_HAPPEN:
        return Derived(cost=0)
    if settlement.verdict != pb.SETTLEMENT_VERDICT_HAPPENED or (usage is None and routed is None):
        return Derived()
    receipt = pb.Receipt(
        status=pb.CALL_STATUS_COMPLETED,
        usage_final=True,
        response_model=settlement.model,
        selected_model=settlement.model,
    )
    if usage is not None:
        receipt.usage_json = dump_json(usage)
    if routed is not None:
        receipt.router_receipt_json = dump_json(routed)
    else:
        # Without a receipt the usage is that of the one call that the operator names.
        receipt.inference_call_count = 1
    return target.price(receipt)


def fill(settlement: pb.CallSettlement, derived: Derived) -> None:
    """Writes what was derived into the settlement."""
    usage = {name: getattr(derived, name) for name in BUCKETS}
    if any(count is not None for count in usage.values()):
        settlement.usage.CopyFrom(usage_pb2.TokenUsage(**usage))
    for name, value in (
        ("cost_picodollars", derived.cost),
        ("cache_neutral_cost_picodollars", derived.cache_neutral_cost),
        ("prompt_tokens", derived.prompt_tokens),
        ("inference_call_count", derived.inference_call_count),
    ):
        if value is not None:
            setattr(settlement, name, value)
