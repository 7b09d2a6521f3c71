"""The way through a proxy: the same interface on httpx, which speaks CONNECT. Without kernel stamps, and dearer."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
from srbench_kit.completion import Headers

from srbench_executor.exchange import Abortable, Listener, NotAccepted, Outgoing
from srbench_executor.tls import client_context


class _Exchange:
    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def catch_up(self) -> None:
        """httpx leaves nothing for later."""

    def abort(self) -> None:
        self._task.cancel()


class ProxiedTransport:
    """Requests through one proxy."""

    def __init__(self, proxy: str) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=256, keepalive_expiry=3.0)
        self._http = httpx.AsyncHTTPTransport(
            proxy=httpx.Proxy(proxy), verify=client_context(), retries=0, http2=False, limits=limits, trust_env=False
        )
        self._tasks: set[asyncio.Task[None]] = set()

    def start_now(self, outgoing: Outgoing, listener: Listener) -> Abortable | None:
        """See `Transport`; httpx keeps its connections to itself."""
        return None

    async def start(self, outgoing: Outgoing, listener: Listener, connect_timeout_s: float) -> Abortable:
        """See `Transport`."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._carry(outgoing, listener, connect_timeout_s, written))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await written
        except BaseException:
            task.cancel()
            raise
        return _Exchange(task)

    async def close(self) -> None:
        """Ends what is under way and closes all connections."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.aclose()

    async def _carry(
        self, outgoing: Outgoing, listener: Listener, connect_timeout_s: float, written: asyncio.Future[None]
    ) -> None:
        began_ns = time.monotonic_ns()
        opened_ns: int | None = None
        sending = False

        async def trace(event: str, info: Any) -> None:
            nonlocal opened_ns, sending
            if event in ("connection.connect_tcp.complete", "proxy.start_tls.complete", "connection.start_tls.complete"):
                opened_ns = time.monotonic_ns() - began_ns
            elif event.endswith(".send_request_headers.started") and _is_ours(info):
                # From here on the endpoint may have it.
                sending = True
                listener.on_connected(opened_ns)
                written.set_result(None)
            elif event.endswith(".send_request_body.complete") and sending:
                listener.on_sent(time.monotonic_ns())

        origin = outgoing.origin
        length = [("content-length", str(len(outgoing.body)))] if outgoing.method == "POST" else []
        request = httpx.Request(
            outgoing.method,
            httpx.URL(scheme=origin.scheme, host=origin.host, port=origin.port, raw_path=outgoing.path.encode()),
            headers=[*outgoing.headers, *length],
            content=outgoing.body or None,
            extensions={"trace": trace, "timeout": {"connect": connect_timeout_s, "pool": connect_timeout_s}},
        )
        try:
            response = await self._http.handle_async_request(request)
            try:
                await self._listen(response, listener)
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            if sending:
                listener.on_end(False, [], "" if _was_cut(error) else str(error), time.monotonic_ns())
            elif not written.done():
                said = str(error) or type(error).__name__
                reason = "tls_failed" if "SSL" in said or "certificate" in said.lower() else "connect_failed"
                written.set_exception(NotAccepted(reason, f"through the proxy: {said}"))

    async def _listen(self, response: httpx.Response, listener: Listener) -> None:
        headers: Headers = [
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers.raw
        ]
        listener.on_head(response.status_code, headers)
        burst = 0
        assert isinstance(response.stream, httpx.AsyncByteStream)
        async for data in response.stream:
            burst += 1
            listener.on_body(data, time.monotonic_ns(), False, burst)
        listener.on_end(True, [], "", time.monotonic_ns())


def _was_cut(error: httpx.HTTPError) -> bool:
    """Whether the connection was lost; httpx calls an early end a protocol error."""
    return isinstance(error, httpx.NetworkError) or str(error).startswith(("peer closed", "Server disconnected"))


def _is_ours(info: Any) -> bool:
    """Whether a traced request is the one to be carried and not the CONNECT before it."""
    request = info.get("request") if isinstance(info, dict) else None
    return request is not None and request.method != b"CONNECT"
