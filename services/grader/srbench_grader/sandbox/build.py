"""`python -m srbench_grader.sandbox.build`: builds the offline image that programs are graded in, and writes its receipt.

Writes to `SR_BENCH_HOME`/sandbox: `Dockerfile`, `image-id` (the digest that graders use) and `manifest.json`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import click
from srbench_kit.errors import EXIT_CODES, SrBenchError, Unreachable

from srbench_grader.sandbox.selection import home

BASE = "python:3.11-slim-bookworm"
# As the released image has them, in releases that have wheels for Python 3.11.
REQUIREMENTS = ("numpy==1.26.4", "scipy==1.13.1", "sympy==1.12.1", "h5py==3.11.0")
IMPORTS = "import numpy, scipy.optimize, scipy.integrate, scipy.linalg, scipy.sparse, sympy, h5py"
BUILD_S = 1500.0


def dockerfile(base: str) -> str:
    """The image: pinned libraries on a base that is named by its digest, and a proof that they can be imported."""
    return (
        f"FROM {base}\n"
        f"RUN pip install --no-cache-dir {' '.join(REQUIREMENTS)}\n"
        f'RUN python3 -c "{IMPORTS}"\n'
        "USER 65533:65533\n"
    )


def build(base: str, folder: Path) -> str:
    """Builds the image from `base` and writes the receipt into `folder`; the image's digest.

    Raises: `Unreachable` (`BUILD_FAILED`).
    """
    base_id = _docker("image", "inspect", "--format", "{{.Id}}", base)
    text = dockerfile(base)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Dockerfile").write_text(text)
    image = _docker("build", "--quiet", "--file", str(folder / "Dockerfile"), str(folder)).splitlines()[-1]
    receipt = {
        "sandbox_image": image,
        "base_image": base,
        "base_image_id": base_id,
        "requirements": list(REQUIREMENTS),
        "import_check": IMPORTS,
        "dockerfile_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    (folder / "manifest.json").write_text(json.dumps(receipt, indent=2) + "\n")
    (folder / "image-id").write_text(image + "\n")
    return image


def _docker(*arguments: str) -> str:
    try:
        done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=BUILD_S, check=False)
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
    try:
        image = build(base, home() / "sandbox")
    except SrBenchError as error:
        print(f"{error.reason}: {error.message}", file=sys.stderr)
        sys.exit(EXIT_CODES.get(error.kind, 1))
    print(f"the sandbox image is {image}")


if __name__ == "__main__":
    main()
