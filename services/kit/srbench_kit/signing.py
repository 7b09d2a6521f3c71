"""Ed25519 signatures of bundles. The package `cryptography` is optional: it is imported only when a key is used."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

ALGORITHM = "ed25519"
_NEEDS = "signatures need the package `cryptography`: pip install 'sr-bench[sign]'"


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key that can sign."""

    key: Any

    def sign(self, text: bytes) -> dict[str, Json]:
        """The signature of `text` as it stands in a bundle."""
        return {
            "algorithm": ALGORITHM,
            "public_key": self.key.public_key().public_bytes_raw().hex(),
            "signature": self.key.sign(text).hex(),
        }


def load_signer(pem: bytes) -> Signer:
    """The private key in `pem` (PKCS 8, no password). Raises: `InvalidInput` (`NO_CRYPTOGRAPHY`, `BAD_KEY`)."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise InvalidInput("NO_CRYPTOGRAPHY", _NEEDS) from None
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInput("BAD_KEY", "the signing key is no PEM of an Ed25519 private key without a password")
    return Signer(key)


def public_key_hex(pem: bytes) -> str:
    """The raw public key in `pem`, in hex. Raises: `InvalidInput` (`NO_CRYPTOGRAPHY`, `BAD_KEY`)."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        raise InvalidInput("NO_CRYPTOGRAPHY", _NEEDS) from None
    try:
        key = load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidInput("BAD_KEY", "the public key is no PEM of an Ed25519 public key")
    return key.public_bytes_raw().hex()


def bad_signature(signature: bytes, text: bytes, public_key: bytes | None = None) -> str:
    """Why `signature` (its JSON) is none of `text`; empty when it is one, `unchecked` when that cannot be told here.

    Args:
        public_key: the PEM of the key that must have signed; `None` for whichever the signature names.

    Raises: `InvalidInput` (`NO_CRYPTOGRAPHY`, `BAD_KEY`) when a key is given and cannot be used.
    """
    wanted = None if public_key is None else public_key_hex(public_key)
    try:
        value = json.loads(signature)
        named, raw = bytes.fromhex(value["public_key"]), bytes.fromhex(value["signature"])
        known = value["algorithm"] == ALGORITHM
    except (ValueError, TypeError, KeyError, RecursionError):
        return "it cannot be read"
    if not known:
        return f"its algorithm is not {ALGORITHM}"
    if wanted is not None and named.hex() != wanted:
        return f"it is by the key {named.hex()}, not by the one given, {wanted}"
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return "unchecked"
    try:
        Ed25519PublicKey.from_public_bytes(named).verify(raw, text)
    except (InvalidSignature, ValueError):
        return "it is no signature of this manifest by the key it names"
    return ""
