"""The testbed as a whole: for tests in the same process, and for `python -m srbench_testbed`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from srbench_kit.errors import InvalidInput
from srbench_kit.hosts import is_loopback

from srbench_testbed.admin import Admin
from srbench_testbed.answer_key import Entry
from srbench_testbed.chat import Chat
from srbench_testbed.config import DEFAULT, Config
from srbench_testbed.connection import Connection
from srbench_testbed.exchange import Exchange
from srbench_testbed.faults import Injector
from srbench_testbed.ledger import Ledger, Row
from srbench_testbed.management import Routers

_BACKLOG = 4096


class Testbed:
    """An OpenAI-compatible upstream on a loopback address.

    async with Testbed(config, key) as testbed:
        ... requests to testbed.base_url ...
        testbed.ledger.counts()
    """

    # Not a test class, whatever its name suggests to a collector.
    __test__ = False

    def __init__(
        self,
        config: Config = DEFAULT,
        key: Mapping[str, Entry] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        paced: bool = False,
        ledger_path: Path | None = None,
        management_token: str = "",
    ) -> None:
        """`management_token`: what the routers' own API asks for; empty for nothing."""
        if not is_loopback(host):
            raise InvalidInput("NOT_LOOPBACK", f"the testbed listens on loopback only, not on {host}", value=host)
        self.config, self.host, self.port = config, host, port
        self.ledger = Ledger(ledger_path)
        self.injector = Injector(config.faults)
        self.routers = Routers(config.routers, frozenset(model.id for model in config.models))
        self._chat = Chat(config, key or {}, self.injector, paced, self.routers)
        self._admin = Admin(config, self._chat, self.injector, self.ledger, self.routers, management_token)
        self._live: set[Connection] = set()

    @property
    def url(self) -> str:
        """`http://host:port`."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{shown}:{self.port}"

    @property
    def base_url(self) -> str:
        """What targets have as `base_url`."""
        return f"{self.url}/v1"

    def respond(self, method: str, target: str, body: bytes, row: Row) -> bytes | Exchange:
        """What to write for a request. Raises: `SrBenchError`."""
        if method == "POST" and target.partition("?")[0] == "/v1/chat/completions":
            return self._chat.answer(body, row, self.ledger.count)
        self.ledger.forget(row)
        return self._admin.answer(method, target, body, row)

    async def start(self) -> None:
        """Listens; `port` holds the port afterwards."""
        self.ledger.open()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self, self._live), self.host, self.port, backlog=_BACKLOG
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Closes the listener and every connection."""
        self._server.close()
        for connection in list(self._live):
            connection.shut()
        await asyncio.sleep(0)
        await self._server.wait_closed()
        self.ledger.close()

    async def __aenter__(self) -> Testbed:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
