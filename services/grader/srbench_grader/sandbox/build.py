"""`python -m srbench_grader.sandbox.build`: builds the offline image that programs are graded in, and writes its receipt.

Writes to `SR_BENCH_HOME`/sandbox: `Dockerfile`, `requirements.txt`, `manifest.json` and, last, `image-id`, the digest
that graders use.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
from srbench_kit.errors import EXIT_CODES, SrBenchError, Unreachable
from srbench_kit.values import Json

from srbench_grader.sandbox import libraries, receipts
from srbench_grader.sandbox.docker import Docker
from srbench_grader.sandbox.selection import home

BASE = "python:3.11-slim-bookworm"
BUILD_S = 1500.0


def dockerfile(base: str) -> str:
    """The image: the pinned libraries on the base, and a user that owns nothing."""
    return (
        f"FROM {base}\n"
        "COPY requirements.txt /tmp/requirements.txt\n"
        "RUN pip install --no-cache-dir --require-hashes -r /tmp/requirements.txt\n"
        "USER 65533:65533\n"
    )


def build(base: str, folder: Path) -> str:
    """Builds the image from `base` and writes the receipt into `folder`; the image's digest.

    The image is tried offline, as programs will run in it, before the receipt names it. A `base` that is named without a
    digest is bound by what was found: the image must begin with its layers.
    Raises: `Unreachable` (`BUILD_FAILED`, `NO_LIBRARIES`).
    """
    _present(base)
    found = _inspect(base)
    digests: list[Json] = found["RepoDigests"] or []
    pinned = base if "@" in base or not digests else str(digests[0])
    text = dockerfile(pinned)
    receipts.write(folder / "Dockerfile", text)
    receipts.write(folder / "requirements.txt", libraries.requirements())
    image = _docker("build", "--quiet", "--file", str(folder / "Dockerfile"), str(folder)).splitlines()[-1]
    layers = found["RootFS"]["Layers"]
    if _inspect(image)["RootFS"]["Layers"][: len(layers)] != layers:
        raise Unreachable("BUILD_FAILED", f"{base} was changed while the image was built; build it again")
    installed: dict[str, Json] = dict(libraries.listed(Docker(image)))
    receipt: dict[str, Json] = {
        "sandbox_image": image,
        "base_image": base,
        "base_image_id": found["Id"],
        "base_image_digests": digests,
        "requirements_sha256": libraries.requirements_sha256(),
        "dockerfile_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "import_check": list(libraries.IMPORTS),
        "installed": installed,
    }
    receipts.write(folder / "manifest.json", receipt)
    receipts.write(folder / "image-id", image + "\n")
    return image


def _present(base: str) -> None:
    """Gets the base unless it is there. Raises: `Unreachable` (`BUILD_FAILED`)."""
    _docker("version", "--format", "{{.Server.Version}}")
    try:
        _inspect(base)
    except Unreachable:
        try:
            _docker("pull", "--quiet", base)
        except Unreachable as error:
            raise Unreachable(
                "BUILD_FAILED",
                f"the base image {base} is not on this machine and cannot be pulled ({error.message}); "
                "load it, or name another one with SR_BENCH_SANDBOX_BASE",
            ) from error


def _inspect(image: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_docker("image", "inspect", image))[0]
    return found


def _docker(*arguments: str) -> str:
    try:
        done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=BUILD_S, check=False)
    except FileNotFoundError as error:
        raise Unreachable("BUILD_FAILED", "the command docker is not found; install a Docker engine") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreachable("BUILD_FAILED", f"docker {arguments[0]} cannot be run: {error}") from error
    if done.returncode:
        last = done.stderr.strip().splitlines() or ["it said nothing"]
        raise Unreachable("BUILD_FAILED", f"docker {' '.join(arguments[:2])} failed: {last[-1][:300]}")
    return done.stdout.strip()


@click.command()
@click.option("--base", default=os.environ.get("SR_BENCH_SANDBOX_BASE") or BASE, show_default=True, help="The base image.")
def main(base: str) -> None:
    """Builds the image and prints its digest."""
    folder = home() / "sandbox"
    try:
        image = build(base, folder)
    except SrBenchError as error:
        print(f"{error.reason}: {error.message}", file=sys.stderr)
        sys.exit(EXIT_CODES.get(error.kind, 1))
    print(f"the sandbox image is {image}; its receipt is {folder / 'manifest.json'}")


if __name__ == "__main__":
    main()
