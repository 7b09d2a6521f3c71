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
    text = json.dumps([position, _mark(filters)])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(token: str, *filters: object) -> int | str | None:
    """The position in `token`; `None` for an empty one. Raises `InvalidInput` (`BAD_PAGE_TOKEN`)."""
    if not token:
        return None
    try:
        padded = token + "=" * (-len(token) % 4)
        position, mark = json.loads(base64.urlsafe_b64decode(padded))
    except (ValueError, binascii.Error):
        raise InvalidInput("BAD_PAGE_TOKEN", "page_token is not one that this service gave out") from None
    if mark != _mark(filters) or not isinstance(position, int | str):
        raise InvalidInput("BAD_PAGE_TOKEN", "page_token belongs to a request with other filters")
    return position


def _mark(filters: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(filters).encode()).hexdigest()[:8]
