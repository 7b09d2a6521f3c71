"""A call's texts, read again from its evidence by the reader that the executor used live."""

from __future__ import annotations

from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.completion import Completion, read_answer


def read(evidence: pb.Evidence) -> Completion:
    """What the answer says; nothing here raises, whatever came over the wire."""
    return read_answer(
        evidence.http_status,
        [(header.name, header.value) for header in evidence.headers],
        evidence.body,
        clean_end=evidence.clean_end,
        trailers=[(header.name, header.value) for header in evidence.trailers],
    )
