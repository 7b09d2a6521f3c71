"""The published digest vectors of the sr-bench 1.0 protocol."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_kit.canonical import canonical, digest, fold_numbers, folded_digest
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json, from_value, to_value

VECTORS: list[tuple[Json, str, str | None]] = [
    ({"b": 1, "a": "é"}, "aa58fba8483623bed37c1b02edfccbdd9a53123837c20bfa4cb4049993a2872e", None),
    (
        {"a": 1.0},
        "c29a44abc114a1d75486434c013102c9e736f526b4fd19658d9492b7b224de6d",
        "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862",
    ),
    ({"a": 1}, "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862", None),
    (
        {"a": -0.0},
        "952b7dc455870c265da6a6fb15ef60891abf562f0e3327f095914610b3d00811",
        "45b619e97b5d9b029af4522e9ffb02fa99ff2bf226c82ee22a7cc10269a557e8",
    ),
    (
        {"a": 1e16},
        "a0f92cfd05a74c219a7cd704cf22112bb79bf283876cef955b1d731d5275c73c",
        "f396b5da75ea357bdf647e3ced11d162461e9e78dbac4796f4b956edd27bed90",
    ),
    ({"a": 0.1}, "9e3d5635fc1c09ff15c19f1089a0bfe03fbd8329cca722f9a2227060ac77dcaa", None),
    ({"a": True}, "5daa0644c4a1c43ea018f7f1ef2944b90e0165ef1f2d5669ca89e5d4f69ac597", None),
    ([20260918, "arc-agi-2/0934a4d8"], "2f7a0e65bba1b11f2c512b398f18f45454f811aa54b5b844714bf11b5fba0e42", None),
    ([20260918, "mmlu-pro/70"], "c68b0d9964d97a5451a62260fa6b981f7861d2329f5cf979df985ec66dc80df9", None),
]

texts = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize(("value", "plain", "folded"), VECTORS)
def test_published_vectors_get_their_published_digests(value: Json, plain: str, folded: str | None) -> None:
    assert digest(value) == plain
    assert folded_digest(value) == (folded or plain)


@given(json_values)
def test_a_value_survives_the_wire_without_loss(value: Json) -> None:
    assert canonical(from_value(to_value(value))) == canonical(value)


@given(json_values)
def test_folding_is_idempotent(value: Json) -> None:
    once = fold_numbers(value)
    assert canonical(fold_numbers(once)) == canonical(once)


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InvalidInput, match="not finite"):
        canonical({"a": float("nan")})


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InvalidInput, match="surrogate"):
        digest("\ud83d")
