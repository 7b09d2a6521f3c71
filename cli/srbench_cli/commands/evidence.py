"""`evidence`: what was exchanged over the wire in one call, checked against its digest."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import click
import zstandard
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.errors import DataLoss, NotFound

from srbench_cli import printing
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.terminal import many_lines


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("call_id", metavar="CALL")
@click.option("--output", type=click.Path(path_type=Path), help="New file; without it the answer goes to stdout.")
@click.option(
    "--stored", is_flag=True, help="The stored bytes (zstd of a serialized Evidence) instead of the answer's body."
)
@shared_options
@pass_session
def evidence(session: Session, run_id: str, call_id: str, output: Path | None, stored: bool) -> None:
    """Downloads a call's evidence: the body of the answer as it was received, or all that is stored."""
    printing.check_new_file(output)
    packed = _checked(session, run_id, call_id)
    data = packed if stored else unpack(packed).body
    if output is not None:
        printing.write_new_file(output, data)
        printing.notice(f"wrote {len(data)} bytes to {output}; they match their digest")
    elif sys.stdout.isatty():
        click.echo(many_lines(data.decode("utf-8", "backslashreplace")))
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _checked(session: Session, run_id: str, call_id: str) -> bytes:
    """The stored bytes. Raises: `NotFound` (`NO_EVIDENCE`), `DataLoss` (`EVIDENCE_DAMAGED`)."""
    door = session.door
    call = door.call(door.accounting.GetCall, pb.GetCallRequest(run_id=run_id, call_id=call_id))
    if not call.evidence_sha256:
        raise NotFound("NO_EVIDENCE", f"the call {call_id} has no evidence", call=call_id)
    chunks = door.stream(door.accounting.ReadEvidence, pb.ReadEvidenceRequest(run_id=run_id, call_id=call_id))
    packed = b"".join(chunk.data for chunk in chunks)
    if hashlib.sha256(packed).hexdigest() != call.evidence_sha256:
        raise DataLoss("EVIDENCE_DAMAGED", f"the evidence of {call_id} does not match its digest {call.evidence_sha256}")
    return packed


def unpack(packed: bytes) -> pb.Evidence:
    """The evidence in stored bytes. Raises: `DataLoss` (`EVIDENCE_DAMAGED`)."""
    try:
        return pb.Evidence.FromString(zstandard.ZstdDecompressor().decompressobj().decompress(packed))
    except (zstandard.ZstdError, ValueError):
        raise DataLoss("EVIDENCE_DAMAGED", "the stored bytes are no zstd-compressed Evidence") from None
