"""Asking a router's management API for the hash of its active configuration."""

from __future__ import annotations

import http.client
import json

from srbench_kit.errors import Unreachable

TIMEOUT_S = 10.0
MAX_BODY_BYTES = 65_536


def config_hash_of(address: str) -> str:
    """The hash that the router at `host:port` acknowledges. Raises: `Unreachable` (`NO_CONFIG_HASH`)."""
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/api/v1/config/hash")
        response = connection.getresponse()
        found = json.loads(response.read(MAX_BODY_BYTES))
        return str(found["active_runtime_hash"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        raise Unreachable("NO_CONFIG_HASH", f"the router at {address} does not tell its configuration's hash") from error
    finally:
        connection.close()
