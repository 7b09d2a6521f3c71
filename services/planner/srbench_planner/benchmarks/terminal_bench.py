"""Terminal-Bench 2.1: tasks in a container. In the catalog; this build cannot prepare it yet."""

from __future__ import annotations

from srbench_planner.benchmark import BenchmarkSpec, Counts, GitSource

SPEC = BenchmarkSpec(
    id="terminal-bench-2.1",
    title="Terminal-Bench 2.1",
    kind="agent",
    weight=0.10,
    adapter_version="sr-bench-1.0",
    source_url="https://www.tbench.ai",
    source=GitSource(
        repository="harbor-framework/terminal-bench-2-1",
        revision="7131e4375048a0e408a8fb404b5f499d726b695b",
        folder="tasks",
        license_url="https://github.com/harbor-framework/terminal-bench-2-1",
        access_note="Public; Apache-2.0. Running it needs Docker.",
    ),
    counts=Counts(smoke=1, quick=3, standard=15),
    driver="harness",
    grader="harness",
    requires_answer=False,
    requires_messages=False,
)
