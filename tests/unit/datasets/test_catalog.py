"""The catalog: nine benchmarks as published, and those that other packages bring."""

from __future__ import annotations

import sys
import types
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest
from srbench_kit.errors import InvalidInput
from srbench_planner import catalog
from srbench_planner.benchmarks import mmlu_pro


def test_the_nine_benchmarks_stand_in_catalog_order_with_kinds_and_weights() -> None:
    found = [(spec.id, spec.kind, spec.weight) for spec in catalog.load([]).benchmarks]
    assert found == [
        ("mmlu-pro", "multiple-choice", 0.10),
        ("gpqa-diamond", "multiple-choice", 0.15),
        ("hle", "judge", 0.15),
        ("livecodebench", "code", 0.10),
        ("scicode", "code", 0.10),
        ("terminal-bench-2.1", "agent", 0.10),
        ("simpleqa-verified", "judge", 0.10),
        ("arc-agi-2", "grid", 0.10),
        ("tau3", "agent", 0.10),
    ]
    assert sum(weight for _, _, weight in found) == pytest.approx(1)


def test_the_profiles_add_up_to_the_published_totals() -> None:
    assert catalog.load([]).totals() == {"smoke": 36, "quick": 740, "standard": 3183}


def test_every_revision_is_a_commit() -> None:
    assert all(len(spec.source.revision) == 40 for spec in catalog.load([]).benchmarks)


def test_every_benchmark_can_be_prepared() -> None:
    assert [spec.id for spec in catalog.load([]).benchmarks if not spec.available] == []


def test_preparing_any_other_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    later = replace(mmlu_pro.SPEC, id="later", normalize=None)
    with pytest.raises(InvalidInput, match="cannot prepare later; expected one of mmlu-pro, gpqa-diamond, hle") as caught:
        catalog.load([point(monkeypatch, later)]).preparable("later")
    assert caught.value.reason == "NOT_AVAILABLE"


def test_an_unknown_benchmark_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="no benchmark 'mmlu'; expected one of mmlu-pro") as caught:
        catalog.load([]).get("mmlu")
    assert caught.value.reason == "NO_SUCH_BENCHMARK"


def point(monkeypatch: pytest.MonkeyPatch, value: object) -> EntryPoint:
    module = types.ModuleType("third_party_benchmark")
    module.__dict__["thing"] = value
    monkeypatch.setitem(sys.modules, "third_party_benchmark", module)
    return EntryPoint(name="third", value="third_party_benchmark:thing", group=catalog.ENTRY_POINT_GROUP)


def test_another_package_adds_a_benchmark_as_a_value_or_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(mmlu_pro.SPEC, id="own-set")
    assert catalog.load([point(monkeypatch, spec)]).benchmarks[-1] is spec
    assert catalog.load([point(monkeypatch, lambda: spec)]).benchmarks[-1] is spec


def test_a_second_benchmark_of_the_same_id_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="two benchmarks have the id 'mmlu-pro'"):
        catalog.load([point(monkeypatch, replace(mmlu_pro.SPEC, title="Another"))])


def test_an_entry_point_that_gives_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match=r"entry point 'third' .* gives a dict; expected a BenchmarkSpec"):
        catalog.load([point(monkeypatch, dict)])


@pytest.mark.parametrize("name", ["", "Upper", "a/b", "..", "x" * 65, "a b"])
def test_a_malformed_id_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(mmlu_pro.SPEC, id=name)
    assert caught.value.reason == "BAD_BENCHMARK"
