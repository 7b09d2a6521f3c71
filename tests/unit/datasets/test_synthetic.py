"""The synthetic files: upstream's layout, the same rows for the same seed, and keys that a second solver agrees with."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from pyarrow import parquet
from srbench_testbed import synthetic
from srbench_testbed.questions import MAKERS

# Recomputes answers from nothing but the text of a question.
SOLVERS = {
    r"greatest common divisor of (\d+) and (\d+)": lambda a, b: max(
        d for d in range(1, min(a, b) + 1) if a % d == b % d == 0
    ),
    r"same remainder as (\d+)\^(\d+) when divided by (\d+)": lambda a, b, m: a**b % m or m,
    r"force of (\d+) N acts on a mass of (\d+) kg": lambda f, m: Fraction(f, m),
    r"force of (\d+) N moves a body (\d+) m": lambda f, d: f * d,
    r"volume in mL must (\d+) mL .* one part in (\d+)": lambda v, f: v * f,
    r"culture of (\d+) cells doubles every (\d+) minutes.* after (\d+) minutes": lambda n, e, t: n * 2 ** (t // e),
    r"sequence for (\d+) amino acids": lambda n: 3 * n + 3,
    r"exclusive or of the integers (\d+) and (\d+)": lambda a, b: (a | b) - (a & b),
    r"rises by (\d+) percent and the quantity demanded falls by (\d+)": lambda p, q: Fraction(q, p),
    r"save (\d+) percent .* spending rises by (\d+)": lambda s, g: Fraction(100 * g, s),
    r"costs are (\d+) dollars; a unit costs (\d+) .* sells for (\d+)": lambda f, c, p: Fraction(f, p - c),
    r"costs (\d+) dollars and is marked up by (\d+) percent": lambda c, p: c + Fraction(c * p, 100),
    r"Resistors of (\d+), (\d+) and (\d+) ohms": lambda a, b, c: a + b + c,
    r"gear of (\d+) teeth drives one of (\d+) teeth and turns at (\d+)": lambda a, b, n: Fraction(a * n, b),
    r"given at (\d+) mg per kg .* patient of (\d+) kg": lambda d, m: d * m,
    r"beats (\d+) times a minute and ejects (\d+) mL": lambda r, v: r * v,
    r"in the year (\d+) and fell in the year (\d+)": lambda a, b: b - a,
    r"spring of (\d+) BCE to the spring of (\d+) CE": lambda a, b: b - (1 - a),
    r"body with (\d+) members": lambda n: math.ceil((n + 1) / 2),
    r"plaintiff with (\d+) dollars of damage is (\d+) percent": lambda d, p: d - Fraction(d * p, 100),
    r"uses (\d+) different sentence letters": lambda n: 1 << n,
    r"domain (\d+) things are F only, (\d+) are G only, (\d+) are both": lambda a, b, c: a + b + c,
    r"fraction for a weight is (\d+) percent.* standard of (\d+) grams": lambda p, s: Fraction(p * s, 100),
    r"covers (\d+) km in (\d+) hours": lambda s, t: Fraction(s, t),
    r"minutes are (\d+) hours and (\d+) minutes": lambda h, m: 60 * h + m,
}


def solved(text: str) -> Fraction | None:
    for pattern, solve in SOLVERS.items():
        found = re.search(pattern, text)
        if found:
            return Fraction(solve(*map(int, found.groups())))
    special = re.search(r"hexadecimal number ([0-9A-F]+) in", text)
    if special:
        return Fraction(int(special[1], 16))
    score = re.search(r"mean (\d+) and standard deviation (\d+)\. .* raw score ([\d.]+)\?", text)
    if score:
        return (Fraction(score[3]) - int(score[1])) / int(score[2])
    protons = {"sodium": 11, "iron": 26, "silver": 47, "iodine": 53, "gold": 79}
    atom = re.search(r"atom of (\w+) with mass number (\d+)", text)
    return Fraction(int(atom[2]) - protons[atom[1]]) if atom else None


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    return list(synthetic.mmlu_pro_rows(11, 40))


def test_a_second_solver_finds_the_key_and_no_other_option(rows: list[dict[str, object]]) -> None:
    for row in rows:
        options = row["options"]
        assert isinstance(options, list)
        right = [Fraction(option) == solved(str(row["question"])) for option in options]
        assert right.count(True) == 1, row
        assert right.index(True) == row["answer_index"]
        assert row["answer"] == synthetic.LETTERS[right.index(True)]


def test_all_categories_have_their_rows_and_no_question_comes_twice(rows: list[dict[str, object]]) -> None:
    assert Counter(row["category"] for row in rows) == dict.fromkeys(MAKERS, 40)
    assert len({row["question"] for row in rows}) == len(rows) == 14 * 40
    assert len({row["question_id"] for row in rows}) == len(rows)


def test_keys_are_spread_over_the_letters(rows: list[dict[str, object]]) -> None:
    assert set(Counter(row["answer"] for row in rows)) == set(synthetic.LETTERS)


def test_the_seed_alone_decides(rows: list[dict[str, object]]) -> None:
    assert list(synthetic.mmlu_pro_rows(11, 40)) == rows
    assert list(synthetic.mmlu_pro_rows(12, 40)) != rows


def test_the_parquet_schema_is_upstreams(tmp_path: Path) -> None:
    assert synthetic.main(["--out", str(tmp_path), "--seed", "4", "--rows-per-category", "2"]) == 0
    schema = parquet.read_schema(tmp_path / "mmlu-pro" / "test-00000-of-00001.parquet")
    assert {field.name: str(field.type) for field in schema} == {
        "question_id": "int64",
        "question": "string",
        "options": "list<element: string>",
        "answer": "string",
        "answer_index": "int64",
        "cot_content": "string",
        "category": "string",
        "src": "string",
    }


def test_the_csv_has_upstreams_header_and_all_subdomains(tmp_path: Path) -> None:
    assert synthetic.write_gpqa(tmp_path / "g.csv", 4) == 198
    with (tmp_path / "g.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert len(found[0]) == 78
    assert {row["Subdomain"] for row in found} == set(synthetic.SUBDOMAINS)
    for row in found:
        assert Fraction(row["Correct Answer"].strip()) == solved(row["Question"])
