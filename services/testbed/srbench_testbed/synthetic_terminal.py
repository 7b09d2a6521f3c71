"""Synthetic Terminal-Bench tasks in upstream's layout: small jobs on files, without network, each with its solution."""

from __future__ import annotations

from pathlib import Path
from random import Random

IMAGE = "debian:bookworm-slim"
_TOML = """\
schema_version = "1.1"
artifacts = []

[task]
name = "synthetic/{name}"

[metadata]
difficulty = "easy"
category = "file-operations"

[verifier]
timeout_sec = 60.0

[agent]
timeout_sec = 120.0

[environment]
build_timeout_sec = 300.0
docker_image = "registry.example.invalid/synthetic/{name}:1"
cpus = 1
memory_mb = 512
storage_mb = 1024
gpus = 0
allow_internet = false
mcp_servers = []
"""
_SOLUTION = """\
#!/bin/sh
set -e
total=0
while read -r number; do total=$((total + number)); done < /app/numbers.txt
echo "$total" > /app/sum.txt
"""


def write_tasks(root: Path, seed: int = 1, count: int = 18) -> int:
    """Writes tasks below `root/tasks`; 18 are enough for all profiles. Returns their number."""
    rng = Random(f"terminal|{seed}")
    for number in range(count):
        name, values = f"syn-sum-{number:02d}", [rng.randint(1, 9999) for _ in range(20)]
        texts = {
            "task.toml": _TOML.format(name=name),
            "instruction.md": f"Task {name}: write the sum of the numbers in /app/numbers.txt to /app/sum.txt.\n",
            "environment/Dockerfile": f"FROM {IMAGE}\nWORKDIR /app\nCOPY numbers.txt /app/numbers.txt\n",
            "environment/numbers.txt": "".join(f"{value}\n" for value in values),
            "solution/solve.sh": _SOLUTION,
            "tests/test.sh": (
                f'#!/bin/sh\nif [ "$(cat /app/sum.txt 2>/dev/null)" = {sum(values)} ]; then echo 1; else echo 0; fi '
                "> /logs/verifier/reward.txt\n"
            ),
        }
        for path, text in texts.items():
            file = root / "tasks" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    return count
