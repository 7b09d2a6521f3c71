"""The archive of bundles: every byte is accounted for, and nothing strange is read."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
from srbench_kit import archive
from srbench_kit.archive import ArchiveWriter
from srbench_kit.bundles import MANIFEST, ROOT, SIGNATURE, manifest_bytes, open_bundle, seal
from srbench_kit.errors import InvalidInput
from srbench_kit.signing import Signer, load_signer

CONTENTS = {"bundle.json": b"{}\n", "runs/run-1/calls.jsonl": b"x" * 700, "evidence/empty.zst": b""}


def pem(public: bool = False, key: Any = None) -> bytes:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = key or Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    if public:
        found: bytes = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
        return found
    secret: bytes = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return secret


def bundle(signer: Signer | None = None, contents: dict[str, bytes] = CONTENTS) -> bytes:
    file = io.BytesIO()
    writer = ArchiveWriter(file)
    for name, content in contents.items():
        writer.add(name, content)
    seal(writer, signer)
    return file.getvalue()


def faults(data: bytes, public_key: bytes | None = None) -> list[str]:
    return [name for name, _ in open_bundle(io.BytesIO(data), public_key).problems]


def test_a_bundle_reads_back_and_tar_reads_it_too(tmp_path: Path) -> None:
    data = bundle()
    opened = open_bundle(io.BytesIO(data))
    assert opened.problems == []
    assert {name: opened.content(name) for name in opened.members} == CONTENTS
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert tar.getnames() == [*CONTENTS, MANIFEST, ROOT]
        tar.extractall(tmp_path, filter="data")
    assert (tmp_path / "runs/run-1/calls.jsonl").read_bytes() == CONTENTS["runs/run-1/calls.jsonl"]


@pytest.mark.parametrize("signed", [False, True])
def test_every_single_flipped_byte_is_found_and_named(signed: bool) -> None:
    data = bundle(load_signer(pem()) if signed else None)
    members = archive.read_members(io.BytesIO(data))
    place = {at: member.name for member in members for at in range(member.offset, member.offset + member.size)}
    for at in range(len(data)):
        for bit in (0x01, 0x80):
            flipped = bytearray(data)
            flipped[at] ^= bit
            assert faults(bytes(flipped)) == [place.get(at, "the archive")], (at, bit)


def test_a_cut_or_lengthened_bundle_is_damaged() -> None:
    data = bundle()
    for wrong in (data[:-1], data[:-512], data + b"\0", data + bytes(512), data[512:], b"", b"PK\x03\x04" + bytes(2000)):
        assert faults(wrong) == ["the archive"]


def test_a_missing_an_added_and_a_swapped_member_are_named() -> None:
    without = {name: content for name, content in CONTENTS.items() if name != "bundle.json"}
    for contents, name in (
        (without, "bundle.json"),
        ({**CONTENTS, "evidence/more.zst": b"1"}, "evidence/more.zst"),
        ({**CONTENTS, "bundle.json": b"[]\n"}, "bundle.json"),
    ):
        file = io.BytesIO()
        writer = ArchiveWriter(file)
        for member, content in contents.items():
            writer.add(member, content)
        good = bundle()
        opened = open_bundle(io.BytesIO(good))
        seals = {one.name: one for one in archive.read_members(io.BytesIO(good)) if one.name in (MANIFEST, ROOT)}
        for member, found in seals.items():
            writer.add(member, archive.read_content(opened.file, found))
        writer.close()
        assert faults(file.getvalue()) == [name]


def hostile(info: tarfile.TarInfo, content: bytes = b"") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/passwd", "runs/../../evil", "a//b", "a/./b", "A", "a b", ".hidden", "a/", "runs/\u00e9"]
)
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    assert faults(hostile(tarfile.TarInfo(name), b"x")) == ["the archive"]
    with pytest.raises(InvalidInput):
        archive.check_name(name)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_folders_and_devices_are_refused(kind: bytes) -> None:
    info = tarfile.TarInfo("bundle.json")
    info.type, info.linkname = kind, "/etc/passwd"
    assert faults(hostile(info)) == ["the archive"]


def test_a_member_larger_than_the_file_or_than_any_bundle_has_is_refused() -> None:
    huge = archive.header("bundle.json", archive.MAX_MEMBER_BYTES + 1)
    long = archive.header("bundle.json", 10**6)
    for wrong in (huge, long):
        assert faults(wrong + bytes(4096)) == ["the archive"]


def test_the_same_name_twice_is_refused() -> None:
    one = archive.header("bundle.json", 0)
    assert faults(one + one + bytes(1024)) == ["the archive"]
    writer = ArchiveWriter(io.BytesIO())
    writer.add("bundle.json", b"")
    with pytest.raises(InvalidInput):
        writer.add("bundle.json", b"")


def test_a_signature_is_right_only_by_its_key() -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    data = bundle(load_signer(pem()))
    opened = open_bundle(io.BytesIO(data), pem(public=True))
    assert (opened.problems, opened.signature) == ([], "right, by the key that was given")
    assert open_bundle(io.BytesIO(data)).signature.startswith("right, by the key that it names")
    assert faults(data, pem(public=True, key=Ed25519PrivateKey.generate())) == [SIGNATURE]
    assert faults(bundle(), pem(public=True)) == [SIGNATURE], "a bundle without the wanted signature is no good"


@pytest.mark.parametrize("wrong", [b"", b"no key", pem(public=True)])
def test_a_bad_key_is_said_to_be_one(wrong: bytes) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_signer(wrong)
    assert caught.value.reason == "BAD_KEY"
    with pytest.raises(InvalidInput) as caught:
        open_bundle(io.BytesIO(bundle(load_signer(pem()))), wrong if b"PUBLIC" not in wrong else pem())
    assert caught.value.reason == "BAD_KEY"


def test_the_manifest_follows_from_the_members_alone() -> None:
    written = {"a": (1, "0" * 64)}
    assert manifest_bytes(written) == manifest_bytes(dict(written))
    assert bundle() == bundle()
