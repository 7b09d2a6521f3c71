"""Synthetic benchmark files in the true upstream layouts: `python -m srbench_testbed.synthetic --out DIR --seed N`.

Nothing in them comes from an upstream benchmark; every answer is computed. The rows depend on the seed alone.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

from srbench_testbed.questions import MAKERS, Question, questions
from srbench_testbed.synthetic_answers import NOTICE, write_hle, write_simpleqa
from srbench_testbed.synthetic_programs import write_livecodebench, write_scicode
from srbench_testbed.synthetic_terminal import write_tasks

LETTERS = "ABCDEFGHIJ"
FIRST_ID = 1_000_000
REVISION = "synthetic-v1"

# Subdomains of GPQA with rows in a hundred and the subject whose questions stand in.
SUBDOMAINS: Mapping[str, tuple[int, str]] = {
    "Astrophysics": (7, "physics"),
    "Chemistry (general)": (10, "chemistry"),
    "Condensed Matter Physics": (1, "engineering"),
    "Electromagnetism and Photonics": (3, "engineering"),
    "Genetics": (2, "biology"),
    "High-energy particle physics": (7, "physics"),
    "Inorganic Chemistry": (1, "chemistry"),
    "Molecular Biology": (8, "biology"),
    "Optics and Acoustics": (1, "math"),
    "Organic Chemistry": (36, "chemistry"),
    "Physics (general)": (9, "physics"),
    "Quantum Mechanics": (12, "math"),
    "Relativistic Mechanics": (3, "math"),
}


def mmlu_pro_rows(seed: int, rows_per_category: int) -> Iterator[dict[str, object]]:
    """Rows in the columns of MMLU-Pro, 14 categories one after another; five in six have ten options, as upstream."""
    identity = FIRST_ID
    for category in sorted(MAKERS):
        rng = Random(f"mmlu-pro|{seed}|{category}")
        for made in questions(category, rows_per_category, rng, lambda r: 10 if r.random() < 0.83 else r.randint(3, 9)):
            yield {
                "question_id": identity,
                "question": made.text,
                "options": list(made.options),
                "answer": LETTERS[made.key],
                "answer_index": made.key,
                "cot_content": "",
                "category": category,
                "src": f"synthetic-{category}",
            }
            identity += 1


def write_mmlu_pro(path: Path, seed: int = 1, rows_per_category: int = 200) -> int:
    """Writes a Parquet file with the schema of MMLU-Pro's test file; 200 rows a category are enough for all profiles.

    Returns the number of rows.
    """
    # Imported here: it takes a quarter of a second, and the fake upstream shares this package.
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema(
        [
            ("question_id", pa.int64()),
            ("question", pa.string()),
            ("options", pa.list_(pa.field("element", pa.string()))),
            ("answer", pa.string()),
            ("answer_index", pa.int64()),
            ("cot_content", pa.string()),
            ("category", pa.string()),
            ("src", pa.string()),
        ]
    )
    rows = list(mmlu_pro_rows(seed, rows_per_category))
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return len(rows)


def gpqa_columns() -> list[str]:
    """The 78 column names of GPQA's CSV files."""
    texts = ["Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"]
    expert = [
        "Feedback",
        "Validator Revision Suggestion",
        "Is First Validation",
        "Post hoc agreement",
        "Sufficient Expertise?",
        "Understand the question?",
        "Question Difficulty",
        "Validator Answered Correctly",
        "Self-reported time (minutes)",
        "Probability Correct",
        "Manual Correctness Adjustment",
        "Expert Validator",
    ]
    other = [
        "Feedback",
        "Validator Answered Correctly",
        "Explanation",
        "Self-reported time (minutes)",
        "Websites visited",
        "Probability Correct",
        "Manual Correctness Adjustment",
        "Non-Expert Validator",
    ]
    extra = [texts[0], "Explanation", *texts[1:]]
    return [
        *(f"Pre-Revision {name}" for name in [*texts, "Explanation"]),
        "Self-reported question-writing time (minutes)",
        *texts,
        "Explanation",
        "Revision Comments (from Question Writer)",
        "Subdomain",
        "Writer's Difficulty Estimate",
        *(f"Extra Revised {name}" for name in extra),
        "Non-Expert Validator Accuracy",
        "Majority Non-Expert Vals Incorrect",
        "Expert Validator Accuracy",
        "Record ID",
        "High-level domain",
        "Question Writer",
        *(f"{name}_EV_{number}" for number in (1, 2) for name in expert),
        *(f"{name}_NEV_{number}" for number in (1, 2, 3) for name in other),
        "Expert Validator Disagreement Category",
        "Canary String",
    ]


