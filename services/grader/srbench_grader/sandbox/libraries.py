"""The libraries that programs find in every sandbox of ours, pinned with their hashes, and whether they are there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib import resources

from srbench_kit.errors import Unreachable

from srbench_grader.sandbox.limits import Limits
from srbench_grader.sandbox.values import Program, Sandbox

# Python releases that all of them have wheels for.
PYTHONS = ((3, 11), (3, 12))
IMPORTS = (
    *(
        "numpy",
        "scipy.optimize",
        "scipy.integrate",
        "scipy.linalg",
        "scipy.sparse.linalg",
        "scipy.special",
        "sympy",
        "h5py",
    ),
    *("matplotlib.pyplot", "mpl_toolkits.mplot3d"),
)
_LIST = """
import importlib, importlib.metadata, json
for name in {names}: importlib.import_module(name)
print(json.dumps({{one.metadata["Name"].lower(): one.version for one in importlib.metadata.distributions()}}))
"""
_LIST_S = 120.0


def requirements() -> str:
    """The pinned list, as pip reads it."""
    return (resources.files("srbench_grader.sandbox") / "requirements.txt").read_text()


def requirements_sha256() -> str:
    """The digest of the pinned list."""
    return hashlib.sha256(requirements().encode()).hexdigest()


def listed(sandbox: Sandbox) -> Mapping[str, str]:
    """What is installed in `sandbox`, by name, after all that programs may need was imported there.

    Raises: `Unreachable` (`NO_LIBRARIES`).
    """
    text = _LIST.format(names=IMPORTS)
    finished = sandbox.start(Program(python=("-I", "-c", text)), Limits(wall_s=_LIST_S)).finish()
    if finished.exit_code:
        said = finished.stderr.decode("utf-8", "replace").strip().splitlines() or [finished.end]
        raise Unreachable("NO_LIBRARIES", f"the sandbox lacks libraries: {said[-1][:300]}")
    return dict(sorted(json.loads(finished.stdout).items()))
