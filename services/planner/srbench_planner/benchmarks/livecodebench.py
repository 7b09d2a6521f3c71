"""LiveCodeBench, release 6. In the catalog; this build cannot prepare it yet."""

from __future__ import annotations

from srbench_planner.benchmark import BenchmarkSpec, Counts, HubSource

SPEC = BenchmarkSpec(
    id="livecodebench",
    title="LiveCodeBench",
    kind="code",
    weight=0.10,
    adapter_version="sr-bench-1.0",
    source_url="https://github.com/LiveCodeBench/LiveCodeBench",
    source=HubSource(
        repository="livecodebench/code_generation_lite",
        revision="0fe84c3912ea0c4d4a78037083943e8f0c4dd505",
        files=("test.jsonl", "test2.jsonl", "test3.jsonl", "test4.jsonl", "test5.jsonl", "test6.jsonl"),
        license_url="https://huggingface.co/datasets/livecodebench/code_generation_lite",
        access_note="Public; 4.5 GB of problems collected from contest sites.",
    ),
    counts=Counts(smoke=2, quick=30, standard=150),
    driver="single_turn",
    grader="code",
    requires_answer=False,
)
