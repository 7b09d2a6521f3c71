"""Which sandbox a grader uses: what the operator named, else what this machine has."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from srbench_kit.errors import InvalidInput, Unreachable
from srbench_kit.values import Json

from srbench_grader.sandbox.bwrap import Bwrap
from srbench_grader.sandbox.docker import Docker
from srbench_grader.sandbox.values import Sandbox

REMEDY = (
    "sr-bench setup --benchmark all --build-sandbox for Docker; or install the packages bubblewrap and util-linux, then "
    "sr-bench setup --benchmark all --install"
)
KINDS = ("auto", "docker", "bwrap")
# Where tools/prepare-sandbox puts a Python with the libraries that programs may use.
PREPARED = "/opt/sr-bench/sandbox/bin/python"


def home() -> Path:
    """Where environments, images and verified data of benchmarks are kept: `SR_BENCH_HOME`, else the user's cache."""
    found = os.environ.get("SR_BENCH_HOME", "")
    return Path(found) if found else Path.home() / ".cache" / "vllm-sr" / "sr-bench-1.0"


def candidates(options: Mapping[str, Json]) -> list[Sandbox]:
    """The sandboxes to try, in order.

    `sandbox_image` in a benchmark's options names the image and with it Docker; `SR_BENCH_SANDBOX` names the kind
    (`docker`, `bwrap`, or `auto`, the default); images and interpreters come from `SR_BENCH_SANDBOX_IMAGE` and
    `SR_BENCH_SANDBOX_PYTHON`, else from what `setup` made. Raises: `InvalidInput` (`BAD_SANDBOX`, `BAD_IMAGE`).
    """
    wanted = os.environ.get("SR_BENCH_SANDBOX") or "auto"
    if wanted not in KINDS:
        raise InvalidInput("BAD_SANDBOX", f"SR_BENCH_SANDBOX is {wanted!r}; expected {', '.join(KINDS)}")
    image = options.get("sandbox_image") or os.environ.get("SR_BENCH_SANDBOX_IMAGE") or _built_image()
    found: list[Sandbox] = []
    if wanted != "bwrap" and isinstance(image, str) and image:
        found.append(Docker(image))
    if wanted != "docker" and not options.get("sandbox_image"):
        found.append(Bwrap(_interpreter()))
    return found


def choose(options: Mapping[str, Json]) -> Sandbox:
    """The first sandbox that works. Raises: `Unreachable` (`NO_SANDBOX`), which says what is wrong with each."""
    problems: list[str] = []
    for sandbox in candidates(options):
        problem = sandbox.problem()
        if not problem:
            return sandbox
        problems.append(f"{sandbox.name}: {problem}")
    if not problems:
        problems = ["docker: no sandbox image is named or built"]
    raise Unreachable("NO_SANDBOX", f"no sandbox can run programs here; {'; '.join(problems)}")


def _built_image() -> str:
    receipt = home() / "sandbox" / "image-id"
    try:
        return receipt.read_text().strip()
    except OSError:
        return ""


def _interpreter() -> str:
    named = os.environ.get("SR_BENCH_SANDBOX_PYTHON", "")
    if named:
        return named
    built = home() / "sandbox" / "venv" / "bin" / "python"
    for path in (str(built), PREPARED, "/usr/bin/python3", "/usr/local/bin/python3"):
        if os.access(path, os.X_OK):
            return path
    return sys.executable
