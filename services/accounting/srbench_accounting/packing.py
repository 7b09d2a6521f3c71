"""The part of a message that no column holds, serialized and compressed against a fixed dictionary.

A row of a hundred bytes compresses by itself to nothing less; against text of its kind it shrinks to a third.
"""

from __future__ import annotations

import threading
from typing import TypeVar

import zstandard
from google.protobuf.message import DecodeError, Message
from srbench_kit.errors import DataLoss

M = TypeVar("M", bound=Message)

# The format's number is the first byte, so that a better dictionary can come beside this one; this one never changes.
_FORMAT = b"\x01"
# Too short to shrink: as it is.
_PLAIN = b"\x02"
_SMALL = 16
_DICTIONARY = (
    b'{"version":1,"complete":true,"calls":[{"model":"","usage":{"input_tokens":,"cache_read_input_tokens":0,'
    b'"cache_creation_input_tokens":0,"output_tokens":,"prompt_cache_hit_tokens":0,"prompt_cache_miss_tokens":}}]}'
    b'{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}}'
    b"strict_format output_limit quality_failure answer_status extracted candidates reference parsed unparsed ambiguous"
    b'the model answered HTTP 400 429 500 503: {"error":{"message":"","type":"invalid_request_error","code":'
    b'{"completion_tokens":,"prompt_tokens":,"total_tokens":,"completion_tokens_details":{"reasoning_tokens":0,'
    b'"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0},'
    b'"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0}}'
    b'{"prompt_tokens":,"completion_tokens":,"total_tokens":,"prompt_tokens_details":{"cached_tokens":0}}'
    b"loop\x9a\x01\x06kernel"
)
_DICT = zstandard.ZstdCompressionDict(_DICTIONARY, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
_PARAMETERS = zstandard.ZstdCompressionParameters.from_level(
    3, format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_content_size=True, write_checksum=False, write_dict_id=False
)


class _Coders(threading.local):
    """Compressor and decompressor of one thread; neither may be shared."""

    def __init__(self) -> None:
        self.packer = zstandard.ZstdCompressor(dict_data=_DICT, compression_params=_PARAMETERS)
        self.unpacker = zstandard.ZstdDecompressor(dict_data=_DICT, format=zstandard.FORMAT_ZSTD1_MAGICLESS)


_coders = _Coders()


def pack(message: Message) -> bytes:
    """The packed bytes of `message`; equal messages of one process give equal bytes. Nothing gives nothing."""
    data = message.SerializeToString(deterministic=True)
    if len(data) <= _SMALL:
        return _PLAIN + data if data else b""
    return _FORMAT + _coders.packer.compress(data)


def unpack(kind: type[M], data: bytes) -> M:
    """The message in `data`. Raises: `DataLoss` (`ROW_DAMAGED`) when it cannot be read."""
    if not data:
        return kind()
    try:
        if data[:1] == _PLAIN:
            return kind.FromString(data[1:])
        if data[:1] != _FORMAT:
            raise ValueError("unknown format")
        return kind.FromString(_coders.unpacker.decompress(data[1:]))
    except (zstandard.ZstdError, DecodeError, ValueError) as error:
        raise DataLoss("ROW_DAMAGED", f"a stored {kind.DESCRIPTOR.name} cannot be read: {error}") from error
