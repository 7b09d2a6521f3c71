"""Traces: off they are nothing; on, contexts that travel in messages come out as they went in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from srbench_kit import tracing
from srbench_kit.errors import InvalidInput


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    tracing.start("test", exporter)
    yield exporter
    tracing.stop()


def test_off_there_is_no_span_and_no_context() -> None:
    assert tracing.begin("cell", "", {"a": 1}) is None
    assert tracing.mark("lease") == tracing.header(None) == ""
    tracing.end(None, {"a": 1})
    tracing.remember("run", "00-1-1-01")
    assert tracing.asked_by("run") == ""


def test_what_one_process_wrote_another_continues(spans: InMemorySpanExporter) -> None:
    first = tracing.mark("lease", "", {"cell": 3, "reason": ""}, links=["", "not one"])
    second = tracing.begin("cell", first)
    tracing.end(second, {"state": "DONE"})
    tracing.stop()
    lease, cell = spans.get_finished_spans()
    assert first.startswith(f"00-{lease.context.trace_id:032x}-{lease.context.span_id:016x}-0")
    assert (cell.context.trace_id, cell.parent.span_id) == (lease.context.trace_id, lease.context.span_id)
    assert dict(lease.attributes or {}) == {"srbench.cell": 3}
    assert dict(cell.attributes or {}) == {"srbench.state": "DONE"}


@pytest.mark.parametrize("parent", ["", "x", "00-zz-zz-01", "00-" + "g" * 32 + "-" + "0" * 16 + "-01"])
def test_a_context_that_is_none_begins_a_new_trace(spans: InMemorySpanExporter, parent: str) -> None:
    tracing.mark("cell", parent)
    tracing.stop()
    (span,) = spans.get_finished_spans()
    assert span.parent is None


def test_content_is_kept_out_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tracing.content("what a model said") == {}
    monkeypatch.setattr(tracing, "CONTENT", True)
    assert tracing.content("x" * 5000) == {"gen_ai.output.text": "x" * 4096}


def test_a_setting_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SR_BENCH_TRACES", "jaeger")
    with pytest.raises(InvalidInput, match="SR_BENCH_TRACES is 'jaeger'; expected otlp or off"):
        tracing.start("test")


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = __import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setenv("SR_BENCH_TRACES", "otlp")
    monkeypatch.setattr("builtins.__import__", without)
    with pytest.raises(InvalidInput, match=r"pip install 'sr-bench\[tracing\]'"):
        tracing.start("test")
