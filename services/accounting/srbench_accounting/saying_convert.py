"""Sentences with a code as messages."""

from __future__ import annotations

from collections.abc import Iterable

from srbench.v1 import saying_pb2 as pb
from srbench_kit.saying import Saying


def messages(texts: Iterable[str | None]) -> list[pb.Saying]:
    """The sentences among `texts` that have a code, each once, in their order."""
    found = {text: text for text in texts if isinstance(text, Saying)}
    return [pb.Saying(text=one, code=one.code, facts=one.facts) for one in found.values()]
