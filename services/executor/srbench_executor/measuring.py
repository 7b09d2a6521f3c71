"""What an executor counts of its calls, for Prometheus."""

from __future__ import annotations

from typing import Protocol

from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit import metrics, tracing
from srbench_kit.jsonview import enum_name
from srbench_kit.metrics import Counter, Histogram

from srbench_executor.receipts import Settlement


class Working(Protocol):
    """What an executor has in hand."""

    capacity: int
    harness_capacity: int

    @property
    def harness_cell_count(self) -> int:
        """Cells of harnesses in hand."""

    @property
    def cell_count(self) -> int:
        """Cells in hand."""

    @property
    def call_count(self) -> int:
        """Calls in flight."""


_CALLS = Counter("srbench_calls", "Model calls that ended, by how.", "status")
_TTFT_S = Histogram("srbench_time_to_first_token_seconds", "From the request to the first token of its answer.")
_CALL_S = Histogram("srbench_call_duration_seconds", "From the request to the end of its answer.")
_NAMES = {
    number: enum_name(pb.CallStatus.DESCRIPTOR, number) or "unknown" for number in pb.CallStatus.DESCRIPTOR.values_by_number
}


def ended(receipt: pb.Receipt) -> None:
    """Counts a call that has ended."""
    _CALLS.add(_NAMES.get(receipt.status, "unknown"))
    if receipt.HasField("ttft_ns"):
        _TTFT_S.observe(receipt.ttft_ns / 1e9)
    if receipt.HasField("latency_ns"):
        _CALL_S.observe(receipt.latency_ns / 1e9)


def attributes(settled: Settlement) -> tracing.Attributes:
    """What a call's span says of its end."""
    receipt = settled.receipt
    found: tracing.Attributes = {
        "srbench.status": _NAMES.get(receipt.status, "unknown"),
        "srbench.reason": receipt.reason,
        "http.response.status_code": receipt.http_status,
        "gen_ai.response.model": receipt.response_model,
    }
    if receipt.HasField("ttft_ns"):
        found["srbench.ttft_s"] = receipt.ttft_ns / 1e9
    return found | tracing.content(settled.text)


def watch(worker: Working) -> None:
    """Shows what the executor has in hand."""
    metrics.gauge("srbench_cells_in_hand", "Cells that this executor works on.", lambda: worker.cell_count)
    metrics.gauge("srbench_calls_in_flight", "Model calls without an end.", lambda: worker.call_count)
    metrics.gauge("srbench_executor_capacity", "Most cells that this executor takes.", lambda: worker.capacity)
    name, about = "srbench_harness_cells_in_hand", "Cells of harnesses that this executor works on."
    metrics.gauge(name, about, lambda: worker.harness_cell_count)
    name, about = "srbench_executor_harness_capacity", "Most cells of harnesses that this executor takes."
    metrics.gauge(name, about, lambda: worker.harness_capacity)
