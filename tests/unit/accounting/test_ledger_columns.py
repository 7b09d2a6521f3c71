"""Columns made of ledger messages hold what columns made of tables hold."""

from __future__ import annotations

from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import ledger_service_pb2 as ledger_pb
from srbench_accounting.derived import Derived
from srbench_accounting.ledger_columns import DerivedCall, call_columns
from srbench_accounting.words import MAX_WORD


def test_words_are_clipped_as_the_stores_vocabulary_clips_them() -> None:
    receipt = pb.Receipt(
        status=pb.CALL_STATUS_COMPLETED,
        response_model="m" * 100_000,
        selected_model="n\0" * MAX_WORD,
        decision="d\0",
        finish_reason="stop",
    )
    columns = call_columns([DerivedCall(call=ledger_pb.LedgerCall(), receipt=receipt, derived=Derived())])
    found = [columns.model, columns.selected_model, columns.decision, columns.finish_reason]
    assert [list(words.counts()) for words in found] == [["m" * MAX_WORD], ["n" * (MAX_WORD // 2)], ["d"], ["stop"]]
