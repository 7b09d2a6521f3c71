"""What an address of a model endpoint may look like.

Link-local and metadata addresses are refused in every spelling that a resolver understands (dotted, decimal, hexadecimal,
octal, IPv6-mapped), because a request there carries the machine's own credentials away. Private ranges are allowed:
that is where people run their models.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from urllib.parse import SplitResult, urlsplit

from srbench_kit.addresses import IpAddress, ip_address, is_forbidden
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import checks

METADATA_HOSTS = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)
_METHOD = "/chat/completions"
# Only these reach `inet_aton`, which takes every spelling of an IPv4 address: 1, 0x7f.1, 0177.0.0.1.
_NUMERIC = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)(\.(0[xX][0-9a-fA-F]*|[0-9]+)){0,3}\.?\Z")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?\Z")


def base_url(value: Json, path: str) -> str:
    """`value` as the address that `/chat/completions` is appended to, without a slash at its end.

    Raises: `InvalidInput` (`BAD_URL`); the message names the rule that was broken.
    """
    text, parts = _split(value, path)
    if parts.path.rstrip("/").endswith(_METHOD):
        raise _refused(path, text, f"the address without {_METHOD}, which is appended to it")
    return text.rstrip("/")


def web_url(value: Json, path: str) -> str:
    """`value` as an address that is used as it is. Raises: `InvalidInput` (`BAD_URL`)."""
    return _split(value, path)[0]


def _split(value: Json, path: str) -> tuple[str, SplitResult]:
    if not isinstance(value, str) or not value.strip():
        raise _refused(path, value, "an http or https address such as http://127.0.0.1:8000/v1")
    text = value.strip()
    if any(character <= " " or character in "\\\x7f" for character in text) or not text.isascii():
        raise _refused(path, text, "an address without spaces, control characters, backslashes and non-ASCII letters")
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise _refused(path, text, "an address with a well-formed host and a port from 1 to 65535") from None
    if parts.scheme not in ("http", "https"):
        raise _refused(path, text, "an address that begins with http:// or https://")
    if "@" in parts.netloc:
        # The value is not shown: it may hold a password.
        raise InvalidInput("BAD_URL", f"{path} holds user information; expected an address without it", field=path)
    if "?" in text or "#" in text:
        raise _refused(path, text, "an address without query and fragment")
    if not host or port == 0 or parts.netloc.endswith(":"):
        raise _refused(path, text, "an address with a host and, if any, a port from 1 to 65535")
    _check_host(host, text, path)
    return text, parts


def _check_host(host: str, text: str, path: str) -> None:
    bare = host.rstrip(".").lower()
    address = _address(bare)
    if address is None and not _HOST.match(host):
        raise _refused(path, text, "an address with a well-formed host")
    if bare in METADATA_HOSTS or (address is not None and is_forbidden(address)):
        raise _refused(path, text, "a host that is neither a link-local nor a cloud metadata address")


def _address(host: str) -> IpAddress | None:
    """The address that `host` spells, IPv4 inside IPv6 taken out; `None` for a name."""
    if ":" in host:
        return ip_address(host)
    if _NUMERIC.match(host):
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    return None


def _refused(path: str, value: Json, expected: str) -> InvalidInput:
    return checks.bad(path, value, expected, "BAD_URL")
