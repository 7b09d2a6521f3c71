"""Blobs by their SHA-256, zstd-compressed, in a folder or an object store, through `pyarrow.fs`.

Nothing is seen under its name before it is whole: a folder writes beside and renames, an object store publishes on close.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import zstandard

from srbench_kit.errors import DataLoss, NotFound
from srbench_kit.ids import uuid7_hex


class BlobStore:
    """Content-addressed blobs under a URL: `file:///path` (or a plain path) or `s3://bucket/prefix`."""

    def __init__(self, url: str) -> None:
        # pyarrow takes a quarter of a second to import; services that never touch a blob do not pay for it.
        from pyarrow import fs

        self._fs: Any
        if "://" in url:
            self._fs, self._root = fs.FileSystem.from_uri(url)
        else:
            self._fs, self._root = fs.LocalFileSystem(), str(Path(url).absolute())
        self._local = isinstance(self._fs, fs.LocalFileSystem)
        self._file_type = fs.FileType.File

    def put(self, data: bytes) -> str:
        """Stores `data` and returns its SHA-256. Durable on return; storing the same bytes again changes nothing."""
        name = hashlib.sha256(data).hexdigest()
        if self.has(name):
            return name
        path = self._path(name)
        packed = zstandard.compress(data, 9)
        if not self._local:
            with self._fs.open_output_stream(path) as out:
                out.write(packed)
            return name
        Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = f"{path}.{uuid7_hex()}.tmp"
        try:
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(packed)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except OSError:
            Path(beside).unlink(missing_ok=True)
            raise
        return name

    def get(self, name: str) -> bytes:
        """The bytes named `name`. Raises `NotFound` (`NO_SUCH_BLOB`), `DataLoss` (`BLOB_DAMAGED`)."""
        if not self.has(name):
            raise NotFound("NO_SUCH_BLOB", f"there is no blob {name}")
        with self._fs.open_input_stream(self._path(name), compression=None) as file:
            packed = file.read()
        try:
            data: bytes = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
        except zstandard.ZstdError:
            data = b""
        if hashlib.sha256(data).hexdigest() != name:
            raise DataLoss("BLOB_DAMAGED", f"the blob {name} does not match its name")
        return data

    def has(self, name: str) -> bool:
        """Whether the blob is stored."""
        return bool(self._fs.get_file_info(self._path(name)).type == self._file_type)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name[:2]}/{name}.zst"
