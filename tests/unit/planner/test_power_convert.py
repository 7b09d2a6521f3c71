"""What a manifest would show and cost, by profile: sizes, prices, and refusals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from planner_doubles import PRICE, Files, benchmarks, case, manifest, target
from srbench.v1 import power_pb2
from srbench_kit.errors import InvalidInput
from srbench_planner.benchmark import Counts, Harness
from srbench_planner.freeze import Freezer, FrozenPlan
from srbench_planner.ports import Benchmarks, HarnessSpec
from srbench_planner.power import Design, sharpness
from srbench_planner.power_convert import estimate


@dataclass(frozen=True)
class Counted:
    id: str
    counts: Counts
    driver: str = "single_turn"
    grader: str = "choice"
    harness: HarnessSpec | None = None


COUNTED = [Counted("mmlu-pro", Counts(14, 500, 2000)), Counted("arc-agi-2", Counts(2, 12, 80))]


def frozen(count: int = 4, **more: Any) -> FrozenPlan:
    given = {"cases": [case(f"q{n}") for n in range(count)], "targets": [target("a", prices={"m": PRICE})], **more}
    return Freezer(benchmarks(), Files()).freeze(manifest(**given))


def made(plan: FrozenPlan, **request: Any) -> power_pb2.PowerEstimate:
    return estimate(plan, power_pb2.EstimatePowerRequest(**request), COUNTED)


def test_the_plans_own_cases_come_first_and_then_every_profile() -> None:
    plan = frozen()
    found = made(plan)
    assert [(row.profile, row.case_count, row.cell_count) for row in found.profiles] == [
        ("this plan", 4, 4),
        ("smoke", 14, 14),
        ("quick", 500, 500),
        ("standard", 2000, 2000),
    ]
    quick = sharpness({"mmlu-pro": 500}, {"mmlu-pro": 0.1}, Design())
    assert found.profiles[2].detectable_difference == quick.detectable_difference
    assert not found.profiles[0].HasField("detectable_difference")
    assert (found.plan_sha256, found.model_requests) == (plan.plan_sha256, 0)


def test_costs_scale_with_the_cases_and_the_worst_case_is_the_plans() -> None:
    plan = frozen()
    own, smoke, *_ = made(plan, expected_output_tokens=100).profiles
    assert own.worst_case_cost_picodollars == plan.worst_case.picodollars
    assert smoke.worst_case_cost_picodollars == pytest.approx(plan.worst_case.picodollars / 4 * 14, rel=1e-9)
    assert own.expected_cost_picodollars < own.worst_case_cost_picodollars
    dearer = made(plan, expected_output_tokens=200).profiles[0]
    more = dearer.expected_cost_picodollars - own.expected_cost_picodollars
    assert more == 4 * 100 * round(PRICE["output"] * 10**6)


def test_without_prices_costs_are_absent() -> None:
    plan = frozen(targets=[target("a")], cost_policy="capability_only")
    row = made(plan).profiles[0]
    assert not row.HasField("expected_cost_picodollars")
    assert not row.HasField("worst_case_cost_picodollars")
    gaps = [(gap.reason, gap.target_id) for gap in made(plan).expected_gaps]
    assert gaps == [(gap.reason, gap.target_id) for gap in made(plan).worst_case_gaps] == [("NO_PRICES", "a")]


def of_others(benchmark: str, **more: Any) -> power_pb2.PowerEstimate:
    """The estimate of one case of `benchmark` that is asked as `more` says."""
    specs = {**benchmarks().specs, benchmark: replace(benchmarks().specs[benchmark], **more)}
    freezer = Freezer(Benchmarks(specs=specs, built_in=benchmarks().built_in), Files())
    asked = [{"role": "user", "content": "a step of some length"} for _ in range(3)]
    body = manifest(
        cases=[case("x", benchmark, messages=asked, answer="yes")],
        targets=[target("a", prices={"m": PRICE})],
        auxiliary_targets={"j": target("j", prices={"m": PRICE})},
        benchmark_options={benchmark: {"judge": "j"}} if more.get("grader") == "judge" else {},
    )
    counted = [Counted(benchmark, Counts(1, 2, 3), **more)]
    return estimate(freezer.freeze(body, collect=True), power_pb2.EstimatePowerRequest(expected_output_tokens=100), counted)


def test_expected_cost_counts_steps_and_judges() -> None:
    plain = of_others("scicode", driver="single_turn", grader="scicode", harness=None)
    steps = of_others("scicode", driver="scicode", grader="scicode", harness=None)
    judged = of_others("hle", driver="single_turn", grader="judge", harness=None)
    once, thrice, twice = (found.profiles[0].expected_cost_picodollars for found in (plain, steps, judged))
    answer = verdict = 100 * round(PRICE["output"] * 10**6)
    read = round(PRICE["input"] * 10**6)
    # Two more answers, the first of them read twice and the second once.
    assert once + 2 * answer + 3 * 100 * read < thrice < 3 * once + 4 * answer
    # The judge reads its instructions, the question and the answer.
    assert once + verdict + 200 * read < twice < once + verdict + 1000 * read


def test_what_an_agent_will_cost_is_unknown_and_says_why() -> None:
    found = of_others("tau3", driver="harness", grader="harness", harness=Harness(runner="tau3"))
    assert not found.profiles[0].HasField("expected_cost_picodollars")
    assert [(gap.reason, gap.benchmark) for gap in found.expected_gaps] == [("AGENT_LENGTH_UNKNOWN", "tau3")]
    assert [gap.reason for gap in found.worst_case_gaps] == ["AGENT_PROMPT_UNBOUNDED"]


def test_several_routers_share_the_error_level() -> None:
    assert made(frozen()).alpha == 0.05
    assert made(frozen(), comparison_count=4).alpha == 0.0125


@pytest.mark.parametrize(
    "request_",
    [
        {"discordance": 0.0},
        {"discordance": 1.5},
        {"power": 0.5},
        {"power": 1.0},
        {"comparison_count": 0},
        {"expected_output_tokens": 0},
    ],
)
def test_what_is_no_design_is_refused(request_: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        made(frozen(), **request_)
    assert (caught.value.reason, caught.value.facts["field"]) == ("BAD_FIELD", next(iter(request_)))
