"""SciCode: research programs in steps. In the catalog; this build cannot prepare it yet."""

from __future__ import annotations

from srbench_planner.benchmark import BenchmarkSpec, Counts, HubSource

SPEC = BenchmarkSpec(
    id="scicode",
    title="SciCode",
    kind="code",
    weight=0.10,
    adapter_version="sr-bench-1.0",
    source_url="https://github.com/scicode-bench/SciCode",
    source=HubSource(
        repository="SciCode1/SciCode",
        revision="4510f6a6aa27c43fad7b43da2c59602a86e88480",
        files=("problems_test.jsonl",),
        license_url="https://huggingface.co/datasets/SciCode1/SciCode",
        access_note="Public; Apache-2.0. The numeric targets are a separate file.",
    ),
    counts=Counts(smoke=1, quick=3, standard=20),
    driver="scicode",
    grader="code",
    requires_answer=False,
    requires_messages=False,
)
