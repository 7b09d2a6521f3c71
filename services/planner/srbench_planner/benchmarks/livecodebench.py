"""LiveCodeBench, release 6: 1,055 contest problems in six files, with hidden tests that lie apart from their cases."""

from __future__ import annotations

from srbench_kit.packed_tests import hidden_part
from srbench_kit.values import Json

from srbench_planner import prompts
from srbench_planner.benchmark import BenchmarkSpec, Counts, HubSource, Row, Task, bad_row, identity_of, text_of

DIFFICULTIES = ("easy", "medium", "hard")
_FACTS = ("platform", "contest_id", "contest_date", "question_title")


def normalize(row: Row, _seed: int) -> Task:
    """A problem of a row: its text and, where there is one, the code to start from."""
    difficulty = text_of(row, "difficulty")
    if difficulty not in DIFFICULTIES:
        raise bad_row("difficulty", f"difficulty is {difficulty!r}; expected {', '.join(DIFFICULTIES)}")
    starter = row.values.get("starter_code")
    metadata: dict[str, Json] = {name: row.values[name] for name in _FACTS if isinstance(row.values.get(name), str)}
    return Task(
        identity=identity_of(row, ("question_id",)),
        stratum=difficulty,
        prompt=prompts.program(text_of(row, "question_content"), starter if isinstance(starter, str) else ""),
        metadata=metadata,
    )


def hidden(row: Row) -> bytes:
    """All tests of a row, the public ones first."""
    return hidden_part(row.values)


SPEC = BenchmarkSpec(
    id="livecodebench",
    title="LiveCodeBench",
    kind="code",
    weight=0.10,
    adapter_version="sr-bench-code-v3",
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
    columns=("question_id", "question_content", "difficulty", "public_test_cases", "private_test_cases"),
    normalize=normalize,
    hidden=hidden,
    requires_answer=False,
)
