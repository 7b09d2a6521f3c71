"""Metrics as Prometheus' own parser reads them."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from srbench_kit import metrics
from srbench_kit.errors import InvalidInput


def samples(
    monkeypatch: pytest.MonkeyPatch, *meters: metrics.Counter | metrics.Histogram | metrics.Reading
) -> dict[str, float]:
    monkeypatch.setattr(metrics, "METERS", {meter.name: meter for meter in meters})
    registry = CollectorRegistry()
    registry.register(metrics._Collector())
    text = generate_latest(registry).decode()
    found = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {f"{sample.name}{sorted(sample.labels.items())}": sample.value for sample in found}


def test_counters_and_durations_are_shown_by_their_conventions(monkeypatch: pytest.MonkeyPatch) -> None:
    counter, histogram = (
        metrics.Counter("t_calls", "Calls.", "status"),
        metrics.Histogram("t_seconds", "Times.", (0.1, 1.0)),
    )
    counter.add("failed")
    counter.add("failed", amount=2)
    for seconds in (0.1, 0.5, 7.0):
        histogram.observe(seconds)
    assert samples(monkeypatch, counter, histogram) == {
        "t_calls_total[('status', 'failed')]": 3,
        "t_seconds_bucket[('le', '0.1')]": 1,
        "t_seconds_bucket[('le', '1.0')]": 2,
        "t_seconds_bucket[('le', '+Inf')]": 3,
        "t_seconds_count[]": 3,
        "t_seconds_sum[]": pytest.approx(7.6),
    }


def test_a_number_that_cannot_be_had_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> dict[tuple[str, ...], float]:
        raise RuntimeError("the database is away")

    good = metrics.Reading("t_good", "Good.", lambda: {(): 1.0})
    assert samples(monkeypatch, metrics.Reading("t_bad", "Bad.", broken), good) == {"t_good[]": 1}


@pytest.mark.parametrize(
    ("text", "expected"), [("9464", ("127.0.0.1", 9464)), ("[::]:1", ("::", 1)), ("0.0.0.0:2", ("0.0.0.0", 2))]
)
def test_a_port_alone_is_the_loopbacks(monkeypatch: pytest.MonkeyPatch, text: str, expected: tuple[str, int]) -> None:
    monkeypatch.setenv(metrics.VARIABLE, text)
    assert metrics.address() == expected


@pytest.mark.parametrize("text", ["x", "host:", "70000"])
def test_an_address_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(metrics.VARIABLE, text)
    with pytest.raises(InvalidInput, match="expected a port or host:port"):
        metrics.address()
