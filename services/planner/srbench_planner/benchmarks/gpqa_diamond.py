"""GPQA Diamond: 198 graduate questions with four options. Gated; the authors ask that questions are not published."""

from __future__ import annotations

import random

from srbench_kit.canonical import digest
from srbench_kit.values import Json

from srbench_planner import prompts
from srbench_planner.benchmark import BenchmarkSpec, Counts, HubSource, Row, Task, bad_row, text_of
from srbench_planner.prompts import LETTERS

COLUMNS = ("Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3", "Subdomain")


def question_id(question: str) -> str:
    """The published identity of a question: 24 hex digits of the digest of its text as it stands in the file."""
    return digest(question)[:24]


def choice_order(identity: str, seed: int) -> list[int]:
    """The order of the options: positions in the list correct, incorrect 1, 2, 3.

    Published as the shuffle of CPython's generator seeded with the text of the digest of `[seed, identity]`.
    """
    order = [0, 1, 2, 3]
    random.Random(digest([seed, identity])).shuffle(order)
    return order


def normalize(row: Row, seed: int) -> Task:
    """A question of a row; identity and shuffle take the raw text, the prompt drops outer blanks."""
    question = text_of(row, "Question")
    options = [text_of(row, name) for name in COLUMNS[1:5]]
    stripped = [option.strip() for option in options]
    if len(set(stripped)) != len(stripped):
        raise bad_row("Incorrect Answer 1", "two of the four answers are the same; expected four different ones")
    identity = question_id(question)
    order = choice_order(identity, seed)
    metadata: dict[str, Json] = {"retest_notice": "The labels are public; a result says nothing about unseen data."}
    return Task(
        identity=identity,
        stratum=text_of(row, "Subdomain"),
        prompt=prompts.multiple_choice(question, [options[place] for place in order]),
        answer=LETTERS[order.index(0)],
        choices=tuple(stripped[place] for place in order),
        metadata=metadata,
    )


SPEC = BenchmarkSpec(
    id="gpqa-diamond",
    title="GPQA Diamond",
    kind="multiple-choice",
    weight=0.15,
    adapter_version="sr-bench-mcq-final-v4",
    source_url="https://huggingface.co/datasets/Idavidrein/gpqa",
    source=HubSource(
        repository="Idavidrein/gpqa",
        revision="633f5ee89ab8ad4522a9f850766b73f62147ffdd",
        files=("gpqa_diamond.csv",),
        license_url="https://huggingface.co/datasets/Idavidrein/gpqa",
        access_note="Gated: accept the terms on the dataset's page and set HF_TOKEN for the planner. "
        "The authors ask not to publish questions in plain text.",
        gated=True,
    ),
    counts=Counts(smoke=4, quick=40, standard=158),
    driver="single_turn",
    grader="choice",
    columns=COLUMNS,
    normalize=normalize,
)
