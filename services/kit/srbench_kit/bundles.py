"""What a bundle holds besides its members: a manifest of their digests, perhaps a signature, and the root over both.

`manifest.json` follows from the members alone, `root.json` from manifest and signature; so whichever of them is damaged can
be told apart and named.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO

from srbench_kit import archive
from srbench_kit.archive import ArchiveWriter, Damaged, Member
from srbench_kit.canonical import canonical_bytes
from srbench_kit.signing import Signer, bad_signature
from srbench_kit.values import Json

FORMAT = "sr-bench-bundle-v1"
MANIFEST, SIGNATURE, ROOT = "manifest.json", "signature.json", "root.json"
SEALS = (MANIFEST, SIGNATURE, ROOT)
MAX_SEAL_BYTES = 512 * 1024 * 1024


def manifest_bytes(members: Mapping[str, tuple[int, str]]) -> bytes:
    """The manifest of members, by name: (size, SHA-256)."""
    rows: list[Json] = [{"name": name, "size": size, "sha256": sha256} for name, (size, sha256) in members.items()]
    return canonical_bytes({"format": FORMAT, "members": rows})


def root_bytes(manifest: bytes, signature: bytes | None) -> bytes:
    """The root: the digests of manifest and signature."""
    return canonical_bytes(
        {
            "manifest_sha256": hashlib.sha256(manifest).hexdigest(),
            "signature_sha256": None if signature is None else hashlib.sha256(signature).hexdigest(),
        }
    )


def signed_text(manifest: bytes) -> bytes:
    """What a signature is of."""
    return f"{FORMAT}\n{hashlib.sha256(manifest).hexdigest()}\n".encode()


def seal(writer: ArchiveWriter, signer: Signer | None) -> str:
    """Appends manifest, signature and root, and ends the archive. Gives the root digest, the manifest's SHA-256."""
    manifest = manifest_bytes(writer.written)
    writer.add(MANIFEST, manifest)
    signature = None
    if signer is not None:
        signature = canonical_bytes(signer.sign(signed_text(manifest)))
        writer.add(SIGNATURE, signature)
    writer.add(ROOT, root_bytes(manifest, signature))
    writer.close()
    return hashlib.sha256(manifest).hexdigest()


@dataclass(slots=True)
class Opened:
    """A bundle whose digests were checked.

    Attributes:
        members: by name, in order; without the seals.
        problems: what is damaged: (member or place, what is wrong with it).
        root_sha256: the manifest's digest; empty when there is none.
        signature: what the signature says, checked or not; empty when there is none.
        signer: the public key in the signature, in hex.
    """

    file: IO[bytes]
    members: dict[str, Member] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    root_sha256: str = ""
    signature: str = ""
    signer: str = ""

    def content(self, name: str, most: int = archive.MAX_MEMBER_BYTES) -> bytes:
        """A member's content. Raises: `KeyError`, `InvalidInput` (`MEMBER_TOO_LARGE`)."""
        return archive.read_content(self.file, self.members[name], most)

    @property
    def damaged(self) -> frozenset[str]:
        """Names of what is damaged."""
        return frozenset(name for name, _ in self.problems)


def open_bundle(file: IO[bytes], public_key: bytes | None = None) -> Opened:
    """Reads an archive and checks every byte of it. `public_key`: the PEM that must have signed it.

    Raises: `InvalidInput` (`NO_CRYPTOGRAPHY`, `BAD_KEY`) when a key is given and cannot be used.
    """
    opened = Opened(file)
    try:
        members = archive.read_members(file)
    except Damaged as error:
        opened.problems.append(("the archive", str(error)))
        return opened
    seals = {member.name: member for member in members if member.name in SEALS}
    opened.members = {member.name: member for member in members if member.name not in SEALS}
    order = [member.name for member in members]
    expected = [*opened.members, *(name for name in SEALS if name in seals)]
    if order != expected or MANIFEST not in seals or ROOT not in seals:
        opened.problems.append(("the archive", "manifest.json and root.json do not stand at its end"))
        return opened
    found = {name: (member.size, archive.content_sha256(file, member)) for name, member in opened.members.items()}
    contents = {name: archive.read_content(file, member, MAX_SEAL_BYTES) for name, member in seals.items()}
    _check_seals(opened, found, contents)
    # A damaged list is not what was signed; the members are.
    signed = manifest_bytes(found) if MANIFEST in opened.damaged else contents[MANIFEST]
    _check_signature(opened, contents.get(SIGNATURE), signed, public_key)
    return opened


def _check_seals(opened: Opened, found: dict[str, tuple[int, str]], contents: dict[str, bytes]) -> None:
    manifest, signature, root = contents[MANIFEST], contents.get(SIGNATURE), contents[ROOT]
    opened.root_sha256 = hashlib.sha256(manifest).hexdigest()
    if manifest_bytes(found) == manifest:
        if root_bytes(manifest, signature) != root:
            opened.problems.append(_broken_root(manifest, signature, root))
        return
    listed = _listed(manifest)
    if root_bytes(manifest_bytes(found), signature) == root:
        # The members are what the root stands for; it is the list that changed.
        opened.problems.append((MANIFEST, "it does not list the members as they are"))
        return
    opened.problems += [
        (name, f"it has SHA-256 {sha256}; expected {listed[name]}" if name in listed else "the manifest does not list it")
        for name, (_, sha256) in found.items()
        if listed.get(name) != sha256
    ]
    opened.problems += [(name, "the manifest lists it, but it is not there") for name in listed if name not in found]
    if root_bytes(manifest, signature) != root or not opened.problems:
        opened.problems.append((MANIFEST, "its digest is not the root's"))


def _broken_root(manifest: bytes, signature: bytes | None, root: bytes) -> tuple[str, str]:
    """Whether the signature or the root changed: the root holds the manifest's right digest when it is the signature."""
    try:
        value = json.loads(root)
    except ValueError:
        value = None
    sha256 = hashlib.sha256(manifest).hexdigest()
    whole = isinstance(value, dict) and canonical_bytes(value) == root and value.get("manifest_sha256") == sha256
    if whole and signature is not None and bad_signature(signature, signed_text(manifest)):
        return SIGNATURE, "its digest is not the root's"
    return ROOT, "it does not hold the digests of manifest and signature"


def _check_signature(opened: Opened, signature: bytes | None, manifest: bytes, public_key: bytes | None) -> None:
    if signature is None:
        if public_key is not None:
            opened.problems.append((SIGNATURE, "a public key was given, but the bundle is not signed"))
        return
    fault = bad_signature(signature, signed_text(manifest), public_key)
    opened.signer = _signer(signature)
    if fault == "unchecked":
        opened.signature = "not checked: the package `cryptography` is not installed (pip install 'sr-bench[sign]')"
    elif fault:
        opened.signature = f"wrong: {fault}"
        if SIGNATURE not in opened.damaged:
            opened.problems.append((SIGNATURE, fault))
    else:
        trusted = (
            "the key that was given" if public_key is not None else "the key that it names; whose that is was not asked"
        )
        opened.signature = f"right, by {trusted}"


def _signer(signature: bytes) -> str:
    try:
        value = json.loads(signature)
    except ValueError:
        return ""
    key = value.get("public_key") if isinstance(value, dict) else None
    return key if isinstance(key, str) else ""


def _listed(manifest: bytes) -> dict[str, str]:
    """The digests that a manifest lists; nothing of what cannot be read."""
    try:
        value = json.loads(manifest)
        return {str(row["name"]): str(row["sha256"]) for row in value["members"]}
    except (ValueError, TypeError, KeyError, RecursionError):
        return {}
