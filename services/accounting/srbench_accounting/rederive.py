"""One call derived again: its receipt from the raw stream, tokens and money from the receipt. Pure.

Times are the executor's clocks and cannot be derived; that the connection was cut by us is known from the record alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import comparison_pb2
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench_kit.completion import Completion
from srbench_kit.values import Json

from srbench_accounting.derived import Derived, TargetDeriving

# Reasons of calls that ended by themselves; any other reason is a cut, after which no usage is final.
_NO_CUT = frozenset({"", "output_limit", "identity_mismatch", "config_hash_mismatch"})
_TEXTS = {
    "finish_reason": "finish_reason",
    "response_model": "model",
    "selected_model": "selected_model",
    "decision": "decision",
    "config_hash": "config_hash",
    "content_chars": "content_chars",
    "reasoning_chars": "reasoning_chars",
    "http_status": "http_status",
    "usage_json": "usage_json",
    "router_receipt_json": "router_receipt",
}
_DERIVED: dict[str, Callable[[Derived], Json]] = {
    "prompt_tokens": lambda found: found.prompt_tokens,
    "cost_picodollars": lambda found: found.cost,
    "cost_lower_picodollars": lambda found: found.cost_lower,
    "cost_upper_picodollars": lambda found: found.cost_upper,
    "cache_neutral_cost_picodollars": lambda found: found.cache_neutral_cost,
    "inference_call_count": lambda found: found.inference_call_count,
    "cache_read_reported": lambda found: found.cache_read_reported,
}
_BUCKETS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Difference:
    """One value of a call: as recorded, and as derived again."""

    name: str
    recorded: Json
    derived: Json

    @property
    def equal(self) -> bool:
        """Whether they are the same."""
        return self.recorded == self.derived


def receipt_from(recorded: pb.Receipt, completion: Completion) -> pb.Receipt:
    """The receipt as the raw stream gives it; what no stream holds is taken from the record."""
    receipt = pb.Receipt()
    receipt.CopyFrom(recorded)
    for name, source in _TEXTS.items():
        setattr(receipt, name, getattr(completion, source))
    if completion.inference_call_count is None:
        receipt.ClearField("inference_call_count")
    else:
        receipt.inference_call_count = completion.inference_call_count
    completed = recorded.status == pb.CALL_STATUS_COMPLETED
    cut = recorded.reason not in _NO_CUT
    receipt.output_complete = completion.output_complete and completed and not cut
    receipt.usage_final = completion.usage_final and not (cut and not recorded.usage_final)
    return receipt


def receipt_values(recorded: pb.Receipt, again: pb.Receipt, completion: Completion) -> Iterator[Difference]:
    """Each value of a receipt that its raw stream holds."""
    for name in (*_TEXTS, "output_complete", "usage_final"):
        yield Difference(name, _shown(getattr(recorded, name)), _shown(getattr(again, name)))
    counts = [one.inference_call_count if one.HasField("inference_call_count") else None for one in (recorded, again)]
    yield Difference("inference_call_count_header", counts[0], counts[1])
    if recorded.status == pb.CALL_STATUS_COMPLETED and recorded.reason in _NO_CUT:
        # A whole answer is one only when the stream says nothing else.
        yield Difference("reason", "", completion.reason)


def derived_values(recorded: ledger_pb.LedgerReceipt, again: Derived) -> Iterator[Difference]:
    """Each number that accounting derived from a receipt."""
    for name in _BUCKETS:
        usage = recorded.usage
        known: Json = getattr(usage, name) if usage.HasField(name) else None  # type: ignore[arg-type]
        yield Difference(name, known, getattr(again, name))
    for name, value in _DERIVED.items():
        known = getattr(recorded, name) if recorded.HasField(name) else None  # type: ignore[arg-type]
        yield Difference(name, known, value(again))
    yield Difference("usage_flags", list(recorded.usage_flags), list(again.usage_flags))


def corrected_values(recorded: comparison_pb2.CallCorrection, again: Derived) -> Iterator[Difference]:
    """Each number that a correction in force gives in place of the receipt's."""
    usage: Mapping[str, Json] = {field.name: count for field, count in recorded.usage.ListFields()}
    for name in _BUCKETS:
        yield Difference(f"corrected.{name}", usage.get(name), getattr(again, name))
    yield Difference("corrected.cost_picodollars", recorded.cost_picodollars, again.cost)


def reserved_value(call: ledger_pb.LedgerCall, target: TargetDeriving, *, priced: bool) -> Difference:
    """What was reserved before the call left. Without prices enforced nothing is."""
    sent = call.dispatch
    again = None
    if priced:
        again = target.reserve(
            body_byte_count=sent.request_byte_count,
            message_count=sent.message_count,
            max_output_tokens=sent.max_output_tokens,
        )
    recorded = call.reserved_picodollars if call.HasField("reserved_picodollars") else None
    return Difference("reserved_picodollars", recorded, again)


def settlement_values(recorded: pb.CallSettlement, again: Derived) -> Iterator[Difference]:
    """Each number that follows from an operator's settlement."""
    usage: Mapping[str, Json] = {field.name: count for field, count in recorded.usage.ListFields()}
    for name in _BUCKETS:
        yield Difference(f"settlement.{name}", usage.get(name), getattr(again, name))
    for name in ("cost_picodollars", "cache_neutral_cost_picodollars", "prompt_tokens", "inference_call_count"):
        known: Json = getattr(recorded, name) if recorded.HasField(name) else None  # type: ignore[arg-type]
        yield Difference(f"settlement.{name}", known, _DERIVED[name](again))


def _shown(value: Json | bytes) -> Json:
    """A value as a reader sees it; JSON from outside as what it says, so that spelling does not count."""
    if not isinstance(value, bytes):
        return value
    try:
        parsed: Json = json.loads(value) if value else None
    except (ValueError, RecursionError):
        return value.decode("utf-8", "replace")
    return parsed
