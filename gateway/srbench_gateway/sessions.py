"""Sessions of browsers that showed the token once: a signed cookie, which neither a restart nor a second gateway ends.

The cookie is HttpOnly and SameSite=Strict, so scripts cannot read it and other sites' pages do not send it. Writes need
the session's CSRF token besides, which only this origin's scripts can read.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

from srbench_kit.auth import same_token

LIFETIME_S = 12 * 3600
COOKIE = "sr_bench_session"
CSRF_HEADER = "x-csrf-token"
MAX_ENDED = 10_000


class Sessions:
    """Makes, recognises and ends sessions.

    Attributes:
        clock: seconds since 1970.
    """

    def __init__(self, token: str, clock: Callable[[], float] = time.time) -> None:
        self._key = hashlib.sha256(b"sr-bench session\0" + token.encode()).digest() if token else b""
        self._clock = clock
        self._ended: dict[str, float] = {}
        # Cookies are shared by all ports of a host: services with other tokens must not overwrite each other's.
        self.cookie = f"{COOKIE}_{hashlib.sha256(self._key).hexdigest()[:8]}"

    def begin(self) -> str:
        """A new session."""
        body = f"{int(self._clock()) + LIFETIME_S}.{secrets.token_urlsafe(18)}"
        return f"{body}.{self._sign(body)}"

    def find(self, cookie_header: str) -> str:
        """The valid session in a Cookie header; empty when there is none."""
        if not self._key:
            return ""
        for part in cookie_header.split(";"):
            name, _, value = part.strip().partition("=")
            if name == self.cookie and self._is_valid(value):
                return value
        return ""

    def end(self, session: str) -> None:
        """Ends a session before its time, in this process."""
        now = self._clock()
        self._ended = {known: until for known, until in self._ended.items() if until > now}
        if len(self._ended) < MAX_ENDED:
            self._ended[session] = now + LIFETIME_S

    def csrf_token(self, session: str) -> str:
        """What writes of a session must carry."""
        return self._sign(f"csrf {session}")

    def set_cookie(self, session: str, *, secure: bool) -> str:
        """The Set-Cookie header that begins `session`; an empty one ends it."""
        lifetime = LIFETIME_S if session else 0
        flags = "; Secure" if secure else ""
        return f"{self.cookie}={session}; Path=/; Max-Age={lifetime}; HttpOnly; SameSite=Strict{flags}"

    def _is_valid(self, session: str) -> bool:
        body, _, signature = session.rpartition(".")
        until = body.partition(".")[0]
        if not session.isascii() or not until.isdecimal() or len(until) > 15 or not same_token(signature, self._sign(body)):
            return False
        return int(until) > self._clock() and session not in self._ended

    def _sign(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), "sha256").hexdigest()
