"""A bundle's archive: a plain tar of regular files in which every byte follows from the members' names and contents.

`tar tf` reads it. Reading here accepts nothing that writing here would not have written: no links, no folders, no owners,
no times, no name that leads out of a folder, nothing before, between or after the members. So a byte that changed is
always found, in a header as well as in a content.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from srbench_kit.errors import InvalidInput

BLOCK = 512
MAX_NAME = 100
MAX_MEMBERS = 2_000_000
MAX_MEMBER_BYTES = 4 * 1024**3
COPY_BYTES = 1024 * 1024
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9]+)*(/[a-z0-9][a-z0-9_-]*(\.[a-z0-9]+)*)*\Z")
_END = bytes(2 * BLOCK)


@dataclass(frozen=True, slots=True)
class Member:
    """One file in an archive: its name, where its content begins, its size in bytes."""

    name: str
    offset: int
    size: int


def check_name(name: str) -> None:
    """Raises: `InvalidInput` (`BAD_MEMBER_NAME`) unless `name` is one that bundles use: relative, plain, short."""
    if len(name) > MAX_NAME or not _NAME.match(name):
        raise InvalidInput("BAD_MEMBER_NAME", f"the bundle has a member named {name[:120]!r}, which no bundle has")


def header(name: str, size: int) -> bytes:
    """The 512 bytes before a member's content."""
    fields = (
        name.encode().ljust(100, b"\0"),
        b"0000644\0" + b"0000000\0" * 2,
        b"%011o\0" % size,
        b"00000000000\0",
        b" " * 8,
        b"0",
        bytes(100),
        b"ustar\x0000",
        bytes(64),
        b"0000000\0" * 2,
    )
    block = b"".join(fields).ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


class ArchiveWriter:
    """Writes members one after the other and remembers what it wrote."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.written: dict[str, tuple[int, str]] = {}

    def add(self, name: str, content: bytes) -> None:
        """Appends a member. Raises: `InvalidInput` (`BAD_MEMBER_NAME`, `MEMBER_TOO_LARGE`)."""
        check_name(name)
        if name in self.written or len(self.written) >= MAX_MEMBERS:
            raise InvalidInput("BAD_MEMBER_NAME", f"{name} comes twice, or the bundle has more than {MAX_MEMBERS} members")
        if len(content) > MAX_MEMBER_BYTES:
            raise InvalidInput("MEMBER_TOO_LARGE", f"{name} has {len(content)} bytes; at most {MAX_MEMBER_BYTES} fit")
        self._file.write(header(name, len(content)))
        self._file.write(content)
        self._file.write(bytes(-len(content) % BLOCK))
        self.written[name] = (len(content), hashlib.sha256(content).hexdigest())

    def close(self) -> None:
        """Writes the end."""
        self._file.write(_END)


class Damaged(Exception):
    """The archive is not one that `ArchiveWriter` wrote; the message names the place."""


def read_members(file: IO[bytes]) -> list[Member]:
    """The members of an archive in order, every byte outside their contents checked. Raises: `Damaged`."""
    size = file.seek(0, os.SEEK_END)
    members: list[Member] = []
    names: set[str] = set()
    at = 0
    while True:
        block = _read(file, at, BLOCK)
        if block == bytes(BLOCK):
            break
        member = _member(block, at, size, members)
        if member.name in names or len(members) >= MAX_MEMBERS:
            raise Damaged(f"the member {member.name} at byte {at} comes twice, or there are too many members")
        names.add(member.name)
        members.append(member)
        padding = -member.size % BLOCK
        if _read(file, member.offset + member.size, padding) != bytes(padding):
            raise Damaged(f"the padding after the member {member.name} is damaged")
        at = member.offset + member.size + padding
    if size != at + len(_END) or _read(file, at, len(_END)) != _END:
        raise Damaged(f"the end of the bundle, from byte {at} on, is damaged")
    return members


def _member(block: bytes, at: int, size: int, before: list[Member]) -> Member:
    """The member that a header names. Raises: `Damaged` unless the header is exactly the one for it."""
    place = f"the header at byte {at}" + (f", after the member {before[-1].name}," if before else "")
    name = block[:100].rstrip(b"\0").decode("ascii", "replace")
    digits = block[124:135]
    if len(block) < BLOCK or not re.fullmatch(rb"[0-7]{11}", digits) or not _NAME.match(name):
        raise Damaged(f"{place} is damaged, or the file is no bundle")
    length = int(digits, 8)
    if block != header(name, length):
        raise Damaged(f"{place} is damaged; it seems to be that of {name}")
    if length > MAX_MEMBER_BYTES or at + BLOCK + length > size:
        raise Damaged(f"the member {name} is cut, or larger than {MAX_MEMBER_BYTES} bytes")
    return Member(name, at + BLOCK, length)


def _read(file: IO[bytes], offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)


def read_content(file: IO[bytes], member: Member, most: int = MAX_MEMBER_BYTES) -> bytes:
    """A member's content. Raises: `InvalidInput` (`MEMBER_TOO_LARGE`) when it is longer than `most` bytes."""
    if member.size > most:
        raise InvalidInput("MEMBER_TOO_LARGE", f"{member.name} has {member.size} bytes; expected at most {most}")
    return _read(file, member.offset, member.size)


def content_sha256(file: IO[bytes], member: Member) -> str:
    """The digest of a member's content, read in parts."""
    found = hashlib.sha256()
    for part in _parts(file, member):
        found.update(part)
    return found.hexdigest()


def _parts(file: IO[bytes], member: Member) -> Iterator[bytes]:
    file.seek(member.offset)
    left = member.size
    while left:
        part = file.read(min(left, COPY_BYTES))
        if not part:
            return
        left -= len(part)
        yield part
