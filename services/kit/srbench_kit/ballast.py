"""Space of a volume that is kept aside, so that a full one does not keep a service from saying how things ended."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

MOST_BYTES = 4 * 1024 * 1024
# On a small volume the ballast is this part of what is free, and below so many bytes it would help nobody.
_PART, _LEAST_BYTES = 3, 64 * 1024
_log = logging.getLogger(__name__)


class Ballast:
    """A file of nothing beside what a service keeps. One at a time; used by the thread that writes."""

    def __init__(self, path: Path) -> None:
        """Takes the space at once, where there is some."""
        self._path = path
        self._held = False
        self.take()

    def take(self) -> None:
        """Takes the space aside again once there is enough of it; does nothing while it is held."""
        if self._held:
            return
        try:
            self._path.unlink(missing_ok=True)
            free = os.statvfs(self._path.parent)
            size = min(MOST_BYTES, free.f_bavail * free.f_frsize // _PART)
            if size < _LEAST_BYTES:
                return
            with self._path.open("wb") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                else:
                    file.write(bytes(size))
            self._held = True
        except OSError as error:
            with contextlib.suppress(OSError):
                self._path.unlink()
            _log.warning("no space could be kept aside at %s: %s", self._path, error.strerror)

    def drop(self) -> bool:
        """Gives the space back to the volume; whether there was any."""
        if not self._held:
            return False
        self._held = False
        self._path.unlink(missing_ok=True)
        _log.warning("the volume is full: the space kept aside at %s is given up", self._path)
        return True
