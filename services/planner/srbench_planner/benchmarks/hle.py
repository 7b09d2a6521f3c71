"""Humanity's Last Exam, text questions only. In the catalog; this build cannot prepare it yet."""

from __future__ import annotations

from srbench_planner.benchmark import BenchmarkSpec, Counts, HubSource

SPEC = BenchmarkSpec(
    id="hle",
    title="Humanity's Last Exam (text)",
    kind="judge",
    weight=0.15,
    adapter_version="sr-bench-1.0",
    source_url="https://huggingface.co/datasets/cais/hle",
    source=HubSource(
        repository="cais/hle",
        revision="5a81a4c7271a2a2a312b9a690f0c2fde837e4c29",
        files=("data/test-00000-of-00001.parquet",),
        license_url="https://huggingface.co/datasets/cais/hle",
        access_note="Gated: accept the terms on the dataset's page and set HF_TOKEN for the planner. "
        "The authors ask not to publish questions in plain text.",
        gated=True,
    ),
    counts=Counts(smoke=4, quick=40, standard=200),
    driver="single_turn",
    grader="judge",
)
