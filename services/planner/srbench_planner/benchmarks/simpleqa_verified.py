"""SimpleQA Verified: 1,000 short questions of fact. In the catalog; this build cannot prepare it yet."""

from __future__ import annotations

from srbench_planner.benchmark import BenchmarkSpec, Counts, HubSource

SPEC = BenchmarkSpec(
    id="simpleqa-verified",
    title="SimpleQA Verified",
    kind="judge",
    weight=0.10,
    adapter_version="sr-bench-1.0",
    source_url="https://www.kaggle.com/benchmarks/deepmind/simpleqa-verified",
    source=HubSource(
        repository="google/simpleqa-verified",
        revision="0dc97e0d28d8233463e005cdc4475cc2a13ba2dc",
        files=("simpleqa_verified.csv",),
        license_url="https://huggingface.co/datasets/google/simpleqa-verified",
        access_note="Public; MIT licence.",
    ),
    counts=Counts(smoke=5, quick=100, standard=500),
    driver="single_turn",
    grader="judge",
)
