"""Whole objects by path below a URL: a folder (`file://` or a plain path) or an S3-compatible store, through `pyarrow.fs`.

Nothing is seen under its path before it is whole: a folder writes beside and renames, S3 publishes when an upload ends.
An object store that does not answer is `Unreachable` (`OBJECT_STORE_UNAVAILABLE`); a full disk stays an `OSError`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from srbench_kit import durable
from srbench_kit.errors import InvalidInput, NotFound, Unreachable

T = TypeVar("T")
# How long the planner's reads and writes wait for a store that is away, before their caller is told.
PATIENCE_S = 30.0
CONNECT_S, REQUEST_S = 3.0, 20.0
_PAUSES_S = (0.2, 0.5, 1.0, 2.0)
_S3_OPTIONS = ("endpoint_override", "scheme", "region")
_FLAGS = ("force_virtual_addressing", "create_bucket")
_AWS_CODE = re.compile(r"AWS Error ([A-Z_]+)")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object: its path below the root, its size, when it was written (seconds since 1970)."""

    path: str
    byte_count: int
    write_time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a URL leads: the bucket and prefix, or the folder; S3 options."""

    root: str
    s3: bool
    options: dict[str, str]


def parse_url(url: str) -> _Place:
    """What `url` names. Raises: `InvalidInput` (`BAD_OBJECTS_URL`)."""
    if "://" not in url:
        return _Place(root=str(Path(url).absolute()), s3=False, options={})
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise _bad(parts._replace(netloc=parts.hostname or "").geturl(), "no credentials; they come from AWS_* variables")
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/") or parts.query:
            raise _bad(url, "file:///an/absolute/path")
        return _Place(root=unquote(parts.path).rstrip("/") or "/", s3=False, options={})
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.scheme != "s3" or not _BUCKET.match(parts.netloc):
        raise _bad(url, "s3://bucket/prefix or file:///path")
    unknown = sorted(set(options) - {*_S3_OPTIONS, *_FLAGS})
    if unknown:
        raise _bad(url, f"no option but {', '.join((*_S3_OPTIONS, *_FLAGS))}; it has {unknown[0]!r}")
    flag = next((name for name in _FLAGS if options.get(name, "true") not in ("true", "false")), None)
    if flag is not None:
        raise _bad(url, f"{flag}=true or {flag}=false")
    return _Place(root=f"{parts.netloc}/{unquote(parts.path).strip('/')}".rstrip("/"), s3=True, options=options)


def _bad(url: str, expected: str) -> InvalidInput:
    return InvalidInput("BAD_OBJECTS_URL", f"the object store's address is {url!r}; expected {expected}", value=url)


class Objects:
    """The objects below one URL. Safe to use from several threads."""

    def __init__(self, url: str, *, patience_s: float = 0.0) -> None:
        """`patience_s`: how long each operation goes on trying while the store does not answer.

        Raises: `InvalidInput` (`BAD_OBJECTS_URL`).
        """
        place = parse_url(url)
        self.remote = place.s3
        self._root = place.root
        self._patience_s = patience_s
        self._creates_bucket = place.options.get("create_bucket") == "true"
        # pyarrow takes a quarter of a second to import; services that never touch an object do not pay for it.
        from pyarrow import fs

        self._file_type = fs.FileType.File
        self._selector = fs.FileSelector
        self._fs: Any = _s3(place.options) if place.s3 else fs.LocalFileSystem()

    def put(self, path: str, data: bytes) -> None:
        """Stores `data` under `path`; durable and whole on return. Raises: `Unreachable`, `OSError` of a folder's disk."""
        if not self.remote:
            self._put_file(path, data)
            return
        self._patiently(lambda: self._upload(path, data))

    def get(self, path: str) -> bytes:
        """The whole object. Raises: `NotFound` (`NO_SUCH_OBJECT`), `Unreachable`."""

        def read() -> bytes:
            with self._fs.open_input_stream(self._full(path), compression=None) as file:
                return bytes(file.read())

        return self._patiently(lambda: self._found(path, read))

    def read_at(self, path: str, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset`. Raises: `NotFound` (`NO_SUCH_OBJECT`), `Unreachable`."""

        def read() -> bytes:
            with self._fs.open_input_file(self._full(path)) as file:
                size = file.size()
                return bytes(file.read_at(min(length, max(0, size - offset)), offset)) if offset < size else b""

        return self._patiently(lambda: self._found(path, read))

    def info(self, path: str) -> ObjectInfo | None:
        """Size and time of an object; `None` when there is none. Raises: `Unreachable`."""
        found = self._patiently(lambda: self._fs.get_file_info(self._full(path)))
        return ObjectInfo(path, int(found.size), _seconds(found)) if found.type == self._file_type else None

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """All objects below the folder `prefix`, in no order; those being written are left out. Raises: `Unreachable`."""
        selector = self._selector(self._full(prefix), recursive=True, allow_not_found=True)
        for found in self._patiently(lambda: self._fs.get_file_info(selector)):
            if found.type == self._file_type and not found.path.endswith(".tmp"):
                yield ObjectInfo(found.path[len(self._root) + 1 :], int(found.size), _seconds(found))

    def delete(self, path: str) -> None:
        """Deletes an object; one that is not there is no error. Raises: `Unreachable`."""

        def work() -> None:
            with suppress(FileNotFoundError):
                self._fs.delete_file(self._full(path))

        self._patiently(work)

    def check_bucket(self) -> None:
        """Raises: `NotFound` (`NO_SUCH_BUCKET`) when an S3 bucket is not there; `Unreachable`."""
        bucket = self._root.partition("/")[0]
        if self._creates_bucket:
            return
        if self.remote and self._patiently(lambda: self._fs.get_file_info(bucket)).type.name == "NotFound":
            raise NotFound("NO_SUCH_BUCKET", f"there is no bucket {bucket!r} in the object store", bucket=bucket)

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _upload(self, path: str, data: bytes) -> None:
        if self._creates_bucket:
            self._fs.create_dir(self._root.partition("/")[0], recursive=False)
            self._creates_bucket = False
        # One write of bytes that are all there: pyarrow publishes what was written so far when a stream is closed early,
        # so nothing that may fail stands between its open and its close.
        with self._fs.open_output_stream(self._full(path), compression=None) as out:
            out.write(data)

    def _put_file(self, path: str, data: bytes) -> None:
        durable.write_whole(Path(self._full(path)), data)

    def _found(self, path: str, read: Callable[[], T]) -> T:
        try:
            return read()
        except FileNotFoundError:
            raise NotFound("NO_SUCH_OBJECT", f"there is no object {path}", path=path) from None

    def _patiently(self, work: Callable[[], T]) -> T:
        """Runs `work`, again and again while the store is away and there is patience left."""
        give_up_at = time.monotonic() + self._patience_s
        tries = 0
        while True:
            try:
                return work()
            except OSError as error:
                if not self.remote or isinstance(error, FileNotFoundError):
                    raise
                pause_s = _PAUSES_S[min(tries, len(_PAUSES_S) - 1)]
                if time.monotonic() + pause_s > give_up_at:
                    raise _unavailable(error) from error
            tries += 1
            time.sleep(pause_s)


def _s3(options: dict[str, str]) -> Any:
    from pyarrow import fs

    return fs.S3FileSystem(
        **{key: value for key, value in options.items() if key in _S3_OPTIONS},
        force_virtual_addressing=options.get("force_virtual_addressing") == "true",
        allow_bucket_creation=options.get("create_bucket") == "true",
        connect_timeout=CONNECT_S,
        request_timeout=REQUEST_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=2),
        # Small objects in one request.
        allow_delayed_open=True,
        # A failed part is remembered until the close, which then completes nothing. Without, a close after a failed first
        # part completes the upload with an empty one.
        background_writes=True,
    )


def _unavailable(error: OSError) -> Unreachable:
    # The text of the AWS library names addresses and may name key ids; its code says enough.
    code = _AWS_CODE.search(str(error))
    what = code.group(1) if code else "no answer"
    return Unreachable("OBJECT_STORE_UNAVAILABLE", f"the object store does not serve us: {what}", code=what)


def _seconds(found: Any) -> float:
    return float(found.mtime_ns or 0) / 1e9
