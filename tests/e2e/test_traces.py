"""Traces of a real stack, as a collector gets them over OTLP: one a cell, through all processes, without any content."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as rpc

from tests.e2e.whole_stack import manifest, mmlu_cases, running_stack, running_testbed

pytestmark = pytest.mark.e2e
CASES = 6


@dataclass
class Collector(rpc.TraceServiceServicer):
    """Keeps every span with the name of its service."""

    spans: list[tuple[str, Any]] = field(default_factory=list)
    port: int = 0

    def Export(self, request: Any, context: Any) -> pb.ExportTraceServiceResponse:
        for resource in request.resource_spans:
            names = {entry.key: entry.value.string_value for entry in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [(names["service.name"], span) for span in scope.spans]
        return pb.ExportTraceServiceResponse()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def traces(self) -> dict[bytes, list[tuple[str, Any]]]:
        found: dict[bytes, list[tuple[str, Any]]] = defaultdict(list)
        for service, span in self.spans:
            found[span.trace_id].append((service, span))
        return found


@contextmanager
def collecting() -> Iterator[Collector]:
    collector, server = Collector(), grpc.server(futures.ThreadPoolExecutor(2))
    rpc.add_TraceServiceServicer_to_server(collector, server)
    collector.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield collector
    server.stop(None)


def run(folder: Path, **environment: str) -> None:
    with running_testbed(folder) as bed, running_stack(folder / "store", **environment) as stack:
        small = [one for one in bed.targets if one["id"] == "small"]
        run_id = stack.run(folder, manifest(mmlu_cases(CASES), small), "traced")
        assert stack.get(f"/runs/{run_id}")["status"] == "completed"


def attributes(span: Any) -> dict[str, str]:
    return {entry.key: str(entry.value) for entry in span.attributes}


def test_each_cell_has_one_trace_through_all_processes(tmp_path: Path) -> None:
    with collecting() as collector:
        where = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint, "OTEL_EXPORTER_OTLP_INSECURE": "true"}
        run(tmp_path, SR_BENCH_TRACES="otlp", **where)
        traces = collector.traces()
    cells = [spans for spans in traces.values() if any(span.name == "cell" for _, span in spans)]
    assert len(cells) == CASES
    for spans in cells:
        names = sorted((service.removeprefix("sr-bench-"), span.name) for service, span in spans)
        assert names == [
            ("accounting", "record dispatch"),
            ("accounting", "record outcome"),
            ("accounting", "record settle"),
            ("executor", "call"),
            ("executor", "cell"),
            ("grader", "grade"),
            ("planner", "lease"),
        ]
        by_name = {span.name: span for _, span in spans}
        lease, cell, call = by_name["lease"], by_name["cell"], by_name["call"]
        assert lease.parent_span_id == b""
        assert cell.parent_span_id == lease.span_id
        assert call.parent_span_id == by_name["grade"].parent_span_id == cell.span_id
        assert by_name["record settle"].parent_span_id == call.span_id
        assert "completed" in attributes(call)["srbench.status"]
        # Who asked: the planner's answer to the gateway, in a trace of the gateway's.
        (link,) = lease.links
        asked = [service for service, _ in traces[link.trace_id]]
        assert {"sr-bench-gateway", "sr-bench-planner"} <= set(asked)
    told = str([attributes(span) for _, span in collector.spans])
    assert "Question" not in told
    assert "gen_ai.output.text" not in told
