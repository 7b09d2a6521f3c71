"""Samples for people and the labels that come back."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console
from srbench.v1 import accounting_service_pb2 as facts
from srbench.v1 import judging_pb2 as pb
from srbench_cli.commands.agreement import drawn, read_labels
from srbench_cli.judging_table import judging
from srbench_kit.errors import InvalidInput

OUTCOMES = [
    facts.Outcome(case_id=f"{benchmark}/{number}", benchmark=benchmark, target_id=target)
    for benchmark in ("hle", "simpleqa-verified")
    for target in ("a", "b")
    for number in range(40)
]


def test_a_sample_has_as_many_of_each_kind_and_does_not_depend_on_the_order() -> None:
    chosen = drawn(OUTCOMES, 10, 1)
    assert Counter((one.benchmark, one.target_id) for one in chosen) == Counter(
        {(benchmark, target): 10 for benchmark in ("hle", "simpleqa-verified") for target in ("a", "b")}
    )
    assert drawn(OUTCOMES[::-1], 10, 1) == chosen
    assert drawn(OUTCOMES, 10, 2) != chosen
    assert len(drawn(OUTCOMES, 1000, 1)) == len(OUTCOMES)


def test_labels_are_read_in_the_words_that_people_use(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("case_id,target_id,question,answer,correct\nhle/1,a,q,x,True\nhle/2,a,q,y,no\n")
    assert [(one.case_id, one.target_id, one.correct) for one in read_labels(path)] == [
        ("hle/1", "a", True),
        ("hle/2", "a", False),
    ]


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [
        ("case_id,correct\nx,true\n", "MISSING_COLUMN", "target_id"),
        ("case_id,target_id,correct\nx,a,\n", "BAD_LABEL", "line 2"),
        ("case_id,target_id,correct\nx,a,perhaps\n", "BAD_LABEL", "'perhaps'"),
        ("case_id,target_id,correct\nx\n", "BAD_LABEL", "line 2"),
        ("", "MISSING_COLUMN", "case_id"),
    ],
)
def test_labels_that_say_nothing_are_refused_by_their_line(tmp_path: Path, text: str, reason: str, said: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_labels(path)
    assert caught.value.reason == reason
    assert said in caught.value.message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes("case_id,target_id,correct\né,a,true\n".encode("latin-1"))
    for name, reason in (("none.csv", "NO_SUCH_FILE"), (".", "NO_SUCH_FILE"), ("latin.csv", "BAD_ENCODING")):
        with pytest.raises(InvalidInput) as caught:
            read_labels(tmp_path / name)
        assert caught.value.reason == reason


def test_long_questions_and_ids_like_formulas_come_back(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(f"case_id,target_id,question,answer,correct\n'=1,'+a,{'q' * 200_000},x,yes\n")
    assert [(one.case_id, one.target_id) for one in read_labels(path)] == [("=1", "+a")]


def shown(found: pb.Judging) -> str:
    console = Console(width=300, file=io.StringIO())
    console.print(judging(found))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_corrected_figures_stand_beside_those_as_judged_and_what_is_unknown_says_so() -> None:
    one = pb.AuditedAccuracy(benchmark="hle", target_id="a", planned_count=40, graded_count=40, audited_count=1)
    one.judged_accuracy, one.method = 0.55, "prediction_powered_difference"
    whole = pb.AuditedHeadline(target_id="a", planned_count=90, accuracy=0.5, graded_count=40, audited_count=1)
    whole.macro_accuracy, whole.method = 0.45, one.method
    found = pb.Judging(audited=[one], headlines=[whole], auditor="Ada")
    one, whole = found.audited[0], found.headlines[0]
    text = shown(found)
    assert [line.split()[:6] for line in text.splitlines() if line.startswith("a ")][:3] == [
        ["a", "all", "50.0", "%", "unknown", "1/40"],
        ["a", "macro", "45.0", "%", "unknown"],
        ["a", "hle", "55.0", "%", "unknown", "1/40"],
    ]
    assert "a: unknown, a judged benchmark has fewer than two labels." in text
    for row in (one, whole):
        row.audited_count, row.agreed_count = 20, 18
        row.corrected_accuracy, row.lower, row.upper = 0.6, 0.4, 0.8
    text = shown(found)
    assert "60.0 %  [40.0, 80.0]" in text
    assert "Corrected by Ada's labels of 20 of 40 judged answers, with the prediction-powered difference" in text
    # A run of one judged benchmark needs no row for all.
    whole.planned_count = 40
    assert " all " not in shown(found)
    assert "kappa" not in text
    found.agreements.add(benchmark="hle", pair_count=40, observed=1)
    assert shown(found).count("unknown") == 4, "kappa, sensitivity, specificity, and what follows from them"
