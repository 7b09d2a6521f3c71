"""The demo step by step. Every step is what a command does; only the testbed and the source files are its own."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import report_pb2
from srbench_kit import views
from srbench_kit.errors import InvalidInput, Unreachable
from srbench_kit.values import Json, to_value

from srbench_cli import lifecycle, manifests, printing, service_files, watch
from srbench_cli.commands.run import get_report, incompleteness, start
from srbench_cli.context import Session
from srbench_cli.demo import plan, processes
from srbench_cli.demo.closing import close
from srbench_cli.demo.loop import improve
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S
from srbench_cli.terminal import json_text

SEED = 20260918
# The commit of the public tasks that the export is made from.
ARC_REVISION = "f3283f727488ad98fe575ea6a5ac981e4a188e49"
ARC, MMLU = "arc-agi-2", "mmlu-pro"
STOP_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where the demo keeps its things: a store of its own and a folder of source files."""

    root: Path

    @property
    def store(self) -> Path:
        """The store of the demo's stack."""
        return self.root / "store"

    @property
    def work(self) -> Path:
        """Source files, the answer key and the testbed's configuration."""
        return self.root / "work"

    @property
    def bundle(self) -> Path:
        """The bundle of the demo's runs."""
        return self.root / "runs.tar"

    def log(self, name: str) -> Path:
        """The log of one of the demo's processes."""
        return self.store / "logs" / f"demo-{name}.log"


def run_demo(session: Session, workspace: Workspace, output: Path, *, keep: bool, say: Callable[[str], None]) -> str:
    """Runs the whole evaluation and writes the report to `output`. Says why it is no success; nothing when it is one.

    Raises: `InvalidInput` (`OUTPUT_EXISTS`, `BAD_OUTPUT`), `Unreachable` (`DEMO_STEP_FAILED`, `START_FAILED`), and what
    the service answers.
    """
    check_replaceable(output)
    service_files.make_store(workspace.store)
    workspace.work.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.ExitStack() as stack:
        say("making the source files and starting the local stack")
        sources = _begin_sources(workspace)
        url = stack.enter_context(running_stack(workspace, keep))
        session.url, session.store = url, str(workspace.store)
        for source in sources:
            source.finish()
        say("preparing ARC-AGI-2 (the real public tasks) and MMLU-Pro (synthetic questions)")
        dataset = _dataset(session, workspace)
        say(f"starting the testbed: three models and a router over them, for {dataset.case_count} cases")
        targets = stack.enter_context(running_testbed(workspace, dataset))
        registered = register(session, targets)
        say("freezing a plan and running it")
        started = start(session, plan.manifest(dataset.path, dataset.sha256, registered), None)
        ended = watch.run_to_end(session.door, started)
        report = get_report(session, ended.id)
        replace_report(output, views.report(report))
        show_demo_report(session, report)
        say(f"wrote the report to {output}")
        fault = incompleteness(ended, report)
        if not fault:
            improved = improve(session, ended, workspace.work, say)
            close(session, improved, workspace.bundle, say)
        if keep:
            leave_standing(session, workspace, f"{url}/runs/{ended.id}", say)
        session.close()
    return fault


def leave_standing(session: Session, workspace: Workspace, page: str, say: Callable[[str], None]) -> None:
    """Says where the stack that stays can be looked at, and how it ends."""
    say(f"the stack stays, the pretended models end; stop it with {session.hint('stop')}")
    say(f"the Dashboard shows it all: {page}")


def show_demo_report(session: Session, report: report_pb2.Report) -> None:
    """Prints the report: a table, in a pipe, too, unless JSON was asked for, which `report.json` holds anyway."""
    from srbench_cli import report_table

    if session.as_json:
        printing.print_json(views.report(report))
    else:
        printing.print_renderable(report_table.report(report))


def _begin_sources(workspace: Workspace) -> list[processes.Started]:
    arc, mmlu = str(workspace.work / ARC), str(workspace.work / "synthetic")
    return [
        processes.start("the export of ARC-AGI-2", "srbench_testbed.arc_export", ["--out", arc], workspace.log("arc")),
        processes.start(
            "the maker of synthetic questions",
            "srbench_testbed.synthetic",
            ["--out", mmlu, "--seed", str(SEED)],
            workspace.log("synthetic"),
        ),
    ]


