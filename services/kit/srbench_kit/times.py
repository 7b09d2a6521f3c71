"""Times in messages. The library's own methods check their range in Python, several times for every call."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp


def fill_time(time: Timestamp, nanoseconds: int) -> None:
    """Sets `time` to `nanoseconds` since 1970."""
    time.seconds, time.nanos = divmod(nanoseconds, 1_000_000_000)
