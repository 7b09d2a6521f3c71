"""Addresses at which no model is ever asked: a request there carries the machine's own credentials away."""

from __future__ import annotations

import ipaddress
from typing import TypeAlias

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")
)


def ip_address(text: str) -> IpAddress:
    """The address that `text` writes in the usual way, IPv4 inside IPv6 taken out. Raises: `ValueError`."""
    found = ipaddress.ip_address(text.partition("%")[0])
    if found.version == 4:
        return found
    return found.ipv4_mapped or found.sixtofour or _embedded(found) or found


def is_forbidden(address: IpAddress) -> bool:
    """Whether `address` is link-local, multicast or one of a cloud's metadata service."""
    return address.is_link_local or address.is_multicast or address in _METADATA


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address in a NAT64 (64:ff9b::/96) or an IPv4-compatible (::/96) one."""
    high, low = int(address) >> 32, int(address) & 0xFFFFFFFF
    if high == 0x64FF9B << 64 or (high == 0 and low > 1):
        return ipaddress.IPv4Address(low)
    return None
