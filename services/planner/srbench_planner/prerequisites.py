"""What benchmarks need before they can run, all at once: judges, hidden tests, what the grader's machine must have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from srbench.v1 import setup_pb2 as pb
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import benchmark_options
from srbench_planner.hidden_parts import HiddenParts
from srbench_planner.ports import BenchmarkSpec

# Graders that need something of the machine they run on.
MACHINE_GRADERS = frozenset({"code", "scicode"})


class Grader(Protocol):
    """The grader as it is asked here."""

    async def inspect(self, benchmarks: Sequence[str], options: Mapping[str, Json]) -> list[pb.SetupItem]:
        """What the graders of `benchmarks` need."""


class Prerequisites:
    """Looks at plans before they may cost anything, and at benchmarks for `setup`."""

    def __init__(self, hidden: HiddenParts, grader: Grader) -> None:
        self._hidden = hidden
        self._grader = grader

    async def check(
        self,
        missing: Sequence[InvalidInput],
        used: Iterable[BenchmarkSpec],
        options: Mapping[str, Json],
        cases: Sequence[Mapping[str, Json]],
    ) -> None:
        """Refuses a live plan for all that it lacks. `missing`: what the plan itself was found to lack.

        Raises: the error in `missing` when it is all; else `InvalidInput` (`MISSING_PREREQUISITES`).
        """
        problems = list(missing)
        machine = [spec.id for spec in used if spec.grader in MACHINE_GRADERS]
        if machine:
            items = await self._grader.inspect(machine, options)
            problems += [_problem(item) for item in items if not item.present]
            gone = self._hidden.missing(cases)
            if gone:
                problems.append(_gone(gone))
        if len(problems) == 1:
            raise problems[0]
        if problems:
            said = "; ".join(problem.message for problem in problems)
            raise InvalidInput("MISSING_PREREQUISITES", f"{len(problems)} things are missing: {said}", count=len(problems))

    async def inspect(
        self, specs: Sequence[BenchmarkSpec], options: Mapping[str, Json], registered: Sequence[Mapping[str, Json]]
    ) -> list[pb.SetupItem]:
        """What `specs` need and what of it is there, in their order."""
        machine = [spec.id for spec in specs if spec.grader in MACHINE_GRADERS]
        asked = await self._grader.inspect(machine, options)
        singles = {str(target["id"]) for target in registered if target.get("kind") == "single"}
        items: list[pb.SetupItem] = []
        for spec in specs:
            given = options.get(spec.id)
            own = given if isinstance(given, dict) else {}
            needed = ("judge",) if spec.grader == "judge" else ()
            roles = dict.fromkeys((*needed, *(role for role in benchmark_options.ROLES if role in own)))
            items += [_role(spec.id, role, own.get(role), singles) for role in roles]
            items += [item for item in asked if item.benchmark == spec.id]
        return items


def _role(benchmark: str, role: str, name: Json, singles: set[str]) -> pb.SetupItem:
    item = pb.SetupItem(benchmark=benchmark, item=role)
    if isinstance(name, str) and name in singles:
        item.present, item.detail = True, f"{name} is a registered target"
    elif isinstance(name, str):
        item.detail = f"{name} is no registered target of kind single"
        item.remedy = f"register {name}: sr-bench target register FILE"
    else:
        item.detail = f"no {role} is named"
        item.remedy = f'name a registered target in benchmark-options.json: {{"{benchmark}": {{"{role}": "<target>"}}}}'
    return item


def _problem(item: pb.SetupItem) -> InvalidInput:
    remedy = f" (mend it: {item.remedy})" if item.remedy else ""
    return InvalidInput(
        f"MISSING_{item.item.upper()}",
        f"{item.benchmark} has no {item.item.replace('_', ' ')}: {item.detail}{remedy}",
        benchmark=item.benchmark,
        item=item.item,
    )


def _gone(case_ids: Sequence[str]) -> InvalidInput:
    shown = ", ".join(case_ids[:3]) + (f" and {len(case_ids) - 3} more" if len(case_ids) > 3 else "")
    return InvalidInput(
        "MISSING_HIDDEN_TESTS",
        f"the hidden tests of {shown} are not in this store; prepare the dataset again in it",
        count=len(case_ids),
    )
