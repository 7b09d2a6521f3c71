"""Small stand-ins for the other side of the planner's ports: a few benchmarks, and files kept in memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from srbench_kit.errors import DataLoss, NotFound
from srbench_kit.values import Json
from srbench_planner.freeze import Freezer
from srbench_planner.ports import Benchmarks, BoundFile, HarnessSpec

WEIGHTS = {
    "mmlu-pro": 0.1,
    "gpqa-diamond": 0.15,
    "hle": 0.15,
    "livecodebench": 0.1,
    "scicode": 0.1,
    "terminal-bench-2.1": 0.1,
    "simpleqa-verified": 0.1,
    "arc-agi-2": 0.1,
    "tau3": 0.1,
}
ANSWERED = {
    "mmlu-pro": "choice",
    "gpqa-diamond": "choice",
    "arc-agi-2": "grid",
    "hle": "judge",
    "simpleqa-verified": "judge",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One benchmark as the planner needs it."""

    id: str
    kind: str = "multiple-choice"
    weight: float
    adapter_version: str = "sr-bench-1.0"
    driver: str = "single_turn"
    grader: str = "choice"
    requires_answer: bool = True
    requires_messages: bool = True
    harness: HarnessSpec | None = None


def benchmarks() -> Benchmarks:
    """The nine, with the released adapter versions."""
    specs: dict[str, Spec] = {}
    for name, weight in WEIGHTS.items():
        mcq = name in ("mmlu-pro", "gpqa-diamond")
        specs[name] = Spec(
            id=name,
            kind={"choice": "multiple-choice"}.get(ANSWERED.get(name, "code"), ANSWERED.get(name, "code")),
            weight=weight,
            adapter_version="sr-bench-mcq-final-v2" if mcq else "sr-bench-1.0",
            driver="single_turn" if name in ANSWERED else "harness",
            grader=ANSWERED.get(name, "code"),
            requires_answer=name in ANSWERED,
            requires_messages=name not in ("scicode", "tau3", "terminal-bench-2.1"),
        )
    return Benchmarks(specs=specs, built_in=frozenset(WEIGHTS))


@dataclass(slots=True)
class Files:
    """Dataset files by path, and datasets of our own by id."""

    rows: dict[str, list[Json]] = field(default_factory=dict)
    siblings: dict[str, dict[str, Json]] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)

    def put(self, path: str, rows: list[Json], **sibling: Json) -> str:
        """Adds a file, with a manifest beside it when `sibling` has fields; returns its digest."""
        self.rows[path] = rows
        digest = sha256(json.dumps(rows).encode()).hexdigest()
        if sibling:
            self.siblings[path] = {"sha256": digest, **sibling}
        return digest

    def find(self, dataset_id: str) -> str | None:
        matches = [path for name, path in self.own.items() if name.startswith(dataset_id)]
        return matches[0] if len(matches) == 1 else None

    def read(self, path: str, sha256: str) -> BoundFile:
        if path not in self.rows:
            raise NotFound("NO_SUCH_FILE", f"there is no file {path}")
        found = self.put(path, self.rows[path])
        if sha256 and found != sha256:
            raise DataLoss("DATASET_DAMAGED", f"{path} does not match its digest")
        return BoundFile(path=path, sha256=found, cases=self.rows[path], sibling=self.siblings.get(path))


def case(name: str = "q1", benchmark: str = "mmlu-pro", **fields: Any) -> dict[str, Any]:
    """A choice case."""
    messages = [{"role": "user", "content": "2+2? A. 4 B. 5"}]
    return {"id": name, "benchmark": benchmark, "messages": messages, "answer": "A", **fields}


def target(name: str = "a", **fields: Any) -> dict[str, Any]:
    """A single target without prices."""
    return {"id": name, "kind": "single", "model": "m", "base_url": "http://127.0.0.1:1/v1", **fields}


PRICE = {"input": 1.25, "cached_input": 0.1, "cache_write": 1.5, "output": 4}


def manifest(**fields: Any) -> dict[str, Any]:
    """The smallest manifest of the published protocol, M, with `fields` over it."""
    smallest: dict[str, Any] = {"version": "sr-bench-1.0", "cost_policy": "capability_only"}
    return smallest | {"targets": [target()], "cases": [case()]} | fields


def freezer(files: Files | None = None) -> Freezer:
    """A freezer over the stand-ins."""
    return Freezer(benchmarks(), files or Files())
