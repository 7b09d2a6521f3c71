"""What a frozen manifest could show and what it would cost, as a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from srbench.v1 import power_pb2 as pb
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import sampling, targets, worst_case
from srbench_planner.benchmark import PROFILES, Counts
from srbench_planner.cells import CellMatrix
from srbench_planner.freeze import FrozenPlan
from srbench_planner.power import ALPHA, DISCORDANCE, POWER, Design, Sharpness, sharpness

OWN = "this plan"
BYTES_PER_TOKEN = 4
# A typical answer takes this part of what its request allows.
CAP_PER_ANSWER = 10
MAX_TOKENS = 10**9
MAX_COMPARISONS = 10_000


class Counted(Protocol):
    """A benchmark with the sizes of its profiles."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def counts(self) -> Counts:
        """How many cases each profile takes."""


def estimate(frozen: FrozenPlan, request: pb.EstimatePowerRequest, benchmarks: Sequence[Counted]) -> pb.PowerEstimate:
    """The figures for the manifest's own cases, then for its benchmarks at the counts of each profile.

    Raises: `InvalidInput` (`BAD_FIELD`).
    """
    design = _design(frozen, request)
    by_benchmark: dict[str, list[dict[str, Json]]] = {}
    for case in frozen.cases:
        by_benchmark.setdefault(str(case["benchmark"]), []).append(case)
    tokens = request.expected_output_tokens if request.HasField("expected_output_tokens") else None
    if tokens is not None and not 1 <= tokens <= MAX_TOKENS:
        raise _bad("expected_output_tokens", tokens, f"1 to {MAX_TOKENS}")
    typical = {name: _case_costs(frozen, cases, tokens) for name, cases in by_benchmark.items()}
    own = {name: len(cases) for name, cases in by_benchmark.items()}
    counts = {spec.id: spec.counts for spec in benchmarks}
    rows = [_profile(OWN, own, frozen, design, typical)]
    for profile in PROFILES if own.keys() <= counts.keys() else ():
        sizes = {name: counts[name].of(profile) for name in own}
        rows.append(_profile(profile, sizes, frozen, design, typical))
    if frozen.worst_case_picodollars is not None:
        # Exact, also where only a part of the matrix is planned.
        rows[0].worst_case_cost_picodollars = _fits(frozen.worst_case_picodollars)
        rows[0].cell_count = len(frozen.matrix)
    return pb.PowerEstimate(
        plan_sha256=frozen.plan_sha256,
        discordance=design.discordance,
        power=design.power,
        alpha=design.alpha,
        profiles=rows,
        assumptions=_assumptions(design, tokens),
    )


def _design(frozen: FrozenPlan, request: pb.EstimatePowerRequest) -> Design:
    discordance = request.discordance if request.HasField("discordance") else DISCORDANCE
    power = request.power if request.HasField("power") else POWER
    routers = Counter(str(target["kind"]) for target in _targets(frozen))["mom"]
    count = request.comparison_count if request.HasField("comparison_count") else max(1, routers)
    if not 0 < discordance <= 1:
        raise _bad("discordance", discordance, "a part of one above 0")
    if not 0.5 < power < 1:
        raise _bad("power", power, "a chance above 0.5 and below 1")
    if not 1 <= count <= MAX_COMPARISONS:
        raise _bad("comparison_count", count, f"1 to {MAX_COMPARISONS}")
    return Design(discordance=discordance, power=power, alpha=ALPHA / count)


