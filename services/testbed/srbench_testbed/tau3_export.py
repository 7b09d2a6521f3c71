"""Copies τ³'s real task files out of an installed tau2-bench: `python -m srbench_testbed.tau3_export --out DIR`.

The interpreter is the one that runs the benchmark: `SR_BENCH_TAU3_PYTHON`, or the environment of `setup --install`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from srbench_kit import upstreams

FILES = ("airline/tasks.json", "retail/tasks.json", "telecom/tasks.json", "telecom/split_tasks.json")
_FIND = "import importlib.util as u; print(u.find_spec('tau2').submodule_search_locations[0])"


def export(python: Path, out: Path) -> Path:
    """Writes the files to `out/domains`. Raises: `OSError`, `subprocess.CalledProcessError`."""
    done = subprocess.run([str(python), "-I", "-c", _FIND], capture_output=True, text=True, check=True, timeout=60)
    domains = Path(done.stdout.strip()) / "data" / "tau2" / "domains"
    for name in FILES:
        target = out / "domains" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(domains / name, target)
    return out


def main(arguments: list[str] | None = None) -> int:
    """Writes the task files below `--out`."""
    parser = argparse.ArgumentParser(prog="python -m srbench_testbed.tau3_export", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    python = upstreams.python("TAU3", "tau3")
    try:
        print(export(python, parser.parse_args(arguments).out))
    except (OSError, subprocess.SubprocessError) as error:
        print(f"no tau2-bench to take the tasks from, looked for {python}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
