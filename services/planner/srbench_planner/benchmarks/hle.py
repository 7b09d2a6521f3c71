"""Humanity's Last Exam, text questions only: 2,500 expert questions less those that come with a picture."""

from __future__ import annotations

from srbench_planner.benchmark import BenchmarkSpec, Counts, HubSource, Row, Task, identity_of, text_of


def is_text(row: Row) -> bool:
    """Whether the question has no picture. Pictures that a text only refers to are not seen."""
    image = row.values.get("image")
    # Parquet's pictures are records, empty ones, too.
    return not (any(image.values()) if isinstance(image, dict) else image)


def normalize(row: Row, _seed: int) -> Task:
    """A question of a row: asked alone, without a word on the form of the answer."""
    return Task(
        identity=identity_of(row),
        stratum=text_of(row, "category"),
        prompt=text_of(row, "question"),
        answer=text_of(row, "answer"),
        metadata={"answer_type": text_of(row, "answer_type")} if "answer_type" in row.values else {},
    )


SPEC = BenchmarkSpec(
    id="hle",
    title="Humanity's Last Exam (text)",
    kind="judge",
    weight=0.15,
    adapter_version="sr-bench-judge-v2",
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
    columns=("id", "question", "image", "answer", "category"),
    normalize=normalize,
    keeps=is_text,
)