def gpqa_rows(seed: int, count: int) -> Iterator[dict[str, str]]:
    """Rows in the columns of GPQA; every seventh text ends in a newline, as some upstream cells do."""
    made = 0
    asked: set[str] = set()
    names = _spread(count)
    rng = Random(f"gpqa|{seed}")
    while made < count:
        subdomain = names[made]
        found = questions(SUBDOMAINS[subdomain][1], 1, rng, lambda _r: 4)[0]
        if found.text in asked:
            continue
        asked.add(found.text)
        yield _gpqa_row(found, subdomain, made)
        made += 1


def _spread(count: int) -> list[str]:
    """Subdomains of `count` rows in about upstream's shares, each at least once."""
    shares = [(place / share, name) for name, (share, _) in SUBDOMAINS.items() for place in range(share * count // 50 + 2)]
    return [name for _, name in sorted(shares)[:count]]


def _gpqa_row(made: Question, subdomain: str, number: int) -> dict[str, str]:
    wrong = [option for place, option in enumerate(made.options) if place != made.key]
    tail = "\n" if number % 7 == 0 else ""
    filled = {
        "Question": made.text + tail,
        "Correct Answer": made.options[made.key] + tail,
        "Incorrect Answer 1": wrong[0],
        "Incorrect Answer 2": wrong[1],
        "Incorrect Answer 3": wrong[2],
        "Explanation": f"Computed: {made.options[made.key]}",
        "Subdomain": subdomain,
        "Record ID": f"recSYN{number:05d}",
        "Canary String": NOTICE,
    }
    return {name: filled.get(name, "") for name in gpqa_columns()}


def write_gpqa(path: Path, seed: int = 1, count: int = 198) -> int:
    """Writes a CSV file with the header of GPQA Diamond. Returns the number of rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, gpqa_columns(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(gpqa_rows(seed, count))
    return count


def main(arguments: list[str] | None = None) -> int:
    """Writes the files below `--out` and prints where they lie."""
    parser = argparse.ArgumentParser(prog="python -m srbench_testbed.synthetic", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows-per-category", type=int, default=200, help="MMLU-Pro rows in each of 14 categories")
    parser.add_argument("--all", action="store_true", help="also the files of the judged, code and terminal benchmarks")
    chosen = parser.parse_args(arguments)
    mmlu_pro = chosen.out / "mmlu-pro" / "test-00000-of-00001.parquet"
    gpqa = chosen.out / "gpqa-diamond" / "gpqa_diamond.csv"
    print(f"{mmlu_pro} {write_mmlu_pro(mmlu_pro, chosen.seed, chosen.rows_per_category)} rows")
    print(f"{gpqa} {write_gpqa(gpqa, chosen.seed)} rows")
    if chosen.all:
        _write_others(chosen.out, chosen.seed)
    return 0


def _write_others(out: Path, seed: int) -> None:
    hle, simpleqa = out / "hle" / "test-00000-of-00001.parquet", out / "simpleqa-verified" / "simpleqa_verified.csv"
    print(f"{hle} {write_hle(hle, seed)} rows")
    print(f"{simpleqa} {write_simpleqa(simpleqa, seed)} rows")
    for name, write, what in (
        ("livecodebench", write_livecodebench, "problems in six files"),
        ("scicode", write_scicode, "problems, and their targets"),
        ("terminal-bench-2.1", write_tasks, "tasks"),
    ):
        print(f"{out / name} {write(out / name, seed)} {what}")


if __name__ == "__main__":
    sys.exit(main())
