"""Frozen datasets: named by content, published whole or not at all, read without trusting the disk."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from srbench_kit.canonical import canonical, digest
from srbench_kit.errors import DataLoss, InvalidInput, NotFound
from srbench_planner import catalog, composition
from srbench_planner.benchmark import Profile
from srbench_planner.dataset import Case, Dataset, SourceFile, SourceRecord, identity, released_identity
from srbench_planner.datasets import DatasetStore

RECORD = SourceRecord(
    url="https://example.org/set",
    revision="r1",
    files=(SourceFile("a.jsonl", "0" * 64),),
    revision_verification="git-head",
    license_url="https://example.org/licence",
    access_note="Public.",
    normalizer="n1",
)


def case(number: int, benchmark: str = "mmlu-pro", stratum: str = "law", text: str = "") -> Case:
    return {
        "id": f"{benchmark}/{number}",
        "benchmark": benchmark,
        "messages": [
            {"role": "system", "content": "rules"},
            {"role": "user", "content": [{"type": "text", "text": "part"}, {"type": "image_url", "image_url": "x"}]},
            {"role": "assistant", "content": "the hidden words of an assistant"},
            {"role": "tool", "content": "the hidden words of a tool"},
            {"role": "user", "content": text or f"question {number} Ümläut"},
        ],
        "choices": ["yes", "no"],
        "answer": "SECRET-ANSWER",
        "metadata": {"stratum": stratum, "split": "dev", "source_record": "SECRET-TESTS"},
    }


def publish(
    store: DatasetStore,
    cases: list[Case],
    *,
    profile: Profile = "quick",
    seed: int = 20260918,
    record: SourceRecord = RECORD,
    custom_subset: bool = False,
) -> Dataset:
    return store.publish(
        cases,
        profile=profile,
        seed=seed,
        sources={str(each["benchmark"]): record for each in cases},
        custom_subset=custom_subset,
        planned={"mmlu-pro": 500},
    )


@pytest.fixture
def store(tmp_path: Path) -> DatasetStore:
    return DatasetStore(tmp_path / "store")


def test_a_dataset_lies_in_two_private_files_one_canonical_case_a_line(store: DatasetStore) -> None:
    cases = [case(2), case(1)]
    found = publish(store, cases)
    folder = store.root / found.id
    assert sorted(path.name for path in folder.iterdir()) == ["cases.jsonl", "manifest.json"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    content = (folder / "cases.jsonl").read_bytes()
    assert content.decode() == "".join(canonical(each) + "\n" for each in cases)
    assert found.sha256 == hashlib.sha256(content).hexdigest()
    assert store.cases(found) == cases


def test_the_manifest_has_the_published_fields_and_no_absolute_path(store: DatasetStore) -> None:
    found = publish(store, [case(1)])
    text = Path(found.manifest_path).read_text()
    manifest = json.loads(text)
    assert text.endswith("}\n")
    assert '\n  "version": "sr-bench-1.0"' in text
    assert set(manifest) == {
        *("version", "id", "name", "path", "sha256", "case_count", "counts", "profile", "custom_subset"),
        *("benchmarks", "sources", "seed", "selection", "split"),
    }
    assert manifest["path"] == "cases.jsonl"
    assert str(store.root) not in text
    assert (manifest["name"], manifest["split"]) == ("mmlu-pro/quick", "dev")


def test_identity_depends_on_content_and_not_on_place_or_labels(tmp_path: Path) -> None:
    first, second = DatasetStore(tmp_path / "one"), DatasetStore(tmp_path / "elsewhere" / "two")
    relabelled = replace(RECORD, url="local-import", revision_verification="declared", access_note="", license_url="")
    base = publish(first, [case(1)])
    assert publish(second, [case(1)], record=relabelled).id == base.id
    others = [
        publish(second, [case(2)]),
        publish(second, [case(1)], seed=1),
        publish(second, [case(1)], profile="smoke"),
        publish(second, [case(1)], custom_subset=True),
        publish(second, [case(1)], record=replace(RECORD, revision="r2")),
        publish(second, [case(1)], record=replace(RECORD, normalizer="n2")),
    ]
    assert len({base.id, *(other.id for other in others)}) == 7


def test_a_custom_subset_says_so_in_its_name(store: DatasetStore) -> None:
    assert publish(store, [case(1)], custom_subset=True).name == "mmlu-pro/quick (custom subset: 1 of 500 cases)"


def test_a_moved_store_still_reads(store: DatasetStore, tmp_path: Path) -> None:
    found = publish(store, [case(1)])
    shutil.move(tmp_path / "store", tmp_path / "moved")
    moved = DatasetStore(tmp_path / "moved")
    again = moved.get(found.id)
    assert again.path == str(tmp_path / "moved" / "datasets" / found.id / "cases.jsonl")
    assert moved.cases(again) == [case(1)]


def test_publishing_again_changes_no_byte(store: DatasetStore) -> None:
    found = publish(store, [case(1)])
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (store.root / found.id).iterdir()}
    again = publish(store, [case(1)], record=replace(RECORD, revision_verification="another label"))
    assert again == found
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (store.root / found.id).iterdir()} == before


def test_publishing_over_damaged_files_is_an_error_and_mends_nothing(store: DatasetStore) -> None:
    found = publish(store, [case(1)])
    Path(found.path).write_text(canonical(case(9)) + "\n")
    with pytest.raises(DataLoss, match="does not match its SHA-256"):
        publish(DatasetStore(store.root.parent), [case(1)])
    assert "question 9" in Path(found.path).read_text()


def test_changed_cases_are_noticed_on_every_way_of_reading(store: DatasetStore) -> None:
    found = publish(store, [case(1), case(2)])
    content = Path(found.path).read_bytes()
    Path(found.path).write_bytes(content.replace(b"question 2", b"question 3"))
    for read in (lambda: store.cases(found), lambda: store.public_cases(found), lambda: store.index(found)):
        with pytest.raises(DataLoss, match="does not match its SHA-256"):
            read()


def test_a_full_disk_leaves_nothing_behind(store: DatasetStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Exception, match="the disk is full") as caught:
        publish(store, [case(1)])
    assert getattr(caught.value, "reason", "") == "NO_SPACE"
    assert list(store.root.iterdir()) == []


def test_unfinished_and_linked_folders_are_no_datasets(store: DatasetStore, tmp_path: Path) -> None:
    found = publish(store, [case(1)])
    (store.root / ".staging-1").mkdir()
    (store.root / ("a" * 64)).symlink_to(store.root / found.id)
    (store.root / ("b" * 64)).mkdir()
    assert [each.id for each in store.list()] == [found.id]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"seed": 1}, "id does not match the content"),
        ({"version": "2"}, "version is '2'"),
        ({"profile": "huge"}, "profile is 'huge'"),
        ({"sha256": None}, "'sha256' is missing or malformed"),
        ({"sources": []}, "sources is no object"),
        ({"counts": {"mmlu-pro": 7}}, "counts do not fit"),
    ],
)
def test_a_changed_manifest_is_refused(store: DatasetStore, change: dict[str, object], problem: str) -> None:
    found = publish(store, [case(1)])
    path = Path(found.manifest_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataLoss, match=problem):
        DatasetStore(store.root.parent).get(found.id)


def released(root: Path, cases: list[Case]) -> str:
    """A dataset as the released implementation writes it: absolute path, no counts, labels in the id."""
    content = "".join(canonical(each) + "\n" for each in cases).encode()
    source = {
        "url": "local-import",
        "revision": "abc",
        "files": [{"name": "a.csv", "sha256": "1" * 64}],
        "revision_verification": "declared-revision-with-content-digest",
        "access_note": "As given.",
        "normalizer": "sr-bench-normalizer-v1",
    }
    facts = {
        "profile": "smoke",
        "custom_subset": False,
        "sources": {"mmlu-pro": source},
        "seed": 20260918,
        "selection": "stratified-hash-v1",
    }
    sha256 = hashlib.sha256(content).hexdigest()
    name = digest({"cases_sha256": sha256, **facts})  # type: ignore[dict-item]
    folder = root / "datasets" / name
    folder.mkdir(parents=True)
    (folder / "cases.jsonl").write_bytes(content)
    manifest = {
        "version": "sr-bench-1.0",
        "id": name,
        "name": "mmlu-pro/smoke",
        "path": "/home/someone/store/cases.jsonl",
        "sha256": sha256,
        "case_count": len(cases),
        "benchmarks": ["mmlu-pro"],
        "split": "dev",
        **facts,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return name


def test_a_dataset_of_the_released_implementation_is_read_where_it_lies_now(tmp_path: Path) -> None:
    name = released(tmp_path, [case(1), case(2)])
    store = DatasetStore(tmp_path)
    found = store.get(name)
    assert (found.counts, found.path) == ({"mmlu-pro": 2}, str(tmp_path / "datasets" / name / "cases.jsonl"))
    assert store.cases(found) == [case(1), case(2)]
    assert released_identity(found) == name != identity(found)


def test_options_are_found_in_a_prompt_when_the_case_does_not_list_them(tmp_path: Path) -> None:
    old = case(1, text="What?\n\nA. one\nB. two\nstill two\nC. three\n\nReturn a letter.") | {"answer": "B"}
    del old["choices"]
    store = DatasetStore(tmp_path)
    (view,) = store.public_cases(store.get(released(tmp_path, [old]))).cases
    assert view.choices == ("one", "two\nstill two", "three")


def test_a_dataset_is_found_by_a_unique_beginning(store: DatasetStore) -> None:
    found = publish(store, [case(1)])
    assert store.get(found.id[:8]) == found
    for wrong in (found.id[:7], "", "0" * 64, "../" + found.id, found.id.upper() + "/"):
        with pytest.raises(NotFound):
            store.get(wrong)


def test_a_beginning_of_two_ids_is_ambiguous(store: DatasetStore) -> None:
    for last in "ab":
        (store.root / ("0123456789" + last * 54)).mkdir(parents=True)
    with pytest.raises(InvalidInput, match="2 datasets begin with 01234567"):
        store.get("01234567")


def test_pages_hold_no_answers_tests_or_words_of_assistants_and_tools(store: DatasetStore) -> None:
    page = store.public_cases(publish(store, [case(1)]))
    (view,) = page.cases
    text = repr(view)
    assert "SECRET" not in text
    assert "hidden words" not in text
    assert view.messages == (("system", "rules"), ("user", "part"), ("user", "question 1 Ümläut"))
    assert (view.question, view.category, view.choices) == ("question 1 Ümläut", "law", ("yes", "no"))


def test_outputs_of_a_grid_task_never_reach_the_public_view(store: DatasetStore) -> None:
    task = {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3]], "output": [[8]]}]}
    grid = case(1, text="Solve.\n" + json.dumps(task)) | {"metadata": {"output_format": "grids"}}
    (view,) = store.public_cases(publish(store, [grid])).cases
    assert view.input == {"train": task["train"], "test": [[[3]]]}


def test_pages_follow_the_cursor_to_the_end(store: DatasetStore) -> None:
    found = publish(store, [case(number) for number in range(7)])
    seen: list[str] = []
    cursor: int | None = 0
    while cursor is not None:
        page = store.public_cases(found, cursor=cursor, limit=3)
        seen += [view.id for view in page.cases]
        cursor = page.next_cursor
    assert seen == [f"mmlu-pro/{number}" for number in range(7)]
    assert store.public_cases(found, cursor=99).cases == ()


def test_filters_narrow_the_total_and_search_ignores_case(store: DatasetStore) -> None:
    cases = [case(number, stratum="law" if number % 2 else "math", text=f"About THING {number}") for number in range(6)]
    found = publish(store, cases)
    assert store.public_cases(found, category="math").total == 3
    assert store.public_cases(found, benchmark="arc-agi-2").total == 0
    page = store.public_cases(found, query=" thing 4 ")
    assert ([view.id for view in page.cases], page.total, page.dataset_total) == (["mmlu-pro/4"], 1, 6)
    assert store.public_cases(found, query="SECRET").total == 0, "answers cannot be guessed by searching"


def test_a_page_is_bounded_in_bytes(store: DatasetStore) -> None:
    found = publish(store, [case(number, text="x" * 1_900_000) for number in range(6)])
    page = store.public_cases(found, limit=100)
    assert 1 <= len(page.cases) < 6
    assert page.next_cursor == len(page.cases)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [({"cursor": -1}, "BAD_CURSOR"), ({"limit": -1}, "BAD_PAGE_SIZE"), ({"query": "x" * 201}, "BAD_QUERY")],
)
def test_a_page_that_cannot_be_is_refused(store: DatasetStore, asked: dict[str, object], reason: str) -> None:
    found = publish(store, [case(1)])
    with pytest.raises(InvalidInput) as caught:
        store.public_cases(found, **asked)  # type: ignore[arg-type]
    assert caught.value.reason == reason


KNOWN = catalog.load([])


def test_parts_are_joined_by_id_and_joining_again_gives_the_same(store: DatasetStore) -> None:
    first = publish(store, [case(2), case(1)])
    second = publish(store, [case(1, "arc-agi-2")], record=replace(RECORD, revision="r9"))
    both = composition.compose(store, KNOWN, [second.id, first.id], [])
    assert (both.name, both.counts) == ("arc-agi-2+mmlu-pro/quick", {"arc-agi-2": 1, "mmlu-pro": 2})
    assert [each["id"] for each in store.cases(both)] == ["arc-agi-2/1", "mmlu-pro/1", "mmlu-pro/2"]
    assert both.sources["arc-agi-2"].revision == "r9"
    assert composition.compose(store, KNOWN, [first.id, both.id], []) == both
    assert composition.compose(store, KNOWN, [first.id, both.id], ["mmlu-pro"]) == first
    assert composition.compose(store, KNOWN, [first.id], []) == first


def test_a_part_of_a_part_is_taken_out(store: DatasetStore) -> None:
    both = publish(store, [case(1, "arc-agi-2"), case(1)])
    alone = composition.compose(store, KNOWN, [both.id], ["arc-agi-2"])
    assert (alone.benchmarks, alone.case_count) == (("arc-agi-2",), 1)


def test_a_custom_part_makes_the_whole_custom(store: DatasetStore) -> None:
    parts = [publish(store, [case(1)], custom_subset=True), publish(store, [case(1, "arc-agi-2")])]
    assert composition.compose(store, KNOWN, [part.id for part in parts], []).custom_subset


Parts = Callable[[DatasetStore], list[Dataset]]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (lambda s: [publish(s, [case(1)]), publish(s, [case(1, "tau3")], seed=5)], "SEED_CONFLICT"),
        (lambda s: [publish(s, [case(1)]), publish(s, [case(1, "tau3")], profile="smoke")], "PROFILE_CONFLICT"),
        (lambda s: [publish(s, [case(1)]), publish(s, [case(2)])], "BENCHMARK_CONFLICT"),
        (lambda s: [], "BAD_DATASET_IDS"),
    ],
)
def test_parts_that_do_not_fit_are_refused(store: DatasetStore, parts: Parts, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        composition.compose(store, KNOWN, [part.id for part in parts(store)], [])
    assert caught.value.reason == reason


def test_a_benchmark_that_no_part_holds_is_refused(store: DatasetStore) -> None:
    with pytest.raises(InvalidInput, match="none of the datasets holds tau3"):
        composition.compose(store, KNOWN, [publish(store, [case(1)]).id], ["tau3"])


def chosen(store: DatasetStore, benchmark: str) -> composition.Selected:
    selection = composition.select_by_profile(store, KNOWN, "quick")
    return next(each for each in selection.benchmarks if each.benchmark == benchmark)


def test_the_smallest_full_dataset_is_preferred_and_custom_ones_are_passed_over(store: DatasetStore) -> None:
    single = publish(store, [case(1)])
    joined = publish(store, [case(1, "arc-agi-2"), case(1)])
    publish(store, [case(1)], custom_subset=True)
    publish(store, [case(1)], profile="smoke")
    assert chosen(store, "mmlu-pro").source_ids == (single.id, joined.id)
    assert chosen(store, "arc-agi-2").source_ids == (joined.id,)
    assert chosen(store, "tau3").reason == "not_prepared"


def test_two_versions_of_a_benchmark_are_a_conflict_not_a_silent_choice(store: DatasetStore) -> None:
    publish(store, [case(1)])
    publish(store, [case(2)])
    found = chosen(store, "mmlu-pro")
    assert (found.eligible, found.reason, len(found.source_ids)) == (False, "source_conflict", 2)


def test_equal_cases_of_two_sources_are_no_conflict(store: DatasetStore) -> None:
    publish(store, [case(1)])
    publish(store, [case(1)], record=replace(RECORD, files=(SourceFile("other.json", "2" * 64),)))
    assert chosen(store, "mmlu-pro").eligible


def test_a_benchmark_of_another_seed_than_the_rest_is_not_eligible(store: DatasetStore) -> None:
    publish(store, [case(1)])
    publish(store, [case(1, "arc-agi-2")], seed=5)
    assert chosen(store, "arc-agi-2").reason == "seed_conflict"
