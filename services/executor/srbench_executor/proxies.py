"""Which proxy the environment names for an endpoint. Apart from the transport, whose library is slow to import."""

from __future__ import annotations

import ipaddress
import re
import urllib.request
from urllib.parse import urlsplit

from srbench_kit.hosts import is_loopback

from srbench_executor.exchange import Abortable, Listener, NotAccepted, Origin, Outgoing

_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class BadProxy(Exception):
    """The environment names a proxy that cannot be used; the message is one for people and holds no password."""


class NoTransport:
    """Stands where a proxy cannot be used: nothing is sent past it, for past it may not be allowed."""

    def __init__(self, why: str) -> None:
        self._why = why

    def start_now(self, outgoing: Outgoing, listener: Listener) -> Abortable | None:
        """See `Transport`."""
        return None

    async def start(self, outgoing: Outgoing, listener: Listener, connect_timeout_s: float) -> Abortable:
        """Raises: `NotAccepted`."""
        raise NotAccepted("connect_failed", self._why)

    async def close(self) -> None:
        """See `Transport`."""


def proxy_for(origin: Origin) -> str | None:
    """The proxy that the environment names for `origin`; `None` when it is reached directly, as loopback always is.

    One without a scheme speaks HTTP, as for curl. Raises: `BadProxy`.
    """
    if is_loopback(origin.host):
        return None
    proxies = urllib.request.getproxies_environment()
    if _bypassed(origin, proxies.get("no", "")):
        return None
    named = proxies.get(origin.scheme) or proxies.get("all")
    if not named:
        return None
    address = named if _HAS_SCHEME.match(named) else f"http://{named.removeprefix('//')}"
    try:
        parts = urlsplit(address)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise BadProxy(f"the environment names a proxy for {origin.scheme} whose address is not well-formed") from None
    if parts.scheme not in ("http", "https") or not usable:
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        raise BadProxy(
            f"the environment names the proxy {shown} for {origin.scheme}; expected http:// or https:// and a host"
        )
    return address


def _bypassed(origin: Origin, listed: str) -> bool:
    """Whether `NO_PROXY` lists where `origin` goes: as a name, a domain, an address, a network, or `*`."""
    host = origin.host.rstrip(".").lower()
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    for entry in listed.lower().replace(",", " ").split():
        if entry == "*":
            return True
        name = _without_port(entry, origin.port)
        if name is None:
            continue
        if address is not None:
            if _holds(name, address):
                return True
        elif host == name or host.endswith(f".{name}"):
            return True
    return False


def _without_port(entry: str, port: int) -> str | None:
    """The host of an entry, without the dots and stars around a domain; `None` when it is for another port."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        stated = rest.removeprefix(":")
    elif entry.count(":") == 1:
        name, _, stated = entry.partition(":")
    else:
        name, stated = entry, ""
    if stated and stated != str(port):
        return None
    return name.removeprefix("*").strip(".") or None


def _holds(name: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return address in ipaddress.ip_network(name, strict=False)
    except ValueError:
        return False