@contextlib.contextmanager
def running_stack(workspace: Workspace, keep: bool, variables: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of the demo's stack; one that runs already is used and left running. `variables` join its environment."""
    record = service_files.running(workspace.store)
    ours = record is None
    if record is None:
        environment = {
            name: value for name, value in os.environ.items() if name not in ("SR_BENCH_TOKEN", "SR_BENCH_TOKEN_ENV")
        }
        environment |= variables or {}
        record = lifecycle.start(workspace.store, ["--port", "0"], environment, with_parent=not keep)
    try:
        yield record.url
    except BaseException:
        keep = False
        raise
    finally:
        if ours and not keep:
            lifecycle.stop(workspace.store, STOP_TIMEOUT_S)


def _dataset(session: Session, workspace: Workspace) -> pb.Dataset:
    """The two prepared sets joined into one."""
    parquet = next((workspace.work / "synthetic" / MMLU).glob("*.parquet"))
    parts = [
        prepared(session, ARC, workspace.work / ARC, ARC_REVISION),
        prepared(session, MMLU, parquet, f"synthetic-{SEED}"),
    ]
    request = pb.ComposeDatasetsRequest(dataset_ids=[part.id for part in parts])
    return session.door.call(session.door.planner.ComposeDatasets, request, SLOW_CALL_TIMEOUT_S)


def prepared(session: Session, benchmark: str, source: Path, revision: str, profile: str = "quick") -> pb.Dataset:
    """The frozen set of one benchmark. Raises: `Unreachable` with the reason of the job."""
    request = pb.CreateDatasetPreparationRequest(
        benchmarks=[benchmark], profile=profile, source_path=str(source.absolute()), revision=revision
    )
    job = session.door.call(session.door.planner.CreateDatasetPreparation, request, SLOW_CALL_TIMEOUT_S)
    job = watch.preparation_to_end(session.door, job)
    if job.status != "completed":
        raise Unreachable(job.reason or "DEMO_STEP_FAILED", f"{benchmark} could not be prepared: {job.error}")
    return job.dataset


@contextlib.contextmanager
def running_testbed(
    workspace: Workspace, dataset: pb.Dataset, configuration: str = "testbed.json", known: Sequence[str] = ()
) -> Iterator[Path]:
    """The targets file of a testbed that runs and knows the right answers of `dataset`; `known` tells its key more."""
    key, config, targets = (workspace.work / name for name in ("answer-key.jsonl", "testbed.json", "targets.json"))
    arguments = ["--cases", dataset.path, "--out", str(key), *known]
    processes.start("the answer key", "srbench_testbed.answer_key", arguments, workspace.log("key")).finish()
    config.write_text(files("srbench_cli.demo").joinpath(configuration).read_text())
    wiring = ["--config", str(config), "--answer-key", str(key), "--write-targets", str(targets)]
    testbed = processes.start(
        "the testbed",
        "srbench_testbed",
        ["--host", "127.0.0.1", "--port", "0", *wiring],
        workspace.log("testbed"),
    )
    try:
        testbed.wait_until_listening()
        yield targets
    finally:
        testbed.stop()


def register(session: Session, targets: Path) -> list[Json]:
    """Registers the targets of a file; as the service shows them."""
    request = pb.RegisterTargetsRequest(document=to_value(manifests.read_document(str(targets))))
    found = session.door.call(session.door.planner.RegisterTargets, request)
    return [views.target(target) for target in found.targets]


def check_replaceable(path: Path) -> None:
    """Raises: `InvalidInput` (`OUTPUT_EXISTS`) when `path` is anything but the report of an earlier demo."""
    if not (path.exists() or path.is_symlink()):
        printing.check_new_file(path)
        return
    try:
        found = json.loads(path.read_bytes()) if path.is_file() and not path.is_symlink() else None
    except ValueError:
        found = None
    if not (isinstance(found, dict) and "run_id" in found and "summary" in found):
        raise InvalidInput(
            "OUTPUT_EXISTS", f"{path} exists and is no report; the demo replaces only its own report", value=path
        )


def replace_report(path: Path, report: dict[str, Json]) -> None:
    """Writes the report, whole or not at all, in place of an earlier one."""
    check_replaceable(path)
    printing.write_new_file(path, (json_text(report) + "\n").encode(), replace=True)
