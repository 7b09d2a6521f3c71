"""MMLU-Pro: 12,032 multiple-choice questions in 14 categories, three to ten options each."""

from __future__ import annotations

from srbench_kit.values import Json

from srbench_planner import prompts
from srbench_planner.benchmark import BenchmarkSpec, Counts, HubSource, Row, Task, bad_row, identity_of, text_of
from srbench_planner.prompts import LETTERS

# Rows of the published file whose letter and index disagree, by id: (letter, index). The letter is upstream's key.
ERRATA = {"3983": ("C", 1)}


def options_of(row: Row) -> list[str]:
    """The options. Blank texts and `N/A` keep their places: letters count positions."""
    options = row.values.get("options")
    if not isinstance(options, list):
        shown = "null" if options is None else type(options).__name__
        raise bad_row("options", f"options is {shown}; expected a list of 2 to {len(LETTERS)} texts")
    texts: list[str] = []
    for place, option in enumerate(options):
        if not isinstance(option, str):
            shown = "null" if option is None else type(option).__name__
            raise bad_row("options", f"options[{place}] is {shown}; expected text")
        texts.append(option)
    if not 2 <= len(texts) <= len(LETTERS):
        raise bad_row("options", f"options has {len(texts)} entries; expected 2 to {len(LETTERS)}")
    return texts


def key_of(row: Row, identity: str, count: int) -> str:
    """The letter of the right option; it must lie within the options and agree with `answer_index` where that is given."""
    letter = text_of(row, "answer")
    if len(letter) != 1 or letter not in LETTERS[:count]:
        raise bad_row("answer", f"answer is {letter!r}; expected a letter from A to {LETTERS[count - 1]}")
    index = row.values.get("answer_index")
    if "answer_index" not in row.values:
        return letter
    if isinstance(index, bool) or not isinstance(index, int):
        raise bad_row("answer_index", f"answer_index is {index!r}; expected an integer")
    if LETTERS.index(letter) != index and ERRATA.get(identity) != (letter, index):
        raise bad_row(
            "answer_index",
            f"answer {letter} and answer_index {index} disagree; expected {LETTERS.index(letter)} for {letter}",
        )
    return letter


def normalize(row: Row, _seed: int) -> Task:
    """A question of a row. A file without the column `category` has one stratum, `all`."""
    identity, question = identity_of(row), text_of(row, "question")
    options = options_of(row)
    letter = key_of(row, identity, len(options))
    metadata: dict[str, Json] = {}
    if identity in ERRATA and row.values.get("answer_index") != LETTERS.index(letter):
        metadata["erratum"] = "upstream's answer and answer_index disagree; the letter is the key"
    return Task(
        identity=identity,
        stratum=text_of(row, "category") if "category" in row.values else "all",
        prompt=prompts.multiple_choice(question, options),
        answer=letter,
        choices=tuple(option.strip() for option in options),
        metadata=metadata,
    )


SPEC = BenchmarkSpec(
    id="mmlu-pro",
    title="MMLU-Pro",
    kind="multiple-choice",
    weight=0.10,
    adapter_version="sr-bench-mcq-final-v4",
    source_url="https://huggingface.co/datasets/TIGER-Lab/MMLU-Pro",
    source=HubSource(
        repository="TIGER-Lab/MMLU-Pro",
        revision="b189ec765aa7ed75c8acfea42df31fdae71f97be",
        files=("data/test-00000-of-00001.parquet",),
        license_url="https://huggingface.co/datasets/TIGER-Lab/MMLU-Pro",
        access_note="Public; MIT licence.",
    ),
    counts=Counts(smoke=14, quick=500, standard=2000),
    driver="single_turn",
    grader="choice",
    columns=("question", "options", "answer"),
    normalize=normalize,
)
