"""Opaque page tokens: they carry a position and refuse a changed filter."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json

from srbench_kit.errors import InvalidInput


def page_size(asked: int, default: int, maximum: int) -> int:
    """The page size to use: 0 means `default`, too many means `maximum`. Raises `InvalidInput` below 0."""
    if asked < 0:
        raise InvalidInput("BAD_PAGE_SIZE", f"page_size is {asked}; expected 0 to {maximum}", value=asked)
    return min(asked or default, maximum)


def encode(position: int | str, *filters: object) -> str:
    """A token for the page after `position` under `filters`."""
    return _write(position, _mark(filters))


def decode(token: str, *filters: object) -> int | str | None:
    """The position in `token`; `None` for an empty one. Raises `InvalidInput` (`BAD_PAGE_TOKEN`)."""
    if not token:
        return None
    position, mark = _read(token)
    if mark != _mark(filters):
        raise InvalidInput("BAD_PAGE_TOKEN", "the page token belongs to a request with other filters")
    return position


def as_number(token: str) -> int | None:
    """`token` as the integer cursor of the HTTP API; `None` for an empty one.

    Released clients take integers only, and browsers keep 53 bits of them: 16 are the filters' mark, the rest the
    position, which must be an integer from 0.
    """
    if not token:
        return None
    position, mark = _read(token)
    if not isinstance(position, int) or position < 0:
        raise InvalidInput("BAD_PAGE_TOKEN", "this list has no integer cursors")
    return position << 16 | int(mark, 16)


def from_number(cursor: int) -> str:
    """The token that `as_number` made `cursor` of; an empty one for 0, the beginning."""
    return _write(cursor >> 16, f"{cursor & 0xFFFF:04x}") if cursor else ""


def _mark(filters: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(filters).encode()).hexdigest()[:4]


def _write(position: int | str, mark: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([position, mark]).encode()).decode().rstrip("=")


def _read(token: str) -> tuple[int | str, str]:
    try:
        padded = token + "=" * (-len(token) % 4)
        position, mark = json.loads(base64.urlsafe_b64decode(padded))
    except (ValueError, TypeError, RecursionError, binascii.Error):
        raise InvalidInput("BAD_PAGE_TOKEN", "the page token is not one that this service gave out") from None
    if not isinstance(mark, str) or not isinstance(position, int | str):
        raise InvalidInput("BAD_PAGE_TOKEN", "the page token is not one that this service gave out")
    return position, mark
