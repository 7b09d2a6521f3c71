"""Synthetic files of the benchmarks with free answers, HLE and SimpleQA Verified, in the true upstream layouts."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from random import Random

from srbench_testbed.questions import MAKERS, decimal

NOTICE = "SYNTHETIC: computed question, not an item of the upstream benchmark"
# HLE's categories, and the subject whose questions stand in.
CATEGORIES = {
    "Biology/Medicine": "biology",
    "Chemistry": "chemistry",
    "Computer Science/AI": "computer science",
    "Engineering": "engineering",
    "Humanities/Social Science": "history",
    "Math": "math",
    "Other": "other",
    "Physics": "physics",
}
TOPICS = ("Art", "Geography", "History", "Music", "Other", "Politics", "Science and technology", "Sports", "TV shows")
SIMPLEQA_COLUMNS = (
    *("original_index", "problem", "answer", "topic", "answer_type", "multi_step", "requires_reasoning", "urls"),
)
# Every so many HLE rows have a picture, as upstream's have.
PICTURE_EVERY = 7


def computed(subject: str, count: int, rng: Random) -> Iterator[tuple[str, str]]:
    """Distinct questions of a subject with their exact answers."""
    asked: set[str] = set()
    while len(asked) < count:
        text, answer = rng.choice(MAKERS[subject])(rng)
        if text not in asked:
            asked.add(text)
            yield text, decimal(answer)


def hle_rows(seed: int, rows_per_category: int) -> Iterator[dict[str, object]]:
    """Rows in the columns of HLE; some have a picture, which makes them no part of the benchmark."""
    number = 0
    for category, subject in sorted(CATEGORIES.items()):
        for text, answer in computed(subject, rows_per_category, Random(f"hle|{seed}|{category}")):
            picture = number % PICTURE_EVERY == PICTURE_EVERY - 1
            yield {
                "id": f"{0x5EED << 80 | number:024x}",
                "question": text,
                "image": "data:image/png;base64,AAAA" if picture else "",
                "image_preview": {"bytes": b"", "path": None} if picture else None,
                "answer": answer,
                "answer_type": "exactMatch",
                "author_name": "synthetic",
                "rationale": f"Computed: {answer}",
                "rationale_image": None,
                "raw_subject": category,
                "category": category,
                "canary": NOTICE,
            }
            number += 1


def write_hle(path: Path, seed: int = 1, rows_per_category: int = 36) -> int:
    """Writes a Parquet file with the schema of HLE's test file. Returns the number of rows."""
    import pyarrow as pa
    from pyarrow import parquet

    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = list(hle_rows(seed, rows_per_category))
    types = {"image_preview": picture, "rationale_image": picture}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in rows[0]])
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return len(rows)


def write_simpleqa(path: Path, seed: int = 1, count: int = 600) -> int:
    """Writes a CSV file with the header of SimpleQA Verified. Returns the number of rows."""
    subjects = sorted(MAKERS)
    asked = {name: computed(name, count, Random(f"simpleqa|{seed}|{name}")) for name in subjects}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(SIMPLEQA_COLUMNS)
        for number in range(count):
            text, answer = next(asked[subjects[number % len(subjects)]])
            facts = (TOPICS[number % len(TOPICS)], "Number", "False", "True", "https://example.org/synthetic")
            writer.writerow((1_000_000 + 3 * number, text, answer, *facts))
    return count
