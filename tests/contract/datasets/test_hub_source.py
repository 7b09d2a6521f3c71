"""Downloads against a hub that speaks HTTP: pinned, resumed, tried again, and refused in one sentence."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from srbench_kit.errors import Forbidden, NotFound, Unreachable
from srbench_planner import hub_source
from srbench_planner.benchmark import HubSource

REVISION = "a" * 40
SOURCE = HubSource(
    repository="Owner/set",
    revision=REVISION,
    files=("data/test-00000-of-00001.parquet", "more.csv"),
    license_url="",
    access_note="",
)
# The hub client writes pieces of 10 MB.
BIG = bytes(range(256)) * 60_000


@pytest.fixture
def full_hub(hub: Any) -> Any:
    hub.files[("Owner/set", REVISION, "data/test-00000-of-00001.parquet")] = BIG
    hub.files[("Owner/set", REVISION, "more.csv")] = b"a,b\n1,2\n"
    return hub


def fetch(cache: Path, seen: list[int] | None = None) -> dict[str, bytes]:
    report = (seen if seen is not None else []).append
    return {name: path.read_bytes() for name, path in hub_source.download(SOURCE, cache, report, pause_s=0.01)}


def test_the_pinned_files_arrive_whole_and_bytes_are_counted(full_hub: Any, tmp_path: Path) -> None:
    seen: list[int] = []
    assert fetch(tmp_path, seen) == {"test-00000-of-00001.parquet": BIG, "more.csv": b"a,b\n1,2\n"}
    assert seen[-1] == len(BIG) + 8
    asked = [path for _, path, _ in full_hub.requests if path.startswith("/datasets/")]
    assert len(asked) >= 2
    assert all(f"/resolve/{REVISION}/" in path for path in asked)


def test_a_second_call_downloads_nothing(full_hub: Any, tmp_path: Path) -> None:
    fetch(tmp_path)
    full_hub.requests.clear()
    assert fetch(tmp_path)["more.csv"] == b"a,b\n1,2\n"
    assert [path for _, path, _ in full_hub.requests if path.startswith("/datasets/")] == []


def test_a_dropped_transfer_goes_on_where_it_stopped(full_hub: Any, tmp_path: Path) -> None:
    full_hub.cut_after = [12_000_000]
    assert fetch(tmp_path)["test-00000-of-00001.parquet"] == BIG
    ranges = [found for method, path, found in full_hub.requests if method == "GET" and found and path.endswith("parquet")]
    assert ranges
    assert ranges[-1].startswith("bytes=")
    assert 0 < int(ranges[-1].removeprefix("bytes=").split("-")[0]) <= 12_000_000


def test_a_hub_that_is_down_for_a_while_is_asked_again(full_hub: Any, tmp_path: Path) -> None:
    full_hub.failures = 2
    assert fetch(tmp_path)["more.csv"] == b"a,b\n1,2\n"


def test_a_hub_that_asks_for_time_is_given_it(full_hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(hub_source, "time", SimpleNamespace(sleep=waits.append))
    full_hub.limited = [{"Retry-After": "40"}, {"RateLimit": '"resolvers";r=0;t=55'}, {"Retry-After": "9000"}, {}]
    assert fetch(tmp_path)["more.csv"] == b"a,b\n1,2\n"
    assert waits == [40.0, 55.0, hub_source.MOST_PAUSE_S, 0.08]


def test_a_gated_set_without_a_token_is_explained(full_hub: Any, tmp_path: Path) -> None:
    full_hub.gated.add("Owner/set")
    with pytest.raises(
        Forbidden, match=r"is gated and HF_TOKEN is not set; accept the terms at https://hugg.*Owner/set"
    ) as caught:
        fetch(tmp_path)
    assert caught.value.reason == "GATED"
    asked = [path for _, path, _ in full_hub.requests if path.startswith("/datasets/")]
    assert len(asked) == 1, "a refusal is not asked again"


def test_a_gated_set_with_a_strangers_token_is_explained(
    full_hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_hub.gated.add("Owner/set")
    monkeypatch.setenv("HF_TOKEN", "hf_stranger-secret")
    with pytest.raises(Forbidden, match="has not been granted access") as caught:
        fetch(tmp_path)
    assert "hf_stranger-secret" not in str(caught.value)


def test_the_token_of_the_environment_opens_a_gated_set(
    full_hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_hub.gated.add("Owner/set")
    full_hub.token = "hf_granted"
    monkeypatch.setenv("HF_TOKEN", "hf_granted")
    assert fetch(tmp_path)["more.csv"] == b"a,b\n1,2\n"


def test_a_missing_file_is_not_found_and_named(full_hub: Any, tmp_path: Path) -> None:
    del full_hub.files[("Owner/set", REVISION, "more.csv")]
    with pytest.raises(NotFound, match=r"no more\.csv in Owner/set") as caught:
        fetch(tmp_path)
    assert caught.value.reason == "SOURCE_NOT_FOUND"


def test_a_missing_revision_is_not_found(hub: Any, tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        fetch(tmp_path)
    assert caught.value.reason == "SOURCE_NOT_FOUND"


def test_a_hub_that_nobody_answers_for_is_unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(Unreachable) as caught:
            fetch(tmp_path)
    assert caught.value.reason == "SOURCE_UNREACHABLE"
