"""The built web pages, when there are any: files as they are, and the start page for the addresses of its own routes."""

from __future__ import annotations

import posixpath
from pathlib import Path

from srbench_kit.errors import NotFound
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

# Nothing inline, nothing remote, nothing that a model wrote can run; scripts may not even write HTML.
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "content-security-policy": CONTENT_SECURITY_POLICY,
}
# First segments of the addresses that the script of the start page reads; `evaluation` is the released Dashboard's.
PAGES = frozenset({"runs", "create", "compare", "datasets", "targets", "experiments", "evaluation"})
# Beside the package in a checkout, within it in a wheel.
PLACES = (Path(__file__).parent.parent / "dashboard" / "dist", Path(__file__).parent / "dashboard_dist")
_INDEX = "index.html"


class Dashboard:
    """Serves one folder of built files. Names with a content hash in them may be kept by browsers, the start page not."""

    def __init__(self, folder: Path) -> None:
        self._files = StaticFiles(directory=folder)

    @staticmethod
    def find(places: tuple[Path, ...] = PLACES) -> Dashboard | None:
        """The pages of this installation; `None` when none are built."""
        return next((Dashboard(place) for place in places if (place / _INDEX).is_file()), None)

    def has(self, path: str) -> bool:
        """Whether `path` is a page's or a file's: neither the API's nor one that nobody knows."""
        first, _, rest = path.lstrip("/").partition("/")
        return first in PAGES or first == "assets" or (not rest and first in ("", "favicon.svg", _INDEX))

    async def page(self, path: str, scope: Scope) -> Response:
        """The file at `path`, or the start page, whose script reads the path.

        Raises: `NotFound` (`NO_SUCH_FILE`).
        """
        name = path.lstrip("/")
        if not name or name.partition("/")[0] in PAGES:
            name = _INDEX
        try:
            response = await self._files.get_response(posixpath.normpath(name), scope)
        except HTTPException:
            raise NotFound("NO_SUCH_FILE", f"there is no file {name[:200]!r}; reload the page") from None
        response.headers.update(HEADERS)
        hashed = name.startswith("assets/")
        response.headers["cache-control"] = "public, max-age=31536000, immutable" if hashed else "no-store"
        return response
