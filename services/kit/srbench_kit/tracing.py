"""One trace a cell, through all processes, when `SR_BENCH_TRACES` is `otlp`; nothing at all otherwise.

Facts, leases and answers travel in batches, so the context of each travels inside its message (`traceparent`), and in the
metadata of calls about one thing. Where spans go is said by OpenTelemetry's own variables (`OTEL_EXPORTER_OTLP_*`).
What models said is in no span unless `SR_BENCH_TRACES_CONTENT` is 1, and then at most 4096 characters of it.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeAlias

from srbench_kit.errors import InvalidInput

KEY = "traceparent"
MAX_CONTENT = 4096
KEPT_LINKS = 4096
# Whether anything is traced; the only thing that is looked at when nothing is.
ON = False
CONTENT = False
Value: TypeAlias = "str | int | float | bool"
Attributes: TypeAlias = "dict[str, Value]"
# The span on whose behalf calls are made, for those that carry it in their metadata.
current: ContextVar[str] = ContextVar("srbench_trace", default="")
_provider: Any = None
_tracer: Any = None
_links: OrderedDict[str, str] = OrderedDict()


def start(service: str, exporter: Any = None) -> None:
    """Begins to trace as the environment says. `exporter` takes the place of OTLP's.

    Raises: `InvalidInput` (`BAD_TRACES`), also when the packages of the extra `tracing` are missing.
    """
    global ON, CONTENT, _provider, _tracer
    wanted = os.environ.get("SR_BENCH_TRACES", "")
    if wanted in ("", "off") and exporter is None:
        return
    if wanted not in ("", "off", "otlp"):
        raise InvalidInput("BAD_TRACES", f"SR_BENCH_TRACES is {wanted!r}; expected otlp or off", field="SR_BENCH_TRACES")
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        if exporter is None:
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

            exporter = OTLPSpanExporter()
    except ImportError as error:
        raise InvalidInput("BAD_TRACES", f"SR_BENCH_TRACES=otlp needs pip install 'sr-bench[tracing]': {error}") from None
    _provider = TracerProvider(resource=Resource.create({"service.name": f"sr-bench-{service}"}), shutdown_on_exit=False)
    _provider.add_span_processor(BatchSpanProcessor(exporter))
    _tracer = _provider.get_tracer("sr-bench")
    ON, CONTENT = True, os.environ.get("SR_BENCH_TRACES_CONTENT", "") == "1"


def stop() -> None:
    """Sends what waits and traces no more."""
    global ON, _provider
    if _provider is not None:
        ON = False
        _provider.shutdown()
        _provider = None


def begin(
    name: str,
    parent: str = "",
    attributes: Mapping[str, object] | None = None,
    *,
    links: Sequence[str] = (),
    start_ns: int | None = None,
) -> Any:
    """A new span: below `parent`, or the first of its trace. `None` when nothing is traced."""
    if not ON:
        return None
    from opentelemetry.trace import Link

    linked = [Link(_span_context(link)) for link in links if link]
    return _tracer.start_span(
        name, context=_context(parent), links=linked, start_time=start_ns, attributes=_named(attributes or {})
    )


def end(span: Any, attributes: Mapping[str, object] | None = None) -> None:
    """Ends a span with what came of it."""
    if span is not None:
        span.set_attributes(_named(attributes or {}))
        span.end()


def mark(
    name: str,
    parent: str = "",
    attributes: Mapping[str, object] | None = None,
    *,
    links: Sequence[str] = (),
    start_ns: int | None = None,
) -> str:
    """A span that ends at once; gives its `traceparent`, empty when nothing is traced."""
    span = begin(name, parent, attributes, links=links, start_ns=start_ns)
    end(span)
    return header(span)


def header(span: Any) -> str:
    """The span as `traceparent`; empty for `None`."""
    if span is None:
        return ""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def content(text: str) -> Attributes:
    """What a model said, as an attribute; nothing unless the operator asked for it."""
    return {"gen_ai.output.text": text[:MAX_CONTENT]} if CONTENT and text else {}


def remember(run_id: str, traceparent: str) -> None:
    """Keeps who asked for a run, for the spans of its cells to point at."""
    if ON and traceparent:
        _links[run_id] = traceparent
        while len(_links) > KEPT_LINKS:
            _links.popitem(last=False)


def asked_by(run_id: str) -> str:
    """Who asked for a run; empty when that is not known."""
    return _links.get(run_id, "")


def _named(attributes: Mapping[str, object]) -> Attributes:
    return {
        name if "." in name else f"srbench.{name}": value
        for name, value in attributes.items()
        if isinstance(value, str | int | float) and value != ""
    }


def _context(parent: str) -> Any:
    from opentelemetry import trace

    span = _span_context(parent)
    # An empty context of our own: what another library made current is no parent of ours.
    base = trace.set_span_in_context(trace.NonRecordingSpan(span)) if span is not None else None
    from opentelemetry.context import Context

    return base if base is not None else Context()


def _span_context(traceparent: str) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags

    parts = traceparent.split("-")
    if len(parts) != 4 or len(parts[1]) != 32 or len(parts[2]) != 16:
        return None
    try:
        return SpanContext(int(parts[1], 16), int(parts[2], 16), is_remote=True, trace_flags=TraceFlags(int(parts[3], 16)))
    except ValueError:
        return None
