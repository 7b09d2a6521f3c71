"""What a route of the HTTP API is, and which one a request means."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message
from srbench.v1 import accounting_service_pb2_grpc as accounting_rpc
from srbench.v1 import planner_service_pb2_grpc as planner_rpc
from srbench_kit.auth import Actor
from srbench_kit.errors import InvalidInput, NotFound
from srbench_kit.values import Json
from starlette.responses import Response

from srbench_gateway.auth import Gate
from srbench_gateway.backends import READ_TIMEOUT_S, Backends, Method
from srbench_gateway.fields import fill
from srbench_gateway.manifests import Manifests
from srbench_gateway.params import Found, Param
from srbench_gateway.schema import Schema

PREFIX = "/api/sr-bench/v1"
MAX_ID_CHARS = 128
Object = dict[str, Json]
_Answer = TypeVar("_Answer", bound=Message)
_Request = TypeVar("_Request", bound=Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What the gateway says of itself.

    Attributes:
        store_id: SHA-256 of the store's path, by which released clients know whether it is theirs.
        grpc_port: port of the front door.
    """

    store_id: str
    grpc_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """How a request came: for the routes by which browsers sign in and out.

    Attributes:
        gate: who may come in.
        headers: lower-case names and values.
        secure: whether it came over TLS.
    """

    gate: Gate
    headers: list[tuple[str, str]]
    secure: bool

    def header(self, name: str) -> str:
        """The first header of that name; empty without one."""
        return next((value for key, value in self.headers if key == name), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request, checked: who asks, for what, with which parameters and body."""

    backends: Backends
    manifests: Manifests
    identity: Identity
    actor: Actor
    visitor: Visitor
    ids: dict[str, str]
    params: Found
    body: Any

    @property
    def plans(self) -> planner_rpc.PlannerServiceAsyncStub:
        """The planner's methods, for `planner`."""
        return self.backends.plans

    @property
    def facts(self) -> accounting_rpc.AccountingServiceAsyncStub:
        """Accounting's methods, for `accounting`."""
        return self.backends.facts

    async def planner(self, method: Method[_Answer], request: Message, timeout_s: float = READ_TIMEOUT_S) -> _Answer:
        """Asks the planner on behalf of the actor. Raises: as `Peer.ask`."""
        return await self.backends.planner.ask(method, request, self.actor, timeout_s)

    async def accounting(self, method: Method[_Answer], request: Message, timeout_s: float = READ_TIMEOUT_S) -> _Answer:
        """Asks accounting on behalf of the actor. Raises: as `Peer.ask`."""
        return await self.backends.accounting.ask(method, request, self.actor, timeout_s)

    async def visible_run(self) -> str:
        """The run that the path names, once the planner says that the actor may see it."""
        await self.backends.check_visible(self.ids["run_id"], self.actor)
        return self.ids["run_id"]

    def text(self, name: str) -> str:
        """A text parameter; empty when it was not given."""
        return str(self.params.get(name, ""))

    def number(self, name: str) -> int:
        """A number parameter; 0 when it was not given."""
        return int(self.params.get(name, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Body(Generic[_Request]):
    """The body of a route.

    Attributes:
        message: the request message whose fields the body has.
        make: the message of a body.
        carries_plan: whether it may hold a manifest with its cases, and so be large.
        may_be_empty: whether it may be left out.
        required: fields that must be there.
        extra: schemas of fields that are not the message's.
        schema: the whole schema, where the body is not the message's fields.
    """

    message: type[_Request]
    make: Callable[[Object], _Request]
    carries_plan: bool = False
    may_be_empty: bool = False
    required: tuple[str, ...] = ()
    extra: Schema = field(default_factory=dict)
    schema: Schema | None = None


def same_fields(message: type[_Request], *, required: tuple[str, ...] = ()) -> Body[_Request]:
    """A body that has exactly the fields of `message`."""

    def make(body: Object) -> _Request:
        check_required(body, required)
        return fill(message(), body)

    return Body(message=message, make=make, required=required)


def check_required(body: Object, names: Iterable[str]) -> None:
    """Raises: `InvalidInput` (`MISSING_FIELD`) unless `body` has all of `names`."""
    for name in names:
        if body.get(name) is None:
            raise InvalidInput("MISSING_FIELD", f"the field {name} is missing", field=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One row of the table.

    Attributes:
        method: `GET` or `POST`.
        path: below the prefix; `{name}` stands for one segment.
        about: one sentence for the API document.
        answer: makes the JSON of the answer, or a whole response.
        shows: schema of the answer.
        params, body: what it takes.
        status: the status of success.
        media_type: of the answer.
    """

    method: str
    path: str
    about: str
    answer: Callable[[Ask], Awaitable[Object | Response]]
    shows: Schema
    params: tuple[Param, ...] = ()
    body: Body[Any] | None = None
    status: int = 200
    media_type: str = "application/json"

    @property
    def segments(self) -> list[str]:
        """The parts of the path."""
        return self.path.strip("/").split("/")


class Table:
    """All routes, by the shape of their paths."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """The route of a request below the prefix, and the segments that its path names.

        Fixed segments win over named ones: `/datasets/selection` is no dataset.
        Raises: `NotFound` (`NO_SUCH_ROUTE`), `WrongMethod`.
        """
        segments = path.strip("/").split("/")
        fits = [(route, ids) for route in self.routes if (ids := _match(route.segments, segments)) is not None]
        if not fits:
            raise NotFound("NO_SUCH_ROUTE", f"there is no route {path[:200]!r}")
        fewest = min(len(ids) for _, ids in fits)
        best = {route.method: (route, ids) for route, ids in fits if len(ids) == fewest}
        wanted = "GET" if method == "HEAD" else method
        if wanted not in best or (method == "HEAD" and best[wanted][0].media_type == "text/event-stream"):
            raise WrongMethod(method, path, sorted(best))
        return best[wanted]


class WrongMethod(InvalidInput):
    """The route exists, for other methods."""

    def __init__(self, method: str, path: str, allowed: list[str]) -> None:
        sentence = f"{method} is not possible here; {path[:200]} takes {' and '.join(allowed)}"
        super().__init__("METHOD_NOT_ALLOWED", sentence)
        self.allowed = allowed + (["HEAD"] if "GET" in allowed else [])


def _match(pattern: list[str], segments: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    ids: dict[str, str] = {}
    for wanted, given in zip(pattern, segments, strict=True):
        if wanted.startswith("{"):
            if not _is_id(given):
                return None
            ids[wanted[1:-1]] = given
        elif wanted != given:
            return None
    return ids


def _is_id(segment: str) -> bool:
    return 0 < len(segment) <= MAX_ID_CHARS and segment.isascii() and segment.replace("-", "").replace("_", "").isalnum()
