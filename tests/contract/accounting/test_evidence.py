"""Evidence: any size, in parts, checked on the way in and on the way out."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import grpc
import pytest
import zstandard
from grpc import aio
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit import wire

RUN = "run-0123456789abcdef0123"


async def first_call(service: Any) -> pb.Call:
    return (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN))).calls[0]


async def read(service: Any, call_id: str) -> list[pb.EvidenceChunk]:
    request = pb.ReadEvidenceRequest(run_id=RUN, call_id=call_id)
    return [chunk async for chunk in service.gateway.ReadEvidence(request)]


@pytest.mark.parametrize("size", [5_242_880, 4_194_304, 1])
async def test_answers_of_every_size_are_stored_and_readable(service: Any, writer: Any, facts: Any, size: int) -> None:
    body = os.urandom(size)
    message = pb.Evidence(http_status=200, body=body, clean_end=True)
    packed = zstandard.compress(message.SerializeToString())
    assert await writer.reasons(facts.dispatch(0), facts.settle(0, evidence=packed)) == ["", ""]
    chunks = await read(service, (await first_call(service)).id)
    assert max(len(chunk.data) for chunk in chunks) <= 1 << 20
    assert [chunk.offset for chunk in chunks] == [n << 20 for n in range(len(chunks))]
    data = b"".join(chunk.data for chunk in chunks)
    assert hashlib.sha256(data).hexdigest() == (await first_call(service)).evidence_sha256
    assert pb.Evidence.FromString(zstandard.decompress(data)).body == body


async def test_parts_may_come_in_several_messages_and_begin_again(
    service: Any, writer: Any, facts: Any, evidence_of: Any
) -> None:
    packed = evidence_of("A" * 3000)
    parts = facts.parts(facts.key(0), packed, size=20)
    await writer.send(facts.dispatch(0), parts[0], parts[1])
    assert await writer.reasons(parts[:1]) == []
    assert await writer.reasons(parts[1:], facts.settle(0, evidence=packed)[-1]) == [""]
    call = await first_call(service)
    whole = await service.gateway.GetCall(pb.GetCallRequest(run_id=RUN, call_id=call.id))
    assert whole.final == "A" * 3000


async def test_missing_or_different_evidence_is_refused_and_the_call_stays_open(
    service: Any, writer: Any, facts: Any, evidence_of: Any
) -> None:
    settled = facts.settle(0, evidence=evidence_of("A"))
    assert await writer.reasons(facts.dispatch(0), settled[-1]) == ["", "EVIDENCE_MISSING"]
    gap = pb.Fact(sequence=99, evidence=pb.EvidenceChunk(key=facts.key(0), offset=5, data=b"x"))
    assert await writer.reasons(gap, settled[-1]) == ["EVIDENCE_MISSING"]
    assert (await service.spend()).open_call_count == 1
    assert await writer.reasons(settled) == [""]


async def test_damaged_evidence_is_data_loss_and_names_the_segment(
    service: Any, writer: Any, facts: Any, evidence_of: Any, tmp_path: Path
) -> None:
    await writer.send(facts.dispatch(0), facts.settle(0, evidence=evidence_of("A")))
    (segment,) = (tmp_path / "segments").iterdir()
    damaged = bytearray(segment.read_bytes())
    damaged[-1] ^= 1
    segment.write_bytes(damaged)
    call = await first_call(service)
    with pytest.raises(aio.AioRpcError) as caught:
        await read(service, call.id)
    assert caught.value.code() is grpc.StatusCode.DATA_LOSS
    assert wire.reason(caught.value) == "EVIDENCE_DAMAGED"
    assert segment.name in (caught.value.details() or "")
    assert call.evidence_sha256 in (caught.value.details() or "")
    whole = await service.gateway.GetCall(pb.GetCallRequest(run_id=RUN, call_id=call.id))
    assert (whole.HasField("final"), whole.evidence_error) == (False, caught.value.details())
    assert whole.usage == call.usage
    (ack,) = await writer.send(facts.dispatch(0, token=2))
    assert ack.reason == "EVIDENCE_DAMAGED"


async def test_a_call_without_evidence_and_no_call_at_all_are_told_apart(service: Any, writer: Any, facts: Any) -> None:
    await writer.send(facts.dispatch(0), facts.settle(0))
    call = await first_call(service)
    with pytest.raises(aio.AioRpcError) as caught:
        await read(service, call.id)
    assert wire.reason(caught.value) == "NO_EVIDENCE"
    for wrong in ("call-" + "0" * 32, "nonsense", call.id[:-1] + "1", call.id.upper()):
        with pytest.raises(aio.AioRpcError) as caught:
            await read(service, wrong)
        assert wire.reason(caught.value) == "NO_SUCH_CALL"


async def test_one_frame_a_call_and_one_file_for_many(
    service: Any, writer: Any, facts: Any, evidence_of: Any, tmp_path: Path
) -> None:
    for cell in range(8):
        await writer.send(
            facts.dispatch(cell, max_output_tokens=10), facts.settle(cell, evidence=evidence_of(f"answer {cell}"))
        )
    assert len(list((tmp_path / "segments").iterdir())) == 1
    calls = (await service.gateway.ListCalls(pb.ListCallsRequest(run_id=RUN))).calls
    whole = [await service.gateway.GetCall(pb.GetCallRequest(run_id=RUN, call_id=call.id)) for call in calls]
    assert [call.final for call in whole] == [f"answer {cell}" for cell in range(8)]
