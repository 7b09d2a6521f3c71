"""SimpleQA Verified: 1,000 short questions of fact."""

from __future__ import annotations

from srbench_kit.values import Json

from srbench_planner.benchmark import BenchmarkSpec, Counts, HubSource, Row, Task, text_of

_FACTS = ("original_index", "answer_type", "multi_step", "requires_reasoning")


def normalize(row: Row, _seed: int) -> Task:
    """A question of a row.

    Its identity is its position in the file, as the released implementation has it: selections and task ids of both are
    the same. `original_index` is kept as metadata; a file whose rows were sorted anew shows in its SHA-256.
    """
    metadata: dict[str, Json] = {name: row.values[name] for name in _FACTS if row.values.get(name) not in (None, "")}
    return Task(
        identity=str(row.position),
        stratum=text_of(row, "topic") if "topic" in row.values else "all",
        prompt=text_of(row, "problem"),
        answer=text_of(row, "answer").strip(),
        metadata=metadata,
    )


SPEC = BenchmarkSpec(
    id="simpleqa-verified",
    title="SimpleQA Verified",
    kind="judge",
    weight=0.10,
    adapter_version="sr-bench-judge-v2",
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
    columns=("problem", "answer"),
    normalize=normalize,
)
