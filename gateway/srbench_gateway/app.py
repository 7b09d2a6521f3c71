"""One HTTP request from its first byte to its answer: who, where, what, and then the route."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

from srbench_kit import tracing
from srbench_kit.auth import Actor
from srbench_kit.errors import NotFound, SrBenchError
from srbench_kit.metrics import Counter, Histogram
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from srbench_gateway import (
    answers,
    comparison_routes,
    judging_routes,
    loop_routes,
    openapi,
    paper_routes,
    planning_routes,
    price_routes,
    reading_routes,
    recovery_routes,
    routing_routes,
    run_routes,
    session_routes,
)
from srbench_gateway.auth import Gate, check_role
from srbench_gateway.backends import Backends
from srbench_gateway.bodies import Bounds, read_message
from srbench_gateway.dashboard import Dashboard
from srbench_gateway.manifests import Manifests
from srbench_gateway.params import parse
from srbench_gateway.routes import PREFIX, Ask, Identity, Route, Table, Visitor, WrongMethod

TABLE = Table(
    [
        *planning_routes.ROUTES,
        *run_routes.ROUTES,
        *reading_routes.ROUTES,
        *comparison_routes.ROUTES,
        *recovery_routes.ROUTES,
        *loop_routes.ROUTES,
        *session_routes.ROUTES,
        *routing_routes.ROUTES,
        *price_routes.ROUTES,
        *judging_routes.ROUTES,
        *paper_routes.ROUTES,
    ]
)
SIGNED_OUT = Actor(id="", role="read")
CLIENT_GONE = 499
_ANSWERS = Counter("srbench_http_responses", "Answers over HTTP, by class of status.", "status")
_ANSWER_S = Histogram("srbench_http_response_seconds", "From a request over HTTP to the beginning of its answer.")


@dataclass(kw_only=True)
class App:
    """The HTTP API as an ASGI application.

    Attributes:
        backends: the services behind it.
        identity: what it says of itself.
        gate: who may come in.
        bounds: how much of a body is read.
        dashboard: the web pages; `None` when none are built.
    """

    backends: Backends
    identity: Identity
    gate: Gate
    bounds: Bounds
    dashboard: Dashboard | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        began = time.perf_counter()
        span = tracing.begin("http", "", {"http.request.method": request.method, "url.path": request.scope["path"]})
        if span is not None:
            tracing.current.set(tracing.header(span))
        response = await self._respond(request)
        tracing.end(span, {"http.response.status_code": response.status_code})
        _ANSWERS.add(f"{response.status_code // 100}xx")
        _ANSWER_S.observe(time.perf_counter() - began)
        await response(scope, receive, send)

    @cached_property
    def _manifests(self) -> Manifests:
        return Manifests(self.backends)

    async def _respond(self, request: Request) -> Response:
        try:
            return await self._answer(request)
        except WrongMethod as error:
            return answers.refusal(error, {"allow": ", ".join(error.allowed)})
        except SrBenchError as error:
            return answers.refusal(error)
        except ClientDisconnect:
            return Response(status_code=CLIENT_GONE)
        except Exception as error:  # the outermost frame of a request: a bug must still be answered
            return answers.bug(error, f"{request.method} {request.scope['path']}")

    async def _answer(self, request: Request) -> Response:
        # Not `request.url`: it is built from the Host header, which a caller may fill with a path.
        method, path = request.method, request.scope["path"].rstrip("/")
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.scope["headers"]]
        self.gate.check_browser(method, headers)
        if self.dashboard is not None and method in ("GET", "HEAD") and self.dashboard.has(path):
            # Pages hold no data, and a browser cannot send a token before it has them.
            return await self.dashboard.page(path, request.scope)
        actor = self._actor(method, path, headers)
        route, ids = self._route(method, path)
        check_role(actor, method, route.path)
        ask = Ask(
            backends=self.backends,
            manifests=self._manifests,
            identity=self.identity,
            actor=actor,
            visitor=Visitor(gate=self.gate, headers=headers, secure=request.scope["scheme"] == "https"),
            ids=ids,
            params=parse(request.scope["query_string"], route.params),
            body=await self._body(request, route),
        )
        shown = await route.answer(ask)
        return shown if isinstance(shown, Response) else answers.answer(shown, route.status)

    def _actor(self, method: str, path: str, headers: list[tuple[str, str]]) -> Actor:
        """Who calls. Signing in and out must work for those whom the service does not know yet, or no more."""
        if path == PREFIX + session_routes.PATH:
            self.gate.check_same_site(method, headers)
            return SIGNED_OUT
        actor = self.gate.actor(headers)
        self.gate.check_session_write(method, headers)
        return actor

    def _route(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        if path in ("/health", "/openapi.json"):
            return ROOT.find(method, path)
        if not path.startswith(PREFIX + "/"):
            raise NotFound("NO_SUCH_ROUTE", f"there is no route {path[:200] or '/'!r}; the API is below {PREFIX}")
        return TABLE.find(method, path.removeprefix(PREFIX))

    async def _body(self, request: Request, route: Route) -> object:
        if route.body is None:
            return None
        most = self.bounds.plan_bytes if route.body.carries_plan else self.bounds.other_bytes
        return await read_message(request, self.bounds, most, route.body.make, may_be_empty=route.body.may_be_empty)


async def _document(_ask: Ask) -> Response:
    return Response(openapi.encoded(TABLE), headers=answers.API_HEADERS | {"content-type": "application/json"})


# The same health route stands outside the prefix, for released clients.
ROOT = Table(
    [
        next(route for route in TABLE.routes if route.path == "/health"),
        Route(
            method="GET",
            path="/openapi.json",
            about="This document.",
            answer=_document,
            shows={"type": "object"},
        ),
    ]
)
