"""Identifiers that sort by time."""

from __future__ import annotations

import os
import time


def uuid7_hex(now_ms: int | None = None) -> str:
    """A UUIDv7 (RFC 9562) as 32 hex digits: 48 bits of milliseconds, then random."""
    stamp = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    random = int.from_bytes(os.urandom(10), "big")
    value = (stamp & (2**48 - 1)) << 80 | 0x7 << 76 | (random >> 68 & 0xFFF) << 64 | 0b10 << 62 | random & (2**62 - 1)
    return f"{value:032x}"


def run_id() -> str:
    """`run-` and 20 hex digits: 12 of milliseconds, 8 random."""
    return f"run-{time.time_ns() // 1_000_000:012x}{os.urandom(4).hex()}"


def prefixed(prefix: str) -> str:
    """`prefix-` and 32 hex digits."""
    return f"{prefix}-{uuid7_hex()}"
