"""Blobs by their SHA-256, zstd-compressed, in a folder or an object store.

Nothing is seen under its name before it is whole, see `objects`.
"""

from __future__ import annotations

import hashlib
import time

import zstandard

from srbench_kit.errors import DataLoss, NotFound
from srbench_kit.objects import PATIENCE_S, Objects

# A blob that is stored again is written again when it is older than this: garbage collection takes only older ones.
REFRESH_S = 3600.0
_SUFFIX = ".zst"


class BlobStore:
    """Content-addressed blobs under a URL: `file:///path` (or a plain path) or `s3://bucket/prefix`."""

    def __init__(self, url: str, prefix: str = "") -> None:
        self._objects = Objects(url, patience_s=PATIENCE_S)
        self._prefix = prefix.strip("/")

    def put(self, data: bytes) -> str:
        """Stores `data` and returns its SHA-256. Durable on return; storing the same bytes again mends a damaged blob and
        otherwise changes nothing."""
        name = hashlib.sha256(data).hexdigest()
        found = self._objects.info(self._path(name))
        if found is None or time.time() - found.write_time_s > REFRESH_S or not self._whole(name):
            self._objects.put(self._path(name), zstandard.compress(data, 9))
        return name

    def get(self, name: str) -> bytes:
        """The bytes named `name`. Raises `NotFound` (`NO_SUCH_BLOB`), `DataLoss` (`BLOB_DAMAGED`), `Unreachable`."""
        try:
            packed = self._objects.get(self._path(name))
        except NotFound:
            raise NotFound("NO_SUCH_BLOB", f"there is no blob {name}") from None
        try:
            data: bytes = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
        except zstandard.ZstdError:
            data = b""
        if hashlib.sha256(data).hexdigest() != name:
            raise DataLoss("BLOB_DAMAGED", f"the blob {name} does not match its name")
        return data

    def has(self, name: str) -> bool:
        """Whether the blob is stored."""
        return self._objects.info(self._path(name)) is not None

    def _whole(self, name: str) -> bool:
        try:
            self.get(name)
        except (DataLoss, NotFound):
            return False
        return True

    def _path(self, name: str) -> str:
        return f"{self._prefix}/{name[:2]}/{name}{_SUFFIX}".lstrip("/")


def name_of(path: str) -> str | None:
    """The name of the blob that lies at `path`; `None` when no blob does."""
    base = path.rpartition("/")[2]
    return base.removesuffix(_SUFFIX) if base.endswith(_SUFFIX) else None
