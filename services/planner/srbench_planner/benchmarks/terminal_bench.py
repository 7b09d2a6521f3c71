"""Terminal-Bench 2.1: tasks in containers of their own, solved by commands and verified by tests that run after the agent.

The frozen case holds the instruction, the task's name and the digest of its whole folder. Tests and solutions stay in the
checkout on the executor's machine (`SR_BENCH_TERMINAL_ROOT`); its runner refuses a folder with another digest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from srbench_kit import upstreams
from srbench_kit.values import Json

from srbench_planner.benchmark import BenchmarkSpec, Counts, GitSource, Harness, Row, Task, bad_row, text_of
from srbench_planner.ports import HarnessNeeds
from srbench_planner.task_folders import TASK_FILE, read_task_folders

STRATUM = "terminal"
# Upstream's time where a task names none.
DEFAULT_S = 600.0
# The released protocol lets an agent take this many turns; the option `max_steps` lets it take fewer.
STEPS = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")


def normalize(row: Row, _seed: int) -> Task:
    """A task of its folder."""
    name = text_of(row, "id")
    if not _NAME.match(name):
        raise bad_row("id", f"the folder is named {name!r}; expected letters, digits, dots, underscores and hyphens")
    task = row.values.get("task")
    if not isinstance(task, dict):
        raise bad_row("task", "the task file holds no tables")
    environment = _table(task, "environment")
    facts = _table(task, "metadata")
    metadata: dict[str, Json] = {
        "task": name,
        "tree_sha256": text_of(row, "tree_sha256"),
        "build_timeout_s": _seconds(environment, "environment", "build_timeout_sec"),
        "agent_timeout_s": _seconds(_table(task, "agent"), "agent", "timeout_sec"),
        "verifier_timeout_s": _seconds(_table(task, "verifier"), "verifier", "timeout_sec"),
    }
    metadata |= {key: facts[key] for key in ("difficulty", "category") if isinstance(facts.get(key), str)}
    metadata |= {key: environment[key] for key in ("docker_image", "allow_internet") if environment.get(key) is not None}
    return Task(identity=name, stratum=STRATUM, prompt=text_of(row, "instruction"), metadata=metadata)


def needs(metadata: Mapping[str, Json]) -> HarnessNeeds:
    """The task's own times: to build or pull its image, for the agent, for the tests."""
    times = (metadata.get(f"{phase}_timeout_s") for phase in ("build", "agent", "verifier"))
    return HarnessNeeds(case_timeout_s=sum(time for time in times if isinstance(time, int | float)), calls=STEPS)


def _table(task: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    found = task.get(name, {})
    if not isinstance(found, dict):
        raise bad_row(name, f"{name} is no table")
    return found


def _seconds(table: Mapping[str, Json], where: str, name: str) -> float:
    value = table.get(name, DEFAULT_S)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise bad_row(f"{where}.{name}", f"{where}.{name} is {value!r}; expected seconds above 0")
    return float(value)


SPEC = BenchmarkSpec(
    id="terminal-bench-2.1",
    title="Terminal-Bench 2.1",
    kind="agent",
    weight=0.10,
    adapter_version="sr-bench-terminal-v2",
    source_url="https://www.tbench.ai",
    source=GitSource(
        repository=upstreams.TERMINAL_TASKS[0],
        revision=upstreams.TERMINAL_TASKS[1],
        folder=upstreams.TERMINAL_TASKS[2],
        license_url="https://github.com/harbor-framework/terminal-bench-2-1",
        access_note="Public; Apache-2.0. Running it needs Docker.",
        task_file=TASK_FILE,
    ),
    counts=Counts(smoke=1, quick=3, standard=15),
    driver="harness",
    grader="harness",
    harness=Harness(runner="terminal", task_fields=("task", "tree_sha256"), needs=needs),
    columns=("task", "instruction", "tree_sha256"),
    read=read_task_folders,
    normalize=normalize,
    requires_answer=False,
    requires_messages=False,
)
