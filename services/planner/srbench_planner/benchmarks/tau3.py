"""τ³: customer service with tools and a simulated user. In the catalog; this build cannot prepare it yet."""

from __future__ import annotations

from srbench_planner.benchmark import BenchmarkSpec, Counts, GitSource

SPEC = BenchmarkSpec(
    id="tau3",
    title="τ³",
    kind="agent",
    weight=0.10,
    adapter_version="sr-bench-1.0",
    source_url="https://github.com/sierra-research/tau2-bench",
    source=GitSource(
        repository="sierra-research/tau2-bench",
        revision="fc0055dc4e0a316c3f83133267fbd6faaa770992",
        folder="data/tau2",
        license_url="https://github.com/sierra-research/tau2-bench/blob/main/LICENSE",
        access_note="Public; MIT licence.",
    ),
    counts=Counts(smoke=3, quick=12, standard=60),
    driver="harness",
    grader="harness",
    order="balanced",
    requires_answer=False,
    requires_messages=False,
)