def _profile(
    name: str,
    sizes: Mapping[str, int],
    frozen: FrozenPlan,
    design: Design,
    typical: Mapping[str, tuple[float, float] | None],
) -> pb.ProfilePower:
    weights = _object(frozen.manifest.get("benchmark_weights"))
    known = {key: float(value) for key, value in weights.items() if isinstance(value, int | float)}
    made: Sharpness = sharpness(sizes, known, design)
    cases = sum(sizes.values())
    row = pb.ProfilePower(
        profile=name,
        case_count=cases,
        cell_count=cases * len(_targets(frozen)),
        hoeffding_half_width=made.hoeffding_half_width,
        expected_half_width=made.expected_half_width,
        detectable_difference=made.detectable_difference,
        hoeffding_detectable_difference=made.hoeffding_detectable_difference,
    )
    priced = [(sizes[key], cost) for key, cost in typical.items() if cost is not None]
    if len(priced) == len(typical):
        row.expected_cost_picodollars = _fits(round(sum(count * cost[0] for count, cost in priced)))
        row.worst_case_cost_picodollars = _fits(round(sum(count * cost[1] for count, cost in priced)))
    return row


def _case_costs(frozen: FrozenPlan, cases: list[dict[str, Json]], tokens: int | None) -> tuple[float, float] | None:
    """(expected, worst) picodollars of one case with all targets, on average; `None` without prices."""
    plan_sampling, limits = _object(frozen.manifest["sampling"]), _object(frozen.manifest["limits"])
    own = _targets(frozen)
    worst = worst_case.worst_case_picodollars(cases, own, plan_sampling, limits, CellMatrix(len(cases), len(own)))
    if worst is None:
        return None
    prompt = sum(_prompt_tokens(case) for case in cases) / len(cases)
    expected = sum(_expected(target, plan_sampling, limits, prompt, tokens) for target in own)
    return expected, worst / len(cases)


def _prompt_tokens(case: Mapping[str, Json]) -> float:
    messages = case.get("messages")
    count = len(messages) if isinstance(messages, list) else 0
    margin = worst_case.BYTES_PER_MESSAGE * count + worst_case.BYTES_PER_REQUEST
    return max(0, worst_case.request_bytes(case) - margin) / BYTES_PER_TOKEN


def _expected(
    target: Mapping[str, Json],
    plan_sampling: Mapping[str, Json],
    limits: Mapping[str, Json],
    prompt_tokens: float,
    tokens: int | None,
) -> float:
    """One call at the price of the target's model, or at the mean of a router's prices."""
    prices = _object(target["prices"])
    sent = sampling.effective(plan_sampling, _object(target.get("request_params")))
    most = limits["max_output_tokens"]
    assert isinstance(most, int)
    output = tokens if tokens is not None else (sampling.output_cap(sent) or most) / CAP_PER_ANSWER
    used = [prices[str(target["model"])]] if target["model"] in prices else list(prices.values())
    costs = [
        prompt_tokens * targets.price_picodollars(price["input"], "input")
        + output * targets.price_picodollars(price["output"], "output")
        for price in used
        if isinstance(price, dict)
    ]
    return sum(costs) / len(costs)


def _assumptions(design: Design, tokens: int | None) -> list[str]:
    answer = f"{tokens} output tokens" if tokens is not None else "a tenth of the output tokens that its request allows"
    return [
        f"two targets disagree on {100 * design.discordance:g} % of the cases, in every benchmark alike",
        "cases are independent; the normal approximation holds, which exact McNemar's test falls a little short of",
        f"the error level of 0.05 is divided among the comparisons: {design.alpha:.4g} for each",
        f"expected cost: one call a cell, {BYTES_PER_TOKEN} bytes of the request a prompt token, {answer}, no cached "
        "input; a router at the mean of its models' prices; judges and simulators not counted",
        "worst case: what the first call of every cell reserves; other profiles at the average of this plan's cases",
    ]


def _targets(frozen: FrozenPlan) -> list[dict[str, Json]]:
    found = frozen.manifest["targets"]
    assert isinstance(found, list)
    return [target for target in found if isinstance(target, dict)]


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _fits(amount: int) -> int:
    return min(amount, 2**63 - 1)


def _bad(field: str, value: float, expected: str) -> InvalidInput:
    return InvalidInput("BAD_FIELD", f"{field} is {value:g}; expected {expected}", field=field)
