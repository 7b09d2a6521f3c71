"""What a run was started with: program, interpreter, machine, installed packages. Captured once a process."""

from __future__ import annotations

import functools
import platform
import time
from collections.abc import Sequence
from importlib import metadata

from srbench.v1 import recipe_pb2
from srbench_kit.canonical import digest
from srbench_kit.values import Json

DISTRIBUTION = "sr-bench"


@functools.cache
def _environment() -> dict[str, Json]:
    packages: dict[str, Json] = {}
    for found in metadata.distributions():
        name = found.metadata["Name"]
        if name:
            packages[name.lower()] = found.version
    facts: dict[str, Json] = {
        "program": DISTRIBUTION,
        "version": str(packages.get(DISTRIBUTION, "unknown")),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "packages": {name: packages[name] for name in sorted(packages)},
    }
    return facts | {"fingerprint": digest(facts)}


def capture() -> dict[str, Json]:
    """The facts about this process; `fingerprint` is the digest of all but the time."""
    return _environment() | {"captured_at": time.time()}


def of_recipes(recipes: Sequence[tuple[str, recipe_pb2.Recipe]]) -> dict[str, Json]:
    """What the provenance of a run says of its captured recipes, by target; nothing when there are none."""
    if not recipes:
        return {}
    return {
        "recipes": {
            target_id: {
                "recipe_sha256": recipe.recipe_sha256,
                "source_config_hash": recipe.source_config_hash,
                "active_runtime_hash": recipe.active_runtime_hash,
                "captured_at": recipe.capture_time.seconds + recipe.capture_time.nanos / 1e9,
            }
            for target_id, recipe in recipes
        }
    }
