"""Tells accounting what an earlier process with the same spool did not live to tell."""

from __future__ import annotations

import logging

from srbench.v1 import accounting_service_pb2 as pb

from srbench_executor.facts import FactStream
from srbench_executor.receipts import CHUNK_BYTES, lost_settlement, settle_facts
from srbench_executor.retelling import FULL, Retelling
from srbench_executor.spool import Spool, Unacknowledged

_log = logging.getLogger(__name__)


def facts_of(call: Unacknowledged) -> list[pb.Fact]:
    """The facts that settle a left-over call: as it ended, or as sent with an unknown end and the partial evidence."""
    if call.settle is not None:
        key, packed = call.dispatch.key, call.evidence
        chunks = [
            pb.Fact(evidence=pb.EvidenceChunk(key=key, offset=offset, data=packed[offset : offset + CHUNK_BYTES]))
            for offset in range(0, len(packed), CHUNK_BYTES)
        ]
        return [*chunks, pb.Fact(settle=call.settle)]
    lost = lost_settlement(call.head, b"".join(call.body), call.dispatch.request_sha256)
    return settle_facts(call.dispatch.key, lost)


async def replay(spool: Spool, facts: FactStream, retelling: Retelling) -> None:
    """Settles all left-over calls; back when accounting has them, but for those that it has no room for: these stay in the
    spool until it has."""
    waiting = [(call, (told := facts_of(call)), facts.record(told)) for call in spool.left_over()]
    kept: list[list[pb.Fact]] = []
    for call, told, future in waiting:
        ack = await future
        if ack.reason == FULL:
            kept.append(told)
        elif ack.reason:
            _log.error("accounting refused a left-over receipt: %s (%s)", ack.message, ack.reason)
        else:
            _log.info("a left-over call was settled", extra={"facts": {"settled": call.settle is not None}})
    if waiting:
        _log.info("%d left-over calls were told to accounting", len(waiting) - len(kept))
    for told in kept[:-1]:
        retelling.keep(told, lambda: None)
    if kept:
        # They are told in order.
        retelling.keep(kept[-1], spool.forget_left_over)
    else:
        spool.forget_left_over()
