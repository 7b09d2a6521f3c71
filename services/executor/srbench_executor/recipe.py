"""What is kept of a router's configuration: what decides, without secrets and without where it is deployed. Pure."""

from __future__ import annotations

import ipaddress
import itertools
import re
from dataclasses import dataclass

from srbench_kit.canonical import digest
from srbench_kit.completion import Headers, header
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

KEPT = ("recipes", "entrypoints", "evaluation", "routing")
REDACTED = "<redacted>"
MAX_REDACTIONS = 1000
_HASH = re.compile(r"[0-9a-f]{64}\Z")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_SECRET_WORDS = frozenset(
    {"token", "secret", "secrets", "password", "passwd", "credential", "credentials", "authorization", "apikey", "bearer"}
    | {"cookie", "passphrase"}
)
_SECRET_PAIRS = frozenset({("api", "key"), ("private", "key"), ("access", "key"), ("signing", "key")})
_DEPLOYMENT_WORDS = frozenset(
    {"url", "uri", "endpoint", "endpoints", "host", "hosts", "hostname", "address", "addresses", "ip", "port", "ports"}
    | {"path", "paths", "file", "filename", "dir", "directory", "namespace", "cluster", "socket", "dsn", "bucket", "volume"}
    | {"volumes", "mount", "mounts", "image", "env", "environment", "listener", "listeners"}
)
_LOOKS_DEPLOYED = re.compile(
    r"[a-zA-Z][a-zA-Z0-9+.-]*://"
    r"|(?:^|[\s'\"=(])(?:/|~/|\.{1,2}/|[A-Za-z]:\\)[\w.-]+"
    r"|\blocalhost\b"
    r"|\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:local|internal|svc|lan|corp|intranet|intra|private)\b"
    r"|^[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*:\d{2,5}$",
)
_LOOKS_SECRET = re.compile(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}|\bhf_[A-Za-z0-9]{8,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bxox[abprs]-|\bAKIA[0-9A-Z]{12,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.|(?i:bearer)\s+\S{8,}",
)
_LONG = re.compile(r"[A-Za-z0-9_+/=-]{32,}")
_IP = re.compile(r"[0-9A-Fa-f:.]{3,}")


class BadRecipe(Exception):
    """The router's configuration cannot be taken for the one under test; `reason` is stable."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashes:
    """The router's own names for its configuration: of the source, of what was made of it, of what runs."""

    source: str
    generated: str
    active: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What is kept, the digest of that, and where something was taken out."""

    document: dict[str, Json]
    sha256: str
    redactions: tuple[str, ...]


def read_hashes(document: Json, config_hash: str) -> Hashes:
    """The hashes in the router's hash document, which must name `config_hash` as what runs. Raises: `BadRecipe`."""
    found = document if isinstance(document, dict) else {}
    values: list[str] = []
    for name in ("source_config_hash", "generated_runtime_hash", "active_runtime_hash"):
        value = found.get(name)
        if not isinstance(value, str) or not _HASH.match(value):
            raise BadRecipe("protocol_error", f"{name} is {value!r}; expected 64 lower-case hex digits")
        values.append(value)
    hashes = Hashes(source=values[0], generated=values[1], active=values[2])
    status = found.get("activation_status")
    if status != "active":
        raise BadRecipe("not_active", f"activation_status is {status!r}; expected 'active'")
    if not hashes.generated == hashes.active == config_hash:
        raise BadRecipe(
            "config_hash_mismatch",
            f"the router runs {hashes.active} and made {hashes.generated}; the plan names {config_hash}",
        )
    return hashes


def check_bracket(before: Hashes, headers: Headers, after: Hashes) -> None:
    """Refuses a configuration that may have changed while it was read. Raises: `BadRecipe`."""
    tag = header(headers, "etag")
    if tag != f'"{before.source}"':
        raise BadRecipe("etag_mismatch", f"the ETag of the configuration is {tag!r}; expected the quoted source hash")
    if after != before:
        raise BadRecipe("config_changed", "the configuration changed while it was read")


def project(config: Json) -> Projection:
    """The parts of a configuration that decide, cleaned. Raises: `BadRecipe`."""
    if not isinstance(config, dict):
        raise BadRecipe("protocol_error", "the configuration is no JSON object")
    kept: dict[str, Json] = {name: config[name] for name in KEPT if name in config}
    learning = _at(config, "global", "router", "learning")
    if learning is not None:
        kept["learning"] = learning
    if not kept:
        raise BadRecipe("protocol_error", f"the configuration has none of {', '.join(KEPT)}")
    redactions: list[str] = []
    document = {name: _clean(value, name, redactions) for name, value in kept.items()}
    try:
        sha256 = digest(document)
    except InvalidInput as error:
        raise BadRecipe("protocol_error", error.message) from None
    return Projection(document=document, sha256=sha256, redactions=tuple(redactions[:MAX_REDACTIONS]))


def _at(value: Json, *keys: str) -> Json:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _clean(value: Json, path: str, redactions: list[str]) -> Json:
    match value:
        case dict():
            return {key: _member(key, item, f"{path}.{key}", redactions) for key, item in value.items()}
        case list():
            return [_clean(item, f"{path}[{place}]", redactions) for place, item in enumerate(value)]
        case str() if _tells(value):
            redactions.append(path)
            return REDACTED
        case _:
            return value


def _member(key: str, value: Json, path: str, redactions: list[str]) -> Json:
    if value in (None, "", [], {}) or isinstance(value, bool) or not _is_private(key):
        return _clean(value, path, redactions)
    redactions.append(path)
    return REDACTED


def _is_private(key: str) -> bool:
    words = [word.lower() for word in _WORD.findall(key)]
    pairs = set(itertools.pairwise(words))
    return bool((_SECRET_WORDS | _DEPLOYMENT_WORDS) & set(words) or _SECRET_PAIRS & pairs)


def _tells(text: str) -> bool:
    """Whether a text looks like a place, an address or a secret."""
    if _LOOKS_DEPLOYED.search(text) or _LOOKS_SECRET.search(text):
        return True
    if any(_is_random(run) for run in _LONG.findall(text)):
        return True
    return any(_is_ip(run) for run in _IP.findall(text))


def _is_random(run: str) -> bool:
    kinds = (str.isdigit, str.islower, str.isupper)
    return sum(any(kind(mark) for mark in run) for kind in kinds) >= 2 and any(mark.isdigit() for mark in run)


def _is_ip(run: str) -> bool:
    try:
        found = ipaddress.ip_address(run.strip(".:") if run.count(":") < 2 else run)
    except ValueError:
        host, _, port = run.rpartition(":")
        return port.isdigit() and host.count(".") == 3 and _is_ip(host)
    # `1::` and the like are times and labels far more often than addresses.
    return found.version == 4 or run.count(":") >= 3
