"""A call's evidence as a download that no browser takes for a page."""

from __future__ import annotations

import asyncio

import zstandard
from google.protobuf.message import DecodeError
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.auth import Actor
from srbench_kit.errors import DataLoss, Exhausted
from starlette.responses import Response

from srbench_gateway.answers import API_HEADERS
from srbench_gateway.backends import Backends

MAX_EVIDENCE_BYTES = 256 * 1024 * 1024
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


async def download(backends: Backends, actor: Actor, run_id: str, call_id: str, part: str) -> Response:
    """The `part` (`body` or `headers`) of a call's evidence, as plain text to be saved.

    Raises: `NotFound` (`NO_SUCH_CALL`, `NO_EVIDENCE`), `DataLoss` (`EVIDENCE_DAMAGED`), `Exhausted`
    (`EVIDENCE_TOO_LARGE`), `Unreachable`.
    """
    data = bytearray()
    request = pb.ReadEvidenceRequest(run_id=run_id, call_id=call_id)
    async for chunk in backends.accounting.stream(backends.facts.ReadEvidence, request, actor):
        data += chunk.data
        if len(data) > MAX_EVIDENCE_BYTES:
            raise _too_large(call_id)
    evidence = await asyncio.to_thread(unpack, bytes(data), call_id)
    text = evidence.body if part == "body" else headers_text(evidence)
    headers = API_HEADERS | {
        "content-type": "text/plain; charset=utf-8",
        "content-disposition": f'attachment; filename="{call_id}-{part}.txt"',
        "content-security-policy": "default-src 'none'; sandbox",
    }
    return Response(text, headers=headers)


def unpack(data: bytes, call_id: str) -> pb.Evidence:
    """The evidence in `data`, compressed or not: no field of it starts with the magic number of zstd.

    Raises: `DataLoss` (`EVIDENCE_DAMAGED`), `Exhausted` (`EVIDENCE_TOO_LARGE`).
    """
    try:
        if data.startswith(_ZSTD_MAGIC):
            reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
            data = reader.read(MAX_EVIDENCE_BYTES + 1)
            if len(data) > MAX_EVIDENCE_BYTES:
                raise _too_large(call_id)
        return pb.Evidence.FromString(data)
    except (zstandard.ZstdError, DecodeError):
        raise DataLoss("EVIDENCE_DAMAGED", f"the evidence of {call_id} cannot be read", call=call_id) from None


def headers_text(evidence: pb.Evidence) -> bytes:
    """Status, headers and trailers, one a line."""
    lines = [f"status: {evidence.http_status or 'no answer'}"]
    lines += [f"{header.name}: {header.value}" for header in evidence.headers]
    lines += [f"trailer {header.name}: {header.value}" for header in evidence.trailers]
    lines.append(f"ended by itself: {'yes' if evidence.clean_end else 'no'}")
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _too_large(call_id: str) -> Exhausted:
    return Exhausted("EVIDENCE_TOO_LARGE", f"the evidence of {call_id} is larger than {MAX_EVIDENCE_BYTES} bytes")
