"""The files by which a running stack is known: its lock, its record and a workspace's private token.

The lock is the only proof that a stack runs. Every process of the stack holds it (they inherit the descriptor), so it is
free only when all of them are gone. The record says where the stack listens; alone it proves nothing, and a process id in
it is never signalled unless the lock is held and the process started when the record says.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from srbench_kit.errors import Conflict, Exhausted, InvalidInput
from srbench_kit.process_start import process_start

MIN_TOKEN_CHARS = 32
RECORD_VERSION = "sr-bench-1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRecord:
    """What `service.json` says.

    Attributes:
        pid: the supervisor's process.
        process_start: when that process started, in the kernel's ticks since boot, with the boot's id; never reused.
        url: origin of the HTTP face.
        grpc_address: `host:port` of the gRPC front door.
        version: the protocol.
        sockets: folder of the services' sockets.
    """

    pid: int
    process_start: str
    url: str
    grpc_address: str
    version: str
    sockets: str


def store_id(store: Path) -> str:
    """What a service reports as its `store_id`: the SHA-256 of the store's resolved path."""
    return hashlib.sha256(str(store.expanduser().resolve()).encode()).hexdigest()


def make_store(store: Path) -> None:
    """Creates the store with its folder of logs, readable by its owner only. Raises: `InvalidInput` (`BAD_STORE`)."""
    try:
        store.mkdir(parents=True, exist_ok=True, mode=0o700)
        (store / "logs").mkdir(exist_ok=True, mode=0o700)
        if store.stat().st_uid == os.geteuid():
            store.chmod(0o700)
    except OSError as error:
        raise InvalidInput("BAD_STORE", f"the store {store} cannot be used: {error.strerror}", value=store) from None


def take_lock(store: Path) -> int:
    """The descriptor of the store's lock, held from now on. Raises: `Conflict` (`STORE_IN_USE`)."""
    descriptor = os.open(store / "service.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # Whoever looks whether the lock is held holds it for an instant; only what lasts counts.
    for _ in range(20):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return descriptor
    os.close(descriptor)
    record = read_record(store)
    where = f" at {record.url}" if record else ""
    raise Conflict("STORE_IN_USE", f"a service already runs on the store {store}{where}", store=store)


def is_locked(store: Path) -> bool:
    """Whether any process of a stack on this store lives."""
    try:
        descriptor = os.open(store / "service.lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def read_record(store: Path) -> ServiceRecord | None:
    """The record of the stack; `None` when there is none, or one that this program did not write."""
    try:
        found = json.loads((store / "service.json").read_text())
        return ServiceRecord(**{name: found[name] for name in ServiceRecord.__dataclass_fields__})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_record(store: Path, record: ServiceRecord) -> None:
    """Writes the record, whole or not at all."""
    write_private(store / "service.json", json.dumps(asdict(record), indent=2) + "\n")


def running(store: Path) -> ServiceRecord | None:
    """The record of a stack that provably runs; `None` otherwise."""
    record = read_record(store)
    if record is None or not is_locked(store):
        return None
    return record if process_start(record.pid) == record.process_start != "" else None


def write_private(path: Path, text: str) -> None:
    """Replaces `path` by `text`, readable by its owner only, whole or not at all. Raises: `Exhausted` (`STORAGE_FULL`)."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Exhausted("STORAGE_FULL", f"{path} cannot be written: the store has no space left") from None
        raise


@contextlib.contextmanager
def _private_file(path: Path, flags: int) -> Iterator[int]:
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidInput("BAD_TOKEN_FILE", f"{path} cannot be opened as a plain file: {error.strerror}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise InvalidInput("BAD_TOKEN_FILE", f"{path} must be a regular file with one name")
        if stat.S_IMODE(found.st_mode) & 0o077:
            mode = stat.S_IMODE(found.st_mode)
            raise InvalidInput("BAD_TOKEN_FILE", f"{path} has mode {mode:04o}; expected 0600, private to its owner")
        yield descriptor
    finally:
        os.close(descriptor)


def read_token(path: Path) -> str:
    """The token in a private file. Raises: `InvalidInput` (`BAD_TOKEN_FILE`)."""
    with _private_file(path, os.O_RDONLY) as descriptor:
        token = os.read(descriptor, 4096).decode("ascii", "replace").strip()
    if len(token) < MIN_TOKEN_CHARS:
        raise InvalidInput("BAD_TOKEN_FILE", f"{path} holds {len(token)} characters; expected at least {MIN_TOKEN_CHARS}")
    return token


def ensure_token(path: Path) -> str:
    """The token in `path`, made first when there is none. Raises: `InvalidInput` (`BAD_TOKEN_FILE`)."""
    if path.parent.is_symlink():
        raise InvalidInput("BAD_TOKEN_FILE", f"the folder {path.parent} must not be a symbolic link")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _private_file(path, os.O_RDWR | os.O_CREAT) as descriptor:
        # Two first starts at once agree on one token.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_size == 0:
            os.write(descriptor, (secrets.token_urlsafe(48) + "\n").encode())
            os.fsync(descriptor)
    return read_token(path)
