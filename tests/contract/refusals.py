"""What a refused call says to programs."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest
from grpc import aio
from srbench_kit import wire


async def reason(call: Awaitable[Any]) -> str:
    """The stable reason for which `call` is refused."""
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    return wire.reason(caught.value)
