"""Corrections in the tables: kept beside the receipts, the latest in force call by call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
import zstandard
from sqlalchemy.engine import Connection, Dialect
from srbench.v1 import accounting_service_pb2 as pb_calls
from srbench.v1 import comparison_pb2 as pb
from srbench_kit.jsonview import to_json
from srbench_kit.values import Json

from srbench_accounting import schema
from srbench_accounting.derived import Derived
from srbench_accounting.schema import row_id, sequence_of
from srbench_accounting.statements import InStatement, Row, Statement

if TYPE_CHECKING:
    from srbench_accounting.columns import CallColumns

# Columns of `corrected_calls` that hold figures, each with the report's column.
FIGURES = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "cached_input_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "output_tokens": "output_tokens",
    "prompt_tokens": "prompt_tokens",
    "cost": "cost",
    "cache_neutral_cost": "cache_neutral_cost",
    "inference_call_count": "inference_calls",
    "cache_read_reported": "cache_read_reported",
}
# What the report says of a correction; the entries of its calls are asked for by themselves.
_SHOWN = (
    *("version", "id", "evidence_sha256", "created_at", "qualified", "verified_call_count", "unverifiable_call_count"),
    *("corrected_call_count", "original_known_spend_usd", "corrected_known_spend_usd", "original_receipts_preserved"),
)
# Digests asked for in one statement.
_AT_ONCE = 4096
Corrected = tuple[int, bytes, Derived]


def figures_of(derived: Derived) -> tuple[int | None, ...]:
    """The figures of a call in the order of `FIGURES`; prompt tokens are the sum of their parts where these are known."""
    split = (derived.input_tokens, derived.cached_input_tokens, derived.cache_write_tokens)
    known = [count for count in split if count is not None]
    prompt = sum(known) if len(known) == len(split) else derived.prompt_tokens
    reported = None if derived.cache_read_reported is None else int(derived.cache_read_reported)
    return (
        *split,
        derived.output_tokens,
        prompt,
        derived.cost,
        derived.cache_neutral_cost,
        derived.inference_call_count,
        reported,
    )


class Corrections:
    """Reads and appends corrections. Safe in any thread."""

    def __init__(self, dialect: Dialect) -> None:
        kept, calls, receipts, bind = schema.corrections, schema.corrected_calls, schema.receipts, sa.bindparam
        self._of_run = Statement(
            sa.select(kept.c.correction_no, kept.c.artifact)
            .where(kept.c.run_no == bind("run_no_"))
            .order_by(kept.c.correction_no),
            dialect,
        )
        self._one = Statement(sa.select(kept.c.artifact).where(kept.c.correction_id == bind("correction_id_")), dialect)
        # A receipt that came later has other evidence, and is no longer what was corrected.
        self._figures = Statement(
            sa.select(calls.c.call_id, *[calls.c[name] for name in FIGURES])
            .select_from(calls.join(receipts, calls.c.call_id == receipts.c.call_id))
            .where(
                calls.c.call_id.between(bind("first"), bind("last")),
                calls.c.evidence_sha256 == receipts.c.evidence_sha256,
            )
            .order_by(calls.c.correction_no),
            dialect,
        )

        # A copy keeps the evidence of its original. The original's receipt must still be the one that was corrected.
        self._copies = Statement(
            sa.select(receipts.c.call_id, receipts.c.evidence_sha256).where(
                receipts.c.call_id.between(bind("first"), bind("last")),
                receipts.c.status == sa.literal_column(str(int(pb_calls.CALL_STATUS_REPLAYED))),
                receipts.c.evidence_sha256.is_not(None),
            ),
            dialect,
        )
        self._of_evidence = InStatement(
            lambda items: (
                sa.select(calls.c.evidence_sha256, *[calls.c[name] for name in FIGURES])
                .select_from(calls.join(receipts, calls.c.call_id == receipts.c.call_id))
                .where(calls.c.evidence_sha256.in_(items), calls.c.evidence_sha256 == receipts.c.evidence_sha256)
                .order_by(calls.c.correction_no)
            ),
            dialect,
        )

    def of_run(self, connection: Connection, run_no: int, *, calls: bool = True) -> list[pb.AccountingCorrection]:
        """The corrections of a run, oldest first; without the entries of their calls unless `calls`."""
        found = [_open(row[1]) for row in self._of_run.rows(connection, run_no)]
        for one in found if not calls else ():
            one.ClearField("calls")
        return found

    def by_id(self, connection: Connection, correction_id: str) -> pb.AccountingCorrection | None:
        """One correction; `None` when there is none of that name."""
        rows = self._one.rows(connection, correction_id)
        return _open(rows[0][0]) if rows else None

    def figures(self, connection: Connection, run_no: int) -> dict[int, Row]:
        """The corrected figures in force, in the order of `FIGURES`, by the call's place in its run, from 1."""
        rows = self._figures.rows(connection, row_id(run_no, 0), row_id(run_no + 1, 0) - 1)
        return {sequence_of(identifier): tuple(row) for identifier, *row in rows}

    def replayed_figures(self, connection: Connection, run_no: int) -> dict[int, Row]:
        """As `figures`, for the copies of calls in a replay: what is in force for the calls that they are copies of."""
        copies: dict[bytes, list[int]] = {}
        for identifier, digest in self._copies.rows(connection, row_id(run_no, 0), row_id(run_no + 1, 0) - 1):
            copies.setdefault(bytes(digest), []).append(sequence_of(identifier))
        digests, found = list(copies), {}
        for first in range(0, len(digests), _AT_ONCE):
            for digest, *row in self._of_evidence.rows(connection, digests[first : first + _AT_ONCE]):
                found.update(dict.fromkeys(copies[bytes(digest)], tuple(row)))
        return found

    def apply(self, connection: Connection, run_no: int, columns: CallColumns) -> CallColumns:
        """The calls of a run with their corrected figures in place of those of their receipts."""
        found = self.figures(connection, run_no)
        if (columns.end == pb_calls.CALL_STATUS_REPLAYED).any():
            found |= self.replayed_figures(connection, run_no)
        if not found:
            return columns
        # Here and not above: NumPy takes longer to import than the service may take to start.
        import numpy as np

        rows = np.fromiter(found, dtype=np.int64, count=len(found)) - 1
        table = np.array([[-1 if value is None else value for value in row] for row in found.values()], dtype=np.int64)
        changed: dict[str, Any] = {}
        for position, name in enumerate(FIGURES.values()):
            column = getattr(columns, name).copy()
            column[rows] = table[:, position]
            changed[name] = column
        return replace(columns, **changed)

    def append(
        self, connection: Connection, run_no: int, made: pb.AccountingCorrection, corrected: Sequence[Corrected]
    ) -> pb.AccountingCorrection:
        """Keeps `made`, unless there is one of its name, which is given instead.

        Args:
            corrected: (call id, digest of its evidence, figures) of each verified call that differs from its receipt.
        """
        existing = self.by_id(connection, made.id)
        if existing is not None:
            return existing
        values = {
            "correction_id": made.id,
            "run_no": run_no,
            "create_us": made.create_time.seconds * 1_000_000 + made.create_time.nanos // 1000,
            "evidence_sha256": bytes.fromhex(made.evidence_sha256),
            "artifact": zstandard.compress(made.SerializeToString(deterministic=True)),
        }
        number = connection.execute(sa.insert(schema.corrections).values(values)).inserted_primary_key
        assert number is not None
        rows = [
            {"correction_no": number[0], "call_id": call_id, "evidence_sha256": digest}
            | dict(zip(FIGURES, figures_of(derived), strict=True))
            for call_id, digest, derived in corrected
        ]
        if rows:
            connection.execute(sa.insert(schema.corrected_calls), rows)
        return made


def shown(correction: pb.AccountingCorrection | None) -> Json:
    """What a report says of the correction in force; null without one."""
    if correction is None:
        return None
    everything = to_json(correction)
    return {name: everything[name] for name in _SHOWN}


def _open(artifact: bytes) -> pb.AccountingCorrection:
    return pb.AccountingCorrection.FromString(zstandard.decompress(artifact))
