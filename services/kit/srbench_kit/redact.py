"""Taking secrets out of text and bytes before anything is logged, stored or shown."""

from __future__ import annotations

import base64
import json
import os
import re
from urllib.parse import quote

REDACTED = "[redacted]"
_PATTERNS = re.compile(
    r"(?i)(bearer\s+)[A-Za-z0-9._~+/=-]{8,}"
    r"|\b(sk-)[A-Za-z0-9_-]{8,}"
    r"|\b(hf_)[A-Za-z0-9]{8,}"
    r"|(://[^/\s:@]*:)[^/\s@]+(?=@)"
)


_USER_INFO = re.compile(r"(?<=://)[^/\s@]+@")
# A session at the endpoint is as good as a key.
_COOKIES = frozenset({"set-cookie", "set-cookie2"})


class Redactor:
    """Removes a set of known secrets, in plain, base64 and URL-encoded form, and what looks like a key."""

    def __init__(self, secrets: list[str]) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if len(secret) >= 6:
                forms |= {secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode().rstrip("=")}
                forms.add(json.dumps(secret)[1:-1])
        self._texts = sorted(forms, key=len, reverse=True)
        self._bytes = [form.encode() for form in self._texts]

    @property
    def empty(self) -> bool:
        """Whether it knows no secret at all."""
        return not self._bytes

    def text(self, text: str) -> str:
        """`text` without secrets, nor anything that looks like one."""
        for form in self._texts:
            text = text.replace(form, REDACTED)
        return _PATTERNS.sub(lambda match: next(group for group in match.groups() if group) + REDACTED, text)

    def data(self, data: bytes) -> bytes:
        """`data` without the known secrets; all else is kept as received. The same object when it holds none."""
        for form in self._bytes:
            if form in data:
                data = data.replace(form, REDACTED.encode())
        return data

    def header(self, name: str, value: str) -> str:
        """The value to keep of an answer's header `name`, in lower case: no known secret, no cookie, no user in a URL."""
        if name in _COOKIES:
            return REDACTED
        data = value.encode()
        clean = self.data(data)
        return _USER_INFO.sub(REDACTED + "@", value if clean is data else clean.decode())

    def held_back(self, data: bytes) -> int:
        """How many bytes at the end of `data` may be the beginning of a secret that goes on in the next piece.

        Expects `data` after its whole secrets were removed.
        """
        held = 0
        for form in self._bytes:
            tail = data[-(len(form) - 1) :]
            start = tail.find(form[:1])
            while start >= 0:
                if form.startswith(tail[start:]):
                    held = max(held, len(tail) - start)
                    break
                start = tail.find(form[:1], start + 1)
        return held


def environment_redactor(names: list[str]) -> Redactor:
    """A redactor of the values of the environment variables `names`."""
    return Redactor([os.environ[name] for name in names if os.environ.get(name)])
