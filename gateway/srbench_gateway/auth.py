"""Who is calling from outside: the bearer token, the forwarded actor, and what a browser may be tricked into."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from srbench_kit.auth import LOCAL, Actor, same_token
from srbench_kit.errors import Forbidden, Unauthenticated
from srbench_kit.hosts import is_loopback

from srbench_gateway.sessions import CSRF_HEADER, Sessions

ACTOR_ID = "x-sr-bench-actor-id"
ACTOR_ROLE = "x-sr-bench-actor-role"
MAX_ACTOR_ID_CHARS = 256
ROLES = ("admin", "write", "read")
# A read-only actor may compare: it is a read with a body. Signing in and out changes nothing but the browser's cookie.
READ_ONLY_POSTS = frozenset({"/comparisons", "/session"})


@dataclass(frozen=True, slots=True)
class Gate:
    """Decides who a caller is.

    Attributes:
        token: what callers must show; empty on a loopback address that trusts every local process.
        sessions: those who showed it in a browser.
    """

    token: str
    sessions: Sessions = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sessions", Sessions(self.token))

    def actor(self, headers: Iterable[tuple[str, str]]) -> Actor:
        """The actor of a request with `headers` (lower-case names).

        Raises: `Unauthenticated` (`BAD_TOKEN`), `Forbidden` (`BAD_ACTOR`, `UNTRUSTED_ACTOR`).
        """
        found = _single(headers)
        if self.token and not self._is_trusted(found):
            raise Unauthenticated("BAD_TOKEN", "this service needs the header Authorization: Bearer <token>")
        actor_id, role = found.get(ACTOR_ID), found.get(ACTOR_ROLE)
        if actor_id is None and role is None:
            return Actor(id=LOCAL, role=LOCAL)
        if not self.token:
            raise Forbidden("UNTRUSTED_ACTOR", "an actor may be forwarded only over a connection with a token")
        if "authorization" not in found:
            raise Forbidden("UNTRUSTED_ACTOR", "a browser's session may not name an actor")
        return _forwarded(actor_id, role)

    def _is_trusted(self, found: dict[str, str]) -> bool:
        """Whether the caller shows the token, or a session of somebody who did."""
        if "authorization" in found:
            return _shows(found["authorization"], self.token)
        return bool(self.sessions.find(found.get("cookie", "")))

    def check_same_site(self, method: str, headers: Iterable[tuple[str, str]]) -> None:
        """Raises: `Forbidden` (`FOREIGN_ORIGIN`) when another site's page tries to sign this browser in or out."""
        if method not in ("GET", "HEAD"):
            _check_origin(_single(headers))

    def check_session_write(self, method: str, headers: Iterable[tuple[str, str]]) -> None:
        """Refuses a write with a session's cookie alone: browsers send cookies by themselves, another site's page too.

        Raises: `Forbidden` (`FOREIGN_ORIGIN`, `BAD_CSRF_TOKEN`).
        """
        found = _single(headers)
        if not self.token or method in ("GET", "HEAD") or "authorization" in found:
            return
        _check_origin(found)
        session = self.sessions.find(found.get("cookie", ""))
        if not same_token(found.get(CSRF_HEADER, ""), self.sessions.csrf_token(session)):
            raise Forbidden("BAD_CSRF_TOKEN", "a write with a session needs the session's token in X-CSRF-Token")

    def check_browser(self, method: str, headers: Iterable[tuple[str, str]]) -> None:
        """Refuses what a page of another site makes a browser send to a service that asks for no token.

        The host check ends DNS rebinding, the origin check ends forged writes. With a token neither is needed:
        browsers do not add it by themselves.
        Raises: `Forbidden` (`FOREIGN_HOST`, `FOREIGN_ORIGIN`).
        """
        if self.token:
            return
        found = _single(headers)
        host = found.get("host", "")
        if not is_loopback(_host_name(host)):
            raise Forbidden("FOREIGN_HOST", f"this service answers to localhost only, not to the host {host!r}", value=host)
        if method in ("GET", "HEAD"):
            return
        _check_origin(found)


def _check_origin(found: dict[str, str]) -> None:
    """Raises: `Forbidden` (`FOREIGN_ORIGIN`) when a page of another site makes the request."""
    origin = found.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != found.get("host", "").lower():
        raise Forbidden("FOREIGN_ORIGIN", f"a page of {origin!r} may not change anything here", value=origin)
    if found.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Forbidden("FOREIGN_ORIGIN", "a page of another site may not change anything here")


def check_role(actor: Actor, method: str, path: str) -> None:
    """Raises: `Forbidden` (`READ_ONLY`) when `actor` may only read and this is not a read."""
    if actor.role == "read" and method not in ("GET", "HEAD") and path not in READ_ONLY_POSTS:
        raise Forbidden("READ_ONLY", f"the actor {actor.id!r} may only read", value=actor.role)


def check_operator(actor: Actor, what: str) -> None:
    """Raises: `Forbidden` (`OPERATOR_ONLY`) unless `actor` is local or an admin."""
    if not actor.sees_all:
        raise Forbidden("OPERATOR_ONLY", f"{what} is for local callers and admins; the role here is {actor.role!r}")


def _forwarded(actor_id: str | None, role: str | None) -> Actor:
    if actor_id is None or role is None:
        raise Forbidden("BAD_ACTOR", "X-SR-Bench-Actor-ID and X-SR-Bench-Actor-Role must come together")
    if role not in ROLES:
        raise Forbidden("BAD_ACTOR", f"X-SR-Bench-Actor-Role is {role!r}; expected admin, write or read", value=role)
    if not 1 <= len(actor_id) <= MAX_ACTOR_ID_CHARS:
        raise Forbidden("BAD_ACTOR", f"X-SR-Bench-Actor-ID has {len(actor_id)} characters; expected 1 to 256")
    if not (actor_id.isascii() and actor_id.isprintable()) or actor_id != actor_id.strip():
        raise Forbidden("BAD_ACTOR", "X-SR-Bench-Actor-ID must be printable ASCII")
    if actor_id == LOCAL:
        # It would own the runs of everybody who calls without an actor.
        raise Forbidden("BAD_ACTOR", "X-SR-Bench-Actor-ID may not be 'local'")
    return Actor(id=actor_id, role=role)


def _single(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers that decide, each at most once: two values would let two readers disagree."""
    found: dict[str, str] = {}
    for name, value in headers:
        if name in found and name in ("authorization", "host", "origin", ACTOR_ID, ACTOR_ROLE):
            raise Forbidden("REPEATED_HEADER", f"the header {name} came more than once", field=name)
        found[name] = value
    return found


def _shows(header: str, token: str) -> bool:
    scheme, _, given = header.partition(" ")
    return scheme.lower() == "bearer" and same_token(given.strip(), token)


def _host_name(host: str) -> str:
    """The name in a Host header, without the port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
