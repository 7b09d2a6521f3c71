"""Rows and messages: a receipt comes back from its row as it was, whatever stood in it."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from srbench.v1 import accounting_service_pb2 as pb
from srbench_accounting import packing, rows, schema
from srbench_accounting.convert import call_id, call_key
from srbench_accounting.derived import Derived
from srbench_accounting.rows import CallRow, OutcomeRow, ReceiptRow
from srbench_accounting.words import MAX_WORD, clip
from srbench_kit import db
from srbench_kit.errors import DataLoss, NotFound


class Words:
    """A vocabulary in memory."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int | None:
        return self.numbers.setdefault(clip(text), len(self.numbers) + 1) if text else None

    def words(self) -> dict[int | None, str]:
        found: dict[int | None, str] = {number: word for word, number in self.numbers.items()}
        return found | {None: ""}


M = TypeVar("M", bound=Message)


def filled(kind: type[M]) -> M:
    """A message with every field set."""
    message = kind()
    for field in kind.DESCRIPTOR.fields:
        if field.message_type is not None and field.message_type.name == "Timestamp":
            getattr(message, field.name).seconds = 5
        elif field.message_type is not None:
            getattr(message, field.name).string_value = "v"
        elif field.type == field.TYPE_STRING:
            setattr(message, field.name, "t")
        elif field.type == field.TYPE_BYTES:
            setattr(message, field.name, b"b")
        else:
            setattr(message, field.name, 1)
    return message


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.just("x" * 300) | st.just("a\0b")
counts = st.none() | st.integers(0, 2**63 - 1)


@st.composite
def receipts(draw: st.DrawFn) -> pb.Receipt:
    receipt = pb.Receipt(
        status=draw(st.sampled_from([2, 3, 4, 5, 6])),
        output_complete=draw(st.booleans()),
        usage_final=draw(st.booleans()),
        usage_json=draw(st.binary(max_size=40)),
        router_receipt_json=draw(st.binary(max_size=40)),
        http_status=draw(st.none() | st.integers(-(2**31), 2**31 - 1)),
        received_bytes=draw(st.integers(0, 2**63 - 1)),
    )
    for name in ("reason", "message", "finish_reason", "response_model", "selected_model", "decision", "config_hash"):
        setattr(receipt, name, draw(texts))
    for name in ("ttft_ns", "first_content_ns", "latency_ns", "first_token_lag_ns", "connect_ns", "inference_call_count"):
        value = draw(counts)
        if value is not None:
            setattr(receipt, name, value)
    for name in ("start_time", "finish_time"):
        value = draw(st.none() | st.integers(0, 2**50))
        if value is not None:
            getattr(receipt, name).CopyFrom(rows.timestamp(value))
    return receipt


@given(receipts(), st.integers(0, 2**50))
def test_a_receipt_comes_back_from_its_row(receipt: pb.Receipt, dispatch_us: int) -> None:
    words = Words()
    row = rows.receipt_row(receipt, dispatch_us=dispatch_us, derived=Derived(), evidence=None, words=words)
    assert rows.receipt_of(row, dispatch_us=dispatch_us, words=words.words()) == receipt


def test_every_field_of_receipts_and_outcomes_comes_back() -> None:
    """A field that is added to the contract and forgotten here fails this test."""
    receipt, words = filled(pb.Receipt), Words()
    row = rows.receipt_row(receipt, dispatch_us=0, derived=Derived(), evidence=None, words=words)
    assert rows.receipt_of(row, dispatch_us=0, words=words.words()) == receipt
    outcome = filled(pb.CellOutcome)
    kept = rows.outcome_row(outcome, run_no=1, words=words)
    rest = packing.unpack(pb.CellOutcome, kept.rest)
    in_rest = {field.name for field, _ in rest.ListFields()}
    columns = {*OutcomeRow._fields, "run_id", "start_time", "finish_time"}
    assert {field.name for field in pb.CellOutcome.DESCRIPTOR.fields} <= in_rest | columns


@given(receipts())
def test_equal_receipts_make_equal_rows(receipt: pb.Receipt) -> None:
    words, copy = Words(), pb.Receipt()
    copy.CopyFrom(receipt)
    first, second = (
        rows.receipt_row(one, dispatch_us=0, derived=Derived(), evidence=None, words=words) for one in (receipt, copy)
    )
    assert first == second


def test_the_row_types_follow_the_tables() -> None:
    assert CallRow._fields == tuple(schema.calls.c.keys())
    assert ReceiptRow._fields == tuple(schema.receipts.c.keys())[1:] == tuple(schema.receipts_apart.c.keys())[2:]
    assert OutcomeRow._fields == tuple(schema.outcomes.c.keys())[1:] == tuple(schema.outcomes_apart.c.keys())[1:]


def test_the_migrations_make_the_tables_that_the_code_expects(tmp_path: Path) -> None:
    engine = db.create_engine(f"sqlite:///{tmp_path / 'a.sqlite3'}")
    db.upgrade(engine, "srbench_accounting", schema.HEAD)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
        assert sa.inspect(connection).get_pk_constraint("calls")["constrained_columns"] == ["call_id"]
    engine.dispose()


def test_packed_bytes_that_were_changed_are_data_loss() -> None:
    packed = packing.pack(pb.Receipt(message="hello there", usage_json=b"{}"))
    assert packing.unpack(pb.Receipt, packed).message == "hello there"
    for damaged in (packed[:-2], b"\x02" + packed[1:], b"\x01"):
        with pytest.raises(DataLoss):
            packing.unpack(pb.Receipt, damaged)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1), st.integers(0, 2**16 - 1))
def test_a_calls_id_says_which_call_it_is(cell: int, ordinal: int, offer: int) -> None:
    identifier = call_id("run-a", cell, ordinal, offer)
    assert len(identifier) == len("call-") + 32
    assert call_key("run-a", identifier) == (cell, ordinal, offer)
    with pytest.raises(NotFound):
        call_key("run-b", identifier)


def test_words_are_clipped_to_what_every_database_can_index() -> None:
    assert clip("model\0x") == "modelx"
    assert clip("m" * 1000) == "m" * MAX_WORD
