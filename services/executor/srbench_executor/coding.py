"""Undoing a content coding that nobody asked for, piece by piece and within bounds."""

from __future__ import annotations

import zlib

_BLOCK = 256 * 1024


class BadCoding(Exception):
    """The body is not what its `content-encoding` says, or is coded in a way that we do not read."""


class Decoder:
    """Undoes `gzip` or `deflate`."""

    def __init__(self, coding: str) -> None:
        """Raises: `BadCoding` for any other coding."""
        self._raw_tried = coding != "deflate"
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise BadCoding(f"the endpoint coded its answer as {coding}, which was not asked for")
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def feed(self, data: bytes, room: int) -> bytes:
        """What `data` holds; stops soon after `room` bytes. Raises: `BadCoding`."""
        parts: list[bytes] = []
        size = 0
        while data and size <= room:
            try:
                part = self._inflate.decompress(data, _BLOCK)
            except zlib.error as error:
                if self._raw_tried:
                    raise BadCoding(f"the endpoint's compressed body is damaged: {error}") from error
                # Some servers send `deflate` without its two bytes of head.
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
                part = self._inflate_again(data)
            self._raw_tried = True
            data = self._inflate.unconsumed_tail
            parts.append(part)
            size += len(part)
        return b"".join(parts)

    def _inflate_again(self, data: bytes) -> bytes:
        try:
            return self._inflate.decompress(data, _BLOCK)
        except zlib.error as error:
            raise BadCoding(f"the endpoint's compressed body is damaged: {error}") from error


def decoder_for(coding: str) -> Decoder | None:
    """What undoes the `content-encoding` named; `None` when there is nothing to undo. Raises: `BadCoding`."""
    names = [name.strip().lower() for name in coding.split(",") if name.strip().lower() not in ("", "identity")]
    if not names:
        return None
    if len(names) > 1:
        raise BadCoding(f"the endpoint coded its answer as {coding}, which was not asked for")
    return Decoder(names[0])
