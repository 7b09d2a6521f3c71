"""Messages as JSON, page tokens, secrets, blobs."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import planner_service_pb2 as planner
from srbench_kit import pages
from srbench_kit.blobs import BlobStore
from srbench_kit.errors import DataLoss, InvalidInput, NotFound
from srbench_kit.jsonview import to_json
from srbench_kit.redact import Redactor
from srbench_kit.values import to_value


def test_unknown_is_null_and_money_is_dollars() -> None:
    call = accounting.Call(
        id="call-1", role=accounting.CALL_ROLE_SUBJECT, cost_picodollars=1_500_000, raw_usage=to_value({"a": 1.0})
    )
    call.start_time.FromMilliseconds(1_700_000_000_250)
    shown = to_json(call)
    assert shown["cost_usd"] == 0.0000015
    assert (shown["role"], shown["status"], shown["started_at"]) == ("subject", None, 1_700_000_000.25)
    assert (shown["ttft_s"], shown["usage"], shown["finished_at"]) == (None, None, None)
    assert shown["raw_usage"] == {"a": 1.0}


def test_maps_lists_and_big_integers_keep_their_values() -> None:
    shown = to_json(planner.Dataset(counts={"b": 2**53 + 1, "a": 1}, benchmarks=["x", "y"]))
    assert shown["counts"] == {"a": 1, "b": 9007199254740993}
    assert shown["benchmarks"] == ["x", "y"]


def test_a_page_token_belongs_to_its_filter() -> None:
    token = pages.encode(42, "run-1", None)
    assert pages.decode(token, "run-1", None) == 42
    assert pages.decode("", "run-1", None) is None
    for bad, filters in ((token, ("run-2", None)), ("garbage", ("run-1", None)), (token[:-3], ("run-1", None))):
        with pytest.raises(InvalidInput):
            pages.decode(bad, *filters)


def test_page_sizes_are_bounded() -> None:
    assert [pages.page_size(asked, 100, 500) for asked in (0, 7, 9999)] == [100, 7, 500]
    with pytest.raises(InvalidInput, match="-1"):
        pages.page_size(-1, 100, 500)


@pytest.mark.parametrize(
    "form", ["sk-test-CANARY-123456", base64.b64encode(b"sk-test-CANARY-123456").decode(), "Bearer sk-test-CANARY-123456"]
)
def test_secrets_are_removed_in_every_form(form: str) -> None:
    redactor = Redactor(["sk-test-CANARY-123456"])
    assert "CANARY" not in redactor.text(f"bad key {form} given")
    assert base64.b64encode(b"CANARY")[:6] not in redactor.data(form.encode())
    assert b"CANARY" not in redactor.data(form.encode())


def test_keys_nobody_told_us_of_are_removed_from_texts() -> None:
    shown = Redactor([]).text("Authorization: Bearer abcdefgh12345678, sk-proj-abcdefghijkl, http://user:hunter22@host/")
    assert not {"abcdefgh12345678", "abcdefghijkl", "hunter22"} & set(shown.replace(",", " ").split())
    assert "hunter22" not in shown


def test_blobs_come_back_and_damage_is_named(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path))
    name = store.put(b"cases" * 100)
    assert store.put(b"cases" * 100) == name
    assert store.get(name) == b"cases" * 100
    with pytest.raises(NotFound):
        store.get("0" * 64)
    path = next(tmp_path.rglob("*.zst"))
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataLoss, match=name):
        store.get(name)
    assert store.put(b"cases" * 100) == name
    assert store.get(name) == b"cases" * 100, "storing it again mends it"
