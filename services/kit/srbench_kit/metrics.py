"""What a process counts, shown to Prometheus when `SR_BENCH_METRICS_ADDRESS` says where.

Counting is a number in a dictionary, whether somebody looks or not; the Prometheus library, which takes longer to import
than a service may take to start, comes in with the listener. Labels hold words of the code alone, never names from outside,
so that their number is bounded and no secret gets there.
"""

from __future__ import annotations

import asyncio
import logging
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from srbench_kit.errors import InvalidInput

VARIABLE = "SR_BENCH_METRICS_ADDRESS"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
LAG_STEP_S = 0.25
_log = logging.getLogger(__name__)


class Counter:
    """Something that only grows, by label values."""

    kind = "counter"

    def __init__(self, name: str, text: str, *labels: str) -> None:
        """`name` without `_total`."""
        self.name, self.text, self.labels = name, text, labels
        self.values: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}
        METERS[name] = self

    def add(self, *labels: str, amount: float = 1.0) -> None:
        """Counts one more, or `amount`."""
        self.values[labels] = self.values.get(labels, 0.0) + amount


class Histogram:
    """Durations in seconds, counted by upper bound."""

    kind = "histogram"

    def __init__(self, name: str, text: str, bounds: Sequence[float] = SECONDS) -> None:
        self.name, self.text, self.bounds = name, text, bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0
        METERS[name] = self

    def observe(self, seconds: float) -> None:
        """Takes in one duration."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds


@dataclass(frozen=True, slots=True)
class Reading:
    """A number that is looked up when somebody asks: a gauge, or a counter that is kept elsewhere.

    Attributes:
        read: the values by label values; run in the listener's thread.
    """

    name: str
    text: str
    read: Callable[[], Mapping[tuple[str, ...], float]]
    labels: tuple[str, ...] = ()
    kind: str = "gauge"


METERS: dict[str, Counter | Histogram | Reading] = {}


def gauge(name: str, text: str, read: Callable[[], float]) -> None:
    """Shows what `read` gives under `name`."""
    METERS[name] = Reading(name, text, lambda: {(): read()})


def readings(name: str, text: str, label: str, read: Callable[[], Mapping[str, float]], kind: str = "gauge") -> None:
    """Shows what `read` gives for each value of `label`; without a label for the empty one."""

    def values() -> Mapping[tuple[str, ...], float]:
        return {((value,) if label else ()): number for value, number in read().items()}

    METERS[name] = Reading(name, text, values, (label,) if label else (), kind)


def address() -> tuple[str, int] | None:
    """Where to listen: a port of the loopback, or `host:port`; `None` for nowhere.

    Raises: `InvalidInput` (`BAD_METRICS`).
    """
    text = os.environ.get(VARIABLE, "")
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65_535:
        raise InvalidInput("BAD_METRICS", f"{VARIABLE} is {text!r}; expected a port or host:port", field=VARIABLE)
    return host.strip("[]") or "127.0.0.1", int(port)


@dataclass(slots=True)
class Exposition:
    """The listener of one process, if it has one."""

    port: int = 0
    _server: Any = None
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def close(self) -> None:
        """Stops listening."""
        for task in self._tasks:
            task.cancel()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


def expose() -> Exposition:
    """Listens where `SR_BENCH_METRICS_ADDRESS` says, in a thread, and begins to measure the running event loop.

    Raises: `InvalidInput` (`BAD_METRICS`), also when the port is taken.
    """
    where = address()
    if where is None:
        return Exposition()
    from prometheus_client import REGISTRY, start_http_server

    collector = _Collector()
    try:
        server, _thread = start_http_server(where[1], where[0])
    except OSError as error:
        raise InvalidInput("BAD_METRICS", f"metrics cannot listen on {where[0]}:{where[1]}: {error.strerror}") from None
    if not any(isinstance(each, _Collector) for each in list(REGISTRY._collector_to_names)):
        REGISTRY.register(collector)
    port = int(server.server_port)
    _log.info("metrics at http://%s:%d/metrics", where[0], port)
    lag = Histogram("srbench_event_loop_lag_seconds", "How late the event loop runs, measured four times a second.")
    return Exposition(port, server, [asyncio.ensure_future(_measure(lag))])


async def _measure(lag: Histogram) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LAG_STEP_S
        await asyncio.sleep(LAG_STEP_S)
        lag.observe(max(0.0, loop.time() - due))


class _Collector:
    """Our numbers as Prometheus' library wants them."""

    def collect(self) -> Iterable[Any]:
        """All metrics, as they stand."""
        for meter in list(METERS.values()):
            try:
                yield _family(meter)
            except Exception:
                # One number that cannot be had must not hide the others.
                _log.exception("the metric %s cannot be read", meter.name)

    def describe(self) -> Iterable[Any]:
        """Nothing beforehand: registering must not read."""
        return ()


def _family(meter: Counter | Histogram | Reading) -> Any:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    if isinstance(meter, Histogram):
        found = HistogramMetricFamily(meter.name, meter.text)
        counts, total, buckets = list(meter.counts), 0, []
        for bound, count in zip([*map(repr, map(float, meter.bounds)), "+Inf"], counts, strict=True):
            total += count
            buckets.append((bound, total))
        found.add_metric([], buckets, meter.sum)
        return found
    values = meter.values if isinstance(meter, Counter) else meter.read()
    make = CounterMetricFamily if meter.kind == "counter" else GaugeMetricFamily
    family = make(meter.name, meter.text, labels=list(meter.labels))
    for labels, value in list(values.items()):
        family.add_metric(list(labels), value)
    return family
