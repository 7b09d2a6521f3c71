"""The loopback endpoint that harnesses ask: OpenAI's `/v1/chat/completions` and `/v1/models`, on 127.0.0.1 alone.

A bearer token says for which run, cell, attempt and role a request is. Every request is a metered call of that attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator

import uvicorn
from srbench.v1 import accounting_service_pb2 as pb
from srbench_kit.completion import dump_json, load_json
from srbench_kit.errors import InvalidInput
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from srbench_executor.harness import answers
from srbench_executor.harness.attempt import Attempt, Gone, Seat, hashed
from srbench_executor.harness.merging import HarnessRequest, read_request
from srbench_executor.work import Ended, Refused

MAX_BODY_BYTES = 8 * 1024 * 1024
KEPT_GONE = 10_000
# A harness that asks again makes another paid call; its client library shall not do so behind its back.
_NO_RETRY = {"x-should-retry": "false"}
_TIMES = frozenset({"deadline_exceeded", "idle_timeout"})
_log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the process has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Endpoint:
    """Serves attempts as long as they last. Started by the first of them."""

    def __init__(self) -> None:
        self._seats: dict[str, Seat] = {}
        self._gone: OrderedDict[str, Gone] = OrderedDict()
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self.base_url = ""

    async def admit(self, attempt: Attempt) -> None:
        """Lets the tokens of `attempt` in. Raises: `OSError` when no port can be had."""
        async with self._starting:
            if self._serving is None:
                await self._start()
        self._seats |= attempt.seats

    async def dismiss(self, attempt: Attempt, gone: Gone) -> None:
        """Ends `attempt`; its tokens are answered with `gone` from now on."""
        await attempt.close(gone)
        for key in attempt.seats:
            self._seats.pop(key, None)
            self._gone[key] = attempt.gone or gone
        while len(self._gone) > KEPT_GONE:
            self._gone.popitem(last=False)

    async def close(self) -> None:
        """Ends the server."""
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            self._server.force_exit = True
            await asyncio.gather(self._serving, return_exceptions=True)

    async def _start(self) -> None:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.bind(("127.0.0.1", 0))
        listening.listen(256)
        app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
            ]
        )
        config = uvicorn.Config(
            app,
            loop="none",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]))
        self.base_url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"

    def _seat(self, request: Request) -> Seat | Response:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        key = hashed(token.strip())
        if kind.lower() != "bearer" or not token.strip():
            return _error(401, "missing_token", "expected the header Authorization: Bearer and the token of the attempt")
        seat = self._seats.get(key)
        gone = self._gone.get(key) if seat is None else seat.attempt.gone
        if gone is not None:
            return _dead(gone)
        return seat or _error(401, "unknown_token", "this executor has given out no such token")

    async def _models(self, request: Request) -> Response:
        seat = self._seat(request)
        if isinstance(seat, Response):
            return seat
        listed = {"object": "list", "data": [{"id": seat.role, "object": "model", "created": 0, "owned_by": "sr-bench"}]}
        return Response(dump_json(listed), media_type="application/json")

    async def _chat(self, request: Request) -> Response:
        seat = self._seat(request)
        if isinstance(seat, Response):
            return seat
        try:
            asked = read_request(load_json(await _body(request)))
        except InvalidInput as error:
            field = error.facts.get("field")
            return _error(413 if error.reason == "TOO_LARGE" else 400, error.reason.lower(), error.message, field)
        except (ValueError, RecursionError):
            return _error(400, "bad_json", "the body is no JSON document")
        attempt = seat.attempt
        task = attempt.call(seat, asked)
        leaving = asyncio.ensure_future(_left(request))
        try:
            await asyncio.wait([task, leaving], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                attempt.hang_up(task)
        finally:
            leaving.cancel()
        return _answer(seat, asked, await task)


async def _body(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise InvalidInput("TOO_LARGE", f"the body is longer than {MAX_BODY_BYTES} bytes")
    return b"".join(parts)


async def _left(request: Request) -> None:
    """Returns when the client has gone; its whole body has been read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _answer(seat: Seat, asked: HarnessRequest, ended: Ended | Refused | Gone) -> Response:
    if isinstance(ended, Gone):
        return _dead(ended)
    if isinstance(ended, Refused):
        return _error(403, ended.reason.lower(), ended.message, kind="refused_by_sr_bench")
    completion = ended.completion
    if ended.status != pb.CALL_STATUS_COMPLETED or completion is None:
        found = completion.http_status if completion is not None else 0
        status = found if found >= 400 else 504 if ended.reason in _TIMES else 502
        return _error(status, ended.reason, ended.message, kind="upstream_error")
    named = {
        "name": f"chatcmpl-{seat.attempt.cell.lease.cell}-{seat.attempt.call_count}",
        "model": asked.model or seat.role,
    }
    created, quality = int(time.time()), ended.quality_failure
    redact = seat.attempt.run.redactor.data
    if not asked.stream:
        whole = answers.document(completion, created=created, quality_failure=quality, **named)
        return Response(redact(whole), media_type="application/json")
    pieces = answers.events(completion, created=created, quality_failure=quality, usage=asked.usage, **named)

    async def sent() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield redact(piece)

    return StreamingResponse(sent(), media_type="text/event-stream")


def _dead(gone: Gone) -> Response:
    return _error(401, gone.reason, f"this token is no longer good: {gone.message}", kind="token_expired")


def _error(
    status: int, code: str, message: str, param: str | None = None, *, kind: str = "invalid_request_error"
) -> Response:
    return Response(
        answers.error(code, message, kind, param), status_code=status, media_type="application/json", headers=_NO_RETRY
    )
