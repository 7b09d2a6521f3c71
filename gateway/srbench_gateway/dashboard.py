"""The built web pages, when there are any: files as they are, and the start page for every other path."""

from __future__ import annotations

import posixpath
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from srbench_gateway.routes import PREFIX

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'; object-src 'none'",
}
# Beside the package in a checkout, within it in a wheel.
PLACES = (Path(__file__).parent.parent / "dashboard" / "dist", Path(__file__).parent / "dashboard_dist")


class Dashboard:
    """Serves one folder of built files. Names with a content hash in them may be kept by browsers, all else not."""

    def __init__(self, folder: Path) -> None:
        self._files = StaticFiles(directory=folder)

    @staticmethod
    def find(places: tuple[Path, ...] = PLACES) -> Dashboard | None:
        """The pages of this installation; `None` when none are built."""
        return next((Dashboard(place) for place in places if (place / "index.html").is_file()), None)

    def has(self, path: str) -> bool:
        """Whether `path` is a page's and not the API's."""
        return path not in ("/health", "/openapi.json") and path != PREFIX and not path.startswith("/api/")

    async def page(self, path: str, scope: Scope) -> Response:
        """The file at `path`, or the start page, whose script reads the path."""
        name = posixpath.normpath(path.lstrip("/") or "index.html")
        try:
            response = await self._files.get_response(name, scope)
        except HTTPException:
            name = "index.html"
            response = await self._files.get_response(name, scope)
        response.headers.update(HEADERS)
        hashed = name.startswith("assets/")
        response.headers["cache-control"] = "public, max-age=31536000, immutable" if hashed else "no-cache"
        return response
