"""Terminal-Bench tasks of our own in upstream's layout: three that a shell script solves, none that needs a network."""

from __future__ import annotations

from pathlib import Path

TOML = """\
schema_version = "1.1"
artifacts = []

[task]
name = "ours/{name}"

[metadata]
difficulty = "easy"
category = "file-operations"

[verifier]
timeout_sec = 60.0

[agent]
timeout_sec = {agent_s}

[environment]
build_timeout_sec = 120.0
docker_image = "registry.example.invalid/ours/{name}:1"
cpus = 1
memory_mb = 512
storage_mb = 1024
gpus = 0
allow_internet = false
mcp_servers = []
"""
# Name -> (instruction, files beside the Dockerfile, solution, test: a shell condition).
TASKS: dict[str, tuple[str, dict[str, str], str, str]] = {
    "count-lines": (
        "Write the number of lines of /app/words.txt that start with b to /app/count.txt.",
        {"words.txt": "apple\nbanana\nblue\nbrown\n"},
        "grep -c '^b' /app/words.txt > /app/count.txt",
        '[ "$(tr -d "[:space:]" < /app/count.txt)" = 3 ]',
    ),
    "say-hello": (
        "Create /app/hello.txt with the single line: hello there",
        {"note.txt": "nothing\n"},
        "echo 'hello there' > /app/hello.txt",
        '[ "$(cat /app/hello.txt)" = "hello there" ]',
    ),
    "no-network": (
        "Write the names of this machine's network devices to /app/devices.txt, one a line.",
        {"note.txt": "nothing\n"},
        "ls /sys/class/net > /app/devices.txt",
        '[ "$(cat /app/devices.txt)" = lo ]',
    ),
}


def write_tasks(root: Path, agent_s: float = 60.0) -> Path:
    """Writes the tasks below `root/tasks` and gives `root`."""
    for name, (instruction, files, solution, condition) in TASKS.items():
        folder = root / "tasks" / name
        copies = "".join(f"COPY {file} /app/{file}\n" for file in files)
        texts = {
            "task.toml": TOML.format(name=name, agent_s=agent_s),
            "instruction.md": instruction + "\n",
            "environment/Dockerfile": f"FROM debian:bookworm-slim\nWORKDIR /app\n{copies}",
            "solution/solve.sh": f"#!/bin/sh\nset -e\n{solution}\n",
            "tests/test.sh": f"#!/bin/sh\nif {condition}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n",
        } | {f"environment/{file}": text for file, text in files.items()}
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    return root
