"""SciCode: 65 research problems, each solved in steps. One case is one whole problem; its steps are asked in turn."""

from __future__ import annotations

from srbench_kit.step_tests import hidden_part, rows_of

from srbench_planner import prompts
from srbench_planner.benchmark import BenchmarkSpec, Counts, HubSource, Row, Task, bad_row, identity_of, text_of


def normalize(row: Row, _seed: int) -> Task:
    """A problem of a row: the rules as system message, then a user message for each step, without their background."""
    steps = rows_of(row.values)
    messages = [("system", prompts.step_rules(text_of(row, "required_dependencies", blank=True)))]
    for place, step in enumerate(steps):
        texts = [step.get(name) for name in ("step_description_prompt", "function_header", "return_line")]
        description, header, last = (text if isinstance(text, str) else "" for text in texts)
        if not description.strip() or not header.strip():
            raise bad_row("sub_steps", f"sub_steps[{place}] has no description or no function header")
        messages.append(("user", prompts.step(place + 1, len(steps), description, header, last)))
    return Task(
        identity=identity_of(row, ("problem_id",)),
        stratum="all",
        messages=tuple(messages),
        metadata={"problem_name": text_of(row, "problem_name"), "step_count": len(steps)},
    )


def hidden(row: Row) -> bytes:
    """The tests of all steps."""
    return hidden_part(row.values)


SPEC = BenchmarkSpec(
    id="scicode",
    title="SciCode",
    kind="code",
    weight=0.10,
    adapter_version="sr-bench-steps-v4",
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
    grader="scicode",
    columns=("problem_id", "problem_name", "required_dependencies", "sub_steps"),
    normalize=normalize,
    hidden=hidden,
    requires_answer=False,
    requires_messages=False,
)
