"""A running testbed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from srbench_testbed.server import Testbed

from tests.contract.testbed.asking import KEY, config


@pytest.fixture
async def testbed() -> AsyncIterator[Testbed]:
    async with Testbed(config(), KEY) as testbed:
        yield testbed
