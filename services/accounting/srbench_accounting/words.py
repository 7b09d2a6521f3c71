"""Words as a store's vocabulary holds them. Pure."""

from __future__ import annotations

MAX_WORD = 256


def clip(text: str) -> str:
    """What the vocabulary holds of `text`: 256 characters, and no NUL, which PostgreSQL cannot store."""
    return text[:MAX_WORD].replace("\0", "") if len(text) > MAX_WORD or "\0" in text else text
