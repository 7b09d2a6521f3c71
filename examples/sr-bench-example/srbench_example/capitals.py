"""Capitals: which of four cities is the capital of a country."""

from __future__ import annotations

from srbench_planner import prompts
from srbench_planner.benchmark import BenchmarkSpec, Counts, HubSource, Row, Task, bad_row, identity_of, text_of


def normalize(row: Row, _seed: int) -> Task:
    """A row has `id`, `country`, `cities` (four names) and `answer`, one of them."""
    cities = row.values.get("cities")
    if not isinstance(cities, list) or len(cities) != 4 or not all(isinstance(city, str) for city in cities):
        raise bad_row("cities", "cities is no list of four names")
    names = [str(city) for city in cities]
    answer = text_of(row, "answer")
    if answer not in names:
        raise bad_row("answer", f"answer is {answer!r}; expected one of the cities")
    return Task(
        identity=identity_of(row),
        stratum=text_of(row, "continent"),
        prompt=prompts.multiple_choice(f"What is the capital of {text_of(row, 'country')}?", names),
        answer=prompts.LETTERS[names.index(answer)],
        choices=tuple(names),
    )


SPEC = BenchmarkSpec(
    id="capitals",
    title="Capitals",
    kind="multiple-choice",
    weight=0.05,
    adapter_version="capitals-v1",
    source_url="https://example.org/capitals",
    source=HubSource(
        repository="example/capitals",
        revision="0" * 40,
        files=("capitals.jsonl",),
        license_url="https://example.org/capitals/license",
        access_note="An example; give the file by hand.",
    ),
    counts=Counts(smoke=2, quick=4, standard=6),
    driver="single_turn",
    grader="choice",
    columns=("id", "country", "continent", "cities", "answer"),
    normalize=normalize,
)
