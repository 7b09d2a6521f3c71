"""What an operator's settlement means: the cost that counts, and what follows from a usage object. Pure."""

from __future__ import annotations

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import usage_pb2
from srbench_kit.completion import dump_json
from srbench_kit.values import from_value

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


def applies(settlement: pb.CallSettlement | None, status: int, cost: int | None) -> bool:
    """Whether a settlement says what counts: not once a receipt knows the cost, nor while the call goes on."""
    return settlement is not None and cost is None and status != pb.CALL_STATUS_SENT


def undone(settlement: pb.CallSettlement, status: int) -> bool:
    """Whether the call counts as one that did not happen."""
    return settlement.verdict == pb.SETTLEMENT_VERDICT_DID_NOT_HAPPEN and status == pb.CALL_STATUS_SENT_UNKNOWN
