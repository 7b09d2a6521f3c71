"""What benchmarks need before they can run, all at once: judges, hidden tests, what graders and executors must have."""

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
MACHINE_GRADERS = frozenset({"code", "scicode", "tau3"})


class Grader(Protocol):
    """The grader as it is asked here."""

    async def inspect(self, benchmarks: Sequence[str], options: Mapping[str, Json]) -> list[pb.SetupItem]:
        """What the graders of `benchmarks` need."""


class Runners(Protocol):
    """The executors' runners of harnesses as they are asked here."""

    async def inspect(self, runner: str, benchmark: str) -> list[pb.SetupItem]:
        """What `runner` needs for `benchmark`."""

    async def unset(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that are environment variables of no executor."""


class Prerequisites:
    """Looks at plans before they may cost anything, and at benchmarks for `setup`."""

    def __init__(self, hidden: HiddenParts, grader: Grader, runners: Runners) -> None:
        self._hidden = hidden
        self._grader = grader
        self._runners = runners

    async def check(
        self,
        missing: Sequence[InvalidInput],
        used: Iterable[BenchmarkSpec],
        options: Mapping[str, Json],
        cases: Sequence[Mapping[str, Json]],
        targets: Iterable[Mapping[str, Json]],
    ) -> None:
        """Refuses a live plan for all that it lacks. `missing`: what the plan itself was found to lack. `targets`: all that
        it may ask, judges and simulators among them.

        Raises: the error in `missing` when it is all; else `InvalidInput` (`MISSING_PREREQUISITES`).
        """
        problems = list(missing)
        specs = list(used)
        keys = {str(target["api_key_env"]): str(target["id"]) for target in targets if target.get("api_key_env")}
        problems += [_keyless(name, keys[name]) for name in await self._runners.unset(keys)]
        items = [
            item for spec in specs if spec.harness for item in await self._runners.inspect(spec.harness.runner, spec.id)
        ]
        problems += [_problem(item) for item in items if not item.present]
        machine = [spec.id for spec in specs if spec.grader in MACHINE_GRADERS]
        if machine:
            items = await self._grader.inspect(machine, options)
            problems += [_problem(item) for item in items if not item.present]
            gone = self._hidden.missing(cases) + unnamed(cases, machine)
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
            needed = spec.harness.roles if spec.harness else ("judge",) if spec.grader == "judge" else ()
            roles = dict.fromkeys((*needed, *(role for role in benchmark_options.ROLES if role in own)))
            items += [_role(spec.id, role, own.get(role), singles) for role in roles]
            items += [item for item in asked if item.benchmark == spec.id]
            if spec.harness is not None:
                items += await self._runners.inspect(spec.harness.runner, spec.id)
        return items


def _role(benchmark: str, role: str, name: Json, singles: set[str]) -> pb.SetupItem:
    item = pb.SetupItem(benchmark=benchmark, item=role)
    if isinstance(name, str) and name in singles:
        item.present, item.detail = True, f"{name} is a registered target"
    elif isinstance(name, str):
        item.detail = f"{name} is no registered target of kind single"
        item.remedy = f"register {name}: sr-bench target register --file FILE"
    else:
        item.detail = f"no {role} is named"
        member = f'{{"{benchmark}": {{"{role}": "<target>"}}}}'
        item.remedy = f"name a registered target in the one file of options (sr-bench target options --file FILE): {member}"
    return item


def _problem(item: pb.SetupItem) -> InvalidInput:
    remedy = f" (mend it: {item.remedy})" if item.remedy else ""
    return InvalidInput(
        f"MISSING_{item.item.upper()}",
        f"{item.benchmark} has no {item.item.replace('_', ' ')}: {item.detail}{remedy}",
        benchmark=item.benchmark,
        item=item.item,
    )


def unnamed(cases: Sequence[Mapping[str, Json]], benchmarks: Sequence[str]) -> list[str]:
    """The ids of the cases of `benchmarks` that name no hidden part and hold none; nobody could ever judge them."""
    found: list[str] = []
    for case in cases:
        facts = case.get("metadata") if case.get("benchmark") in benchmarks else {"hidden_sha256": ""}
        if not isinstance(facts, dict) or not facts.keys() & {"hidden_sha256", "source_record"}:
            found.append(str(case.get("id")))
    return found


def _keyless(name: str, target_id: str) -> InvalidInput:
    message = f"the environment variable {name}, the key of target {target_id}, is set in no executor"
    return InvalidInput("MISSING_KEY", message, target_id=target_id, variable=name)


def _gone(case_ids: Sequence[str]) -> InvalidInput:
    shown = ", ".join(case_ids[:3]) + (f" and {len(case_ids) - 3} more" if len(case_ids) > 3 else "")
    return InvalidInput(
        "MISSING_HIDDEN_TESTS",
        f"the hidden tests of {shown} are not in this store; prepare the dataset again in it",
        count=len(case_ids),
    )
