"""The example package, installed into a fresh environment beside sr-bench, is a tenth benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[3]
ASK = """
import json, sys
from pathlib import Path
from srbench_planner import catalog
from srbench_planner.prepare import check_request, prepare
from srbench_planner.datasets import DatasetStore

known = catalog.load()
store = Path(sys.argv[2])
store.mkdir()
request = check_request(
    known, benchmarks=["capitals"], profile="smoke", source_path=sys.argv[1], revision="1"
)
made = prepare(known, store, request, lambda _progress: None)
cases = DatasetStore(store).cases(made)
spec = known.get("capitals")
print(json.dumps([[each.id for each in known.benchmarks], spec.driver, spec.grader, list(cases)]))
"""


def test_a_package_of_somebody_else_adds_a_benchmark_by_one_file(tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", str(environment)], check=True)
    python = str(environment / "bin" / "python")
    uv = [str(Path(sys.executable).parent / "uv"), "pip", "install", "--quiet", "--python", python]
    own = [str(path) for path in map(Path, sys.path) if path.name == "site-packages"]
    subprocess.run([*uv, "--no-deps", str(ROOT / "examples" / "sr-bench-example")], check=True)
    rows = [
        {
            "id": f"c{number}",
            "country": f"Country {number}",
            "continent": ("Asia", "Europe")[number % 2],
            "cities": ["Alpha", "Beta", "Gamma", f"Delta {number}"],
            "answer": "Beta",
        }
        for number in range(12)
    ]
    source = tmp_path / "capitals.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    # The tested checkout and its dependencies come from this environment, the example from the fresh one.
    places = [*own, *(str(ROOT / part) for part in ("proto", "services/kit", "services/planner"))]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    asked = subprocess.run(
        [python, "-c", ASK, str(source), str(tmp_path / "store")], env=env, capture_output=True, text=True, check=False
    )
    assert asked.returncode == 0, asked.stderr
    ids, driver, grader, cases = json.loads(asked.stdout)
    assert (len(ids), ids[-1], driver, grader) == (10, "capitals", "single_turn", "choice")
    assert [case["answer"] for case in cases] == ["B", "B"]
    assert "What is the capital of" in cases[0]["messages"][0]["content"]
