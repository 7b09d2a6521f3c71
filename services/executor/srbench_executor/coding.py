"""Undoing a content coding that nobody asked for, piece by piece and within bounds."""

from __future__ import annotations

import zlib

from srbench_kit.completion import CODINGS, codings

_BLOCK = 256 * 1024
# With what an event stream or JSON begins; a gzip member begins otherwise.
_TEXT = b"deir:{[ \t\r\n\xef"
_GZIP = b"\x1f"


class BadCoding(Exception):
    """The body is not what its `content-encoding` says, or is coded in a way that we do not read."""


class Decoder:
    """Undoes `gzip` or `deflate`."""

    def __init__(self, coding: str) -> None:
        """Raises: `BadCoding` for any other coding."""
        self._gzip = coding != "deflate"
        self._raw_tried = self._gzip
        if coding not in CODINGS:
            raise BadCoding(f"the endpoint coded its answer as {coding}, which was not asked for")
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
        # `None` until the first byte has come.
        self._plain: bool | None = None

    def feed(self, data: bytes, room: int) -> bytes:
        """What `data` holds; stops soon after `room` bytes. Raises: `BadCoding`.

        A gateway may undo a coding and leave its header in place: a body that begins as texts do is given as it is.
        """
        if self._plain is None and data:
            # Raw `deflate` may begin with any byte.
            self._plain = self._gzip and data[:1] in _TEXT
        if self._plain:
            return data
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
            data = self._inflate.unconsumed_tail or self._next_member()
            parts.append(part)
            size += len(part)
        return b"".join(parts)

    def _next_member(self) -> bytes:
        """What follows a gzip member that has ended, for a new one to read: a gzip body may have several."""
        rest = self._inflate.unused_data.lstrip(b"\0") if self._inflate.eof and self._gzip else b""
        if rest:
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        return rest

    def _inflate_again(self, data: bytes) -> bytes:
        try:
            return self._inflate.decompress(data, _BLOCK)
        except zlib.error as error:
            raise BadCoding(f"the endpoint's compressed body is damaged: {error}") from error


def unannounced(data: bytes) -> Decoder | None:
    """What undoes a body that begins with `data` and has no `content-encoding`: no text begins as a gzip member does."""
    return Decoder("gzip") if data[:1] == _GZIP else None


def decoder_for(coding: str) -> Decoder | None:
    """What undoes the `content-encoding` named; `None` when there is nothing to undo. Raises: `BadCoding`."""
    names = codings(coding)
    if not names:
        return None
    if len(names) > 1:
        raise BadCoding(f"the endpoint coded its answer as {coding}, which was not asked for")
    return Decoder(names[0])
