"""Which proxy the environment names for an endpoint. Apart from the transport, whose library is slow to import."""

from __future__ import annotations

import urllib.request

from srbench_kit.hosts import is_loopback

from srbench_executor.exchange import Origin


def proxy_for(origin: Origin) -> str | None:
    """The proxy that the environment names for `origin`; `None` when it is reached directly, as loopback always is."""
    if is_loopback(origin.host):
        return None
    proxies = urllib.request.getproxies_environment()
    if _bypass(f"{origin.host}:{origin.port}", proxies):
        return None
    return proxies.get(origin.scheme) or proxies.get("all")


def _bypass(host: str, proxies: dict[str, str]) -> bool:
    # Missing in the type stubs, documented by its use in `urllib.request.ProxyHandler`.
    return bool(urllib.request.proxy_bypass_environment(host, proxies))  # type: ignore[attr-defined]
