"""Who is calling. Between services: the internal token and a role. From outside: the gateway forwards an actor."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc
from grpc import aio

from srbench_kit import settings, wire
from srbench_kit.errors import Forbidden, SrBenchError, Unauthenticated

ROLE_KEY = "x-srbench-role"
ACTOR_KEY = "x-srbench-actor-id"
ACTOR_ROLE_KEY = "x-srbench-actor-role"
LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """On whose behalf a call is made.

    Attributes:
        id: a name, `local` for callers of an unauthenticated loopback service.
        role: `admin`, `write`, `read` or `local`.
    """

    id: str
    role: str

    @property
    def sees_all(self) -> bool:
        """Whether runs of other owners are visible."""
        return self.role in ("admin", LOCAL)


# Whom a service acts for when it acts for itself.
LOCAL_ACTOR = Actor(id=LOCAL, role=LOCAL)


def service_metadata(role: str) -> dict[str, str]:
    """What a service sends with its calls to other services."""
    token = settings.internal_token()
    return {ROLE_KEY: role} | ({"authorization": f"Bearer {token}"} if token else {})


def actor_metadata(actor: Actor) -> dict[str, str]:
    """What the gateway adds for the actor it acts for."""
    return {ACTOR_KEY: actor.id, ACTOR_ROLE_KEY: actor.role}


def same_token(given: str, expected: str) -> bool:
    """Compares two tokens in constant time."""
    return hmac.compare_digest(given.encode(), expected.encode())


def _metadata(context: aio.ServicerContext[Any, Any]) -> dict[str, str]:
    return {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


def actor(context: aio.ServicerContext[Any, Any]) -> Actor:
    """The actor a call is made for; a service's own call counts as `local`."""
    found = _metadata(context)
    return Actor(id=found.get(ACTOR_KEY, LOCAL), role=found.get(ACTOR_ROLE_KEY, LOCAL))


def require_role(context: aio.ServicerContext[Any, Any], *roles: str) -> None:
    """Raises: `Forbidden` (`WRONG_ROLE`) unless the calling service has one of `roles`."""
    role = _metadata(context).get(ROLE_KEY, "")
    if role not in roles:
        raise Forbidden("WRONG_ROLE", f"the role {role or 'none'!r} may not call this; expected {' or '.join(roles)}")


class AuthInterceptor(aio.ServerInterceptor):
    """Refuses calls without the internal token. Health checks pass."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        if self._token and not handler_call_details.method.startswith("/grpc.health."):
            found = dict(handler_call_details.invocation_metadata or ())
            given = str(found.get("authorization", ""))
            if not same_token(given.removeprefix("Bearer "), self._token):
                return refusal(Unauthenticated("BAD_TOKEN", "the internal token is missing or wrong"))
        return await continuation(handler_call_details)


def refusal(error: SrBenchError) -> grpc.RpcMethodHandler[Any, Any]:
    """A handler that answers every call with `error`."""

    async def refuse(_request: Any, context: aio.ServicerContext[Any, Any]) -> Any:
        await wire.refuse(context, error)

    return grpc.unary_unary_rpc_method_handler(refuse)
