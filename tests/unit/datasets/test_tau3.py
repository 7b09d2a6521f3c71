"""τ³ from files in upstream's layout: three domains, telecom's split, and nothing to be judged by in a case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from srbench_kit.canonical import digest
from srbench_kit.errors import InvalidInput
from srbench_planner import catalog
from srbench_planner.benchmark import Profile
from srbench_planner.datasets import DatasetStore
from srbench_planner.hidden_parts import HiddenParts
from srbench_planner.prepare import check_request, prepare
from srbench_planner.public_view import public_view

KNOWN = catalog.load([])
IDS: dict[str, list[str]] = json.loads((Path(__file__).parent / "data" / "tau3_ids.json").read_text())
SHARED = (folder / "shared/data/tau3" for folder in Path(__file__).parents)
REAL = next((folder for folder in SHARED if folder.is_dir()), None)


def task(domain: str, name: str) -> dict[str, Any]:
    instructions = {
        "task_instructions": "Be polite.",
        "domain": domain,
        "reason_for_call": f"You call about {name}.",
        "known_info": "You are Ada.",
        "unknown_info": None,
    }
    return {
        "id": name,
        "description": {"purpose": "SECRET-PURPOSE", "notes": None, "relevant_policies": None},
        "user_scenario": {"persona": None, "instructions": instructions},
        "ticket": "SECRET-TICKET",
        "initial_state": None,
        "evaluation_criteria": {"actions": [{"action_id": "0", "name": "SECRET-ACTION", "arguments": {}}]},
    }


def checkout(root: Path, ids: dict[str, list[str]] = IDS) -> Path:
    for domain, names in ids.items():
        folder = root / "data" / "tau2" / "domains" / domain
        folder.mkdir(parents=True)
        tasks = [task(domain, name) for name in names]
        if domain == "telecom":
            tasks.append(task(domain, "not of the split"))
            (folder / "split_tasks.json").write_text(json.dumps({"base": names, "small": names[:1]}))
        (folder / "tasks.json").write_text(json.dumps(tasks))
    return root


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def prepared(store: Path, source: Path, profile: Profile) -> list[dict[str, Any]]:
    request = check_request(KNOWN, benchmarks=["tau3"], profile=profile, source_path=str(source), revision="r")
    dataset = prepare(KNOWN, store, request, lambda _progress: None)
    return [dict(case) for case in DatasetStore(store).cases(dataset)]


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("smoke", "602751a6cd41afcebf7ca9b78b72f5d22a824d7074953d7104a7f25027bb7407"),
        ("quick", "1f83311204d7dfdc1a80e9f612a726ed374ce65bbdd5c6c55a1cdde53660eadd"),
        ("standard", "d0cb14e547a78a7c5856528c3ebecf13ae258e721d3110cb5d539f8ccf891274"),
    ],
)
def test_files_in_upstreams_layout_give_the_published_selection(
    store: Path, tmp_path: Path, profile: Profile, expected: str
) -> None:
    found = prepared(store, checkout(tmp_path / "tau2-bench"), profile)
    assert digest(sorted(case["id"] for case in found)) == expected


def test_what_a_task_is_judged_by_is_in_no_case_and_in_its_hidden_part(store: Path, tmp_path: Path) -> None:
    found = prepared(store, checkout(tmp_path / "tau2-bench"), "smoke")
    assert "SECRET" not in json.dumps(found)
    for case in found:
        facts = case["metadata"]
        whole = task(facts["domain"], facts["task_id"])
        assert facts["source_task_sha256"] == digest(whole)
        assert json.loads(b"".join(HiddenParts(store).pieces(facts["hidden_sha256"]))) == whole
        assert case["messages"] == [{"role": "user", "content": ""}]
        assert facts["task"]["user_scenario"] == whole["user_scenario"]


def test_readers_see_what_the_simulated_user_wants(store: Path, tmp_path: Path) -> None:
    case = prepared(store, checkout(tmp_path / "tau2-bench"), "smoke")[0]
    view = public_view(case)
    assert view.question == "You call about 27.\n\nYou are Ada.\n\nBe polite."


def test_a_folder_without_one_of_the_files_is_refused_by_name(store: Path, tmp_path: Path) -> None:
    source = checkout(tmp_path / "tau2-bench")
    (source / "data/tau2/domains/telecom/split_tasks.json").unlink()
    with pytest.raises(InvalidInput, match=r"has no domains/telecom/split_tasks\.json"):
        prepared(store, source, "smoke")


def test_a_split_that_names_a_task_which_is_not_there_is_refused(store: Path, tmp_path: Path) -> None:
    source = checkout(tmp_path / "tau2-bench")
    split = source / "data/tau2/domains/telecom/split_tasks.json"
    split.write_text(json.dumps({"base": [*IDS["telecom"], "gone"]}))
    with pytest.raises(InvalidInput, match="has no task 'gone'"):
        prepared(store, source, "smoke")


def test_a_task_without_criteria_or_scenario_is_refused(store: Path, tmp_path: Path) -> None:
    source = checkout(tmp_path / "tau2-bench")
    path = source / "data/tau2/domains/airline/tasks.json"
    tasks = json.loads(path.read_text())
    tasks[3] |= {"evaluation_criteria": None}
    tasks[4] |= {"user_scenario": "text"}
    path.write_text(json.dumps(tasks))
    with pytest.raises(InvalidInput, match="2 of 278 rows are bad"):
        prepared(store, source, "smoke")


@pytest.mark.skipif(REAL is None, reason="the real task files are not beside this clone")
def test_the_real_tasks_have_their_published_digest(store: Path) -> None:
    assert REAL is not None
    found = {case["id"]: case["metadata"] for case in prepared(store, REAL, "smoke")}
    assert found["tau3/airline/27"]["source_task_sha256"] == (
        "bf11488978405af45bbb8fdbdc8d54480d440785b5740b8d75f77e8b4f76269f"
    )
