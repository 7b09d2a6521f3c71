"""τ³ (tau2-bench 1.0.1): customer service with tools and a simulated user, in three domains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from srbench_kit.canonical import canonical_bytes, digest
from srbench_kit.documents import load_json
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner.benchmark import BenchmarkSpec, Counts, GitSource, Harness, Row, Task, bad_row, text_of
from srbench_planner.files import MAX_ROW_BYTES, open_regular
from srbench_planner.ports import HarnessNeeds

DOMAINS = ("airline", "retail", "telecom")
# Of telecom's 2,285 tasks only those of this split belong to the benchmark.
SPLIT_FILE, SPLIT = "domains/telecom/split_tasks.json", "base"
# A conversation of average length takes 30 to 60 calls of agent and user together.
NEEDS = HarnessNeeds(calls=100)
# What the simulation needs of a task. How it is judged, and the authors' notes on that, stay with the graders.
PUBLIC_FIELDS = ("id", "user_scenario", "initial_state", "user_tools")


def read(files: Sequence[tuple[str, Path]]) -> Iterator[Row]:
    """The tasks of all domains, each with its `domain`; of telecom only those of the split.

    Raises: `InvalidInput` (`BAD_SOURCE`) for a file that is no list of tasks, or a split that names a task it has not.
    """
    documents = {name: _document(path, name) for name, path in files}
    wanted = _split(documents.pop(SPLIT_FILE))
    position = 0
    for name, tasks in documents.items():
        domain = name.split("/")[-2]
        if not isinstance(tasks, list):
            raise InvalidInput("BAD_SOURCE", f"{name} is no list of tasks", value=name)
        found: set[str] = set()
        for place, task in enumerate(tasks):
            where = f"{name} row {place + 1}"
            if not isinstance(task, dict):
                yield Row(position=position, where=where, problem="it is no JSON object")
            elif domain != "telecom" or task.get("id") in wanted:
                found.add(str(task.get("id")))
                yield Row(position=position, where=where, values=task | {"domain": domain})
            position += 1
        missing = sorted(wanted - found) if domain == "telecom" else []
        if missing:
            raise InvalidInput("BAD_SOURCE", f"{name} has no task {missing[0]!r}, which {SPLIT_FILE} names", value=name)


def _document(path: Path, name: str) -> Json:
    with open_regular(path, MAX_ROW_BYTES) as file:
        return load_json(file.read(), name)


def _split(document: Json) -> set[str]:
    names = document.get(SPLIT) if isinstance(document, dict) else None
    if not isinstance(names, list) or not names:
        raise InvalidInput("BAD_SOURCE", f"{SPLIT_FILE} has no split {SPLIT!r}", value=SPLIT_FILE)
    return {str(name) for name in names}


def normalize(row: Row, _seed: int) -> Task:
    """A task without what it is judged by; the harness talks to the model, so there is no prompt."""
    domain = _domain(row)
    task = _task(row)
    public: dict[str, Json] = {name: task[name] for name in PUBLIC_FIELDS if name in task}
    return Task(
        identity=f"{domain}/{text_of(row, 'id')}",
        stratum=domain,
        metadata={
            "domain": domain,
            "task_id": text_of(row, "id"),
            "source_task_sha256": digest(task),
            "task": public,
        },
    )


def hidden(row: Row) -> bytes:
    """The whole task, what it is judged by included."""
    task = _task(row)
    if not isinstance(task.get("evaluation_criteria"), dict):
        raise bad_row("evaluation_criteria", "evaluation_criteria is missing; expected an object")
    return canonical_bytes(task)


def _task(row: Row) -> dict[str, Json]:
    """The task as upstream wrote it."""
    if not isinstance(row.values.get("user_scenario"), dict):
        raise bad_row("user_scenario", "user_scenario is no object; expected the persona and instructions of a user")
    return {name: value for name, value in row.values.items() if name != "domain"}


def _domain(row: Row) -> str:
    scenario = row.values.get("user_scenario")
    instructions = scenario.get("instructions") if isinstance(scenario, dict) else None
    told = instructions.get("domain") if isinstance(instructions, dict) else None
    domain = row.values.get("domain", told)
    if domain not in DOMAINS:
        raise bad_row("domain", f"domain is {domain!r}; expected {', '.join(DOMAINS)}")
    return str(domain)


SPEC = BenchmarkSpec(
    id="tau3",
    title="τ³",
    kind="agent",
    weight=0.10,
    adapter_version="sr-bench-tau3-v2",
    source_url="https://github.com/sierra-research/tau2-bench",
    source=GitSource(
        repository="sierra-research/tau2-bench",
        revision="fc0055dc4e0a316c3f83133267fbd6faaa770992",
        folder="data/tau2",
        files=(*(f"domains/{domain}/tasks.json" for domain in DOMAINS), SPLIT_FILE),
        license_url="https://github.com/sierra-research/tau2-bench/blob/main/LICENSE",
        access_note="Public; MIT licence.",
    ),
    counts=Counts(smoke=3, quick=12, standard=60),
    driver="harness",
    harness=Harness(
        runner="tau3", task_fields=("domain", "task"), roles=("simulator", "judge"), needs=lambda _metadata: NEEDS
    ),
    grader="tau3",
    columns=("id", "user_scenario", "evaluation_criteria"),
    read=read,
    normalize=normalize,
    hidden=hidden,
    order="balanced",
    requires_answer=False,
    requires_messages=False,
)
