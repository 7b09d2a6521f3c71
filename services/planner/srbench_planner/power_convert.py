"""What a frozen manifest could show and what it would cost, as a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from srbench.v1 import plan_pb2
from srbench.v1 import power_pb2 as pb
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import convert, worst_case
from srbench_planner.benchmark import PROFILES, Counts
from srbench_planner.cells import CellMatrix
from srbench_planner.expected_spend import JUDGE_ANSWER_TOKENS, Expected, expected
from srbench_planner.freeze import FrozenPlan
from srbench_planner.power import ALPHA, DISCORDANCE, POWER, Design, Sharpness, sharpness
from srbench_planner.worst_case import BYTES_PER_TOKEN, Asked, Gap, Planned, Spend

OWN = "this plan"
MAX_TOKENS = 10**9
MAX_COMPARISONS = 10_000


class Counted(Asked, Protocol):
    """A benchmark with the sizes of its profiles."""

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
    specs = {spec.id: spec for spec in benchmarks}
    spends = {name: _spends(Planned(frozen.manifest, cases, specs), tokens) for name, cases in by_benchmark.items()}
    own = {name: len(cases) for name, cases in by_benchmark.items()}
    rows = [_profile(OWN, own, frozen, design, spends)]
    for profile in PROFILES if own.keys() <= specs.keys() else ():
        sizes = {name: specs[name].counts.of(profile) for name in own}
        rows.append(_profile(profile, sizes, frozen, design, spends))
    if frozen.worst_case.picodollars is not None:
        # Exact, also where only a part of the matrix is planned.
        rows[0].worst_case_cost_picodollars = _fits(frozen.worst_case.picodollars)
        rows[0].cell_count = len(frozen.matrix)
    return pb.PowerEstimate(
        plan_sha256=frozen.plan_sha256,
        discordance=design.discordance,
        power=design.power,
        alpha=design.alpha,
        profiles=rows,
        assumptions=_assumptions(design, tokens),
        expected_gaps=_gaps(made.expected.gaps for made in spends.values()),
        worst_case_gaps=_gaps(made.worst.gaps for made in spends.values()),
    )


def _design(frozen: FrozenPlan, request: pb.EstimatePowerRequest) -> Design:
    discordance = request.discordance if request.HasField("discordance") else DISCORDANCE
    power = request.power if request.HasField("power") else POWER
    kinds = Counter(str(target["kind"]) for target in _targets(frozen))
    count = request.comparison_count if request.HasField("comparison_count") else max(1, kinds["mom"])
    if not 0 < discordance <= 1:
        raise _bad("discordance", discordance, "a part of one above 0")
    if not 0.5 < power < 1:
        raise _bad("power", power, "a chance above 0.5 and below 1")
    if not 1 <= count <= MAX_COMPARISONS:
        raise _bad("comparison_count", count, f"1 to {MAX_COMPARISONS}")
    return Design(discordance=discordance, power=power, alpha=ALPHA / count, singles=max(1, kinds["single"]))


def _profile(
    name: str,
    sizes: Mapping[str, int],
    frozen: FrozenPlan,
    design: Design,
    spends: Mapping[str, _Spends],
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
        verdict_half_width=made.verdict_half_width,
        verdict_detectable_difference=made.verdict_detectable_difference,
    )
    likely = [(sizes[key], made.expected.picodollars, made.case_count) for key, made in spends.items()]
    most = [(sizes[key], made.worst.picodollars, made.case_count) for key, made in spends.items()]
    for name, parts in (("expected", likely), ("worst_case", most)):
        if all(cost is not None for _, cost, _ in parts):
            total = round(sum(size * (cost or 0) / count for size, cost, count in parts))
            setattr(row, f"{name}_cost_picodollars", _fits(total))
    return row


@dataclass(frozen=True, slots=True)
class _Spends:
    """What all cases of a benchmark cost with all targets."""

    case_count: int
    expected: Expected
    worst: Spend


def _spends(planned: Planned, tokens: int | None) -> _Spends:
    matrix = CellMatrix(len(planned.cases), len(planned.targets))
    return _Spends(len(planned.cases), expected(planned, tokens), worst_case.worst_case(planned, matrix))


def _gaps(found: Iterable[Iterable[Gap]]) -> list[plan_pb2.SpendGap]:
    return [convert.spend_gap(gap) for gap in sorted({gap for gaps in found for gap in gaps})]


def _assumptions(design: Design, tokens: int | None) -> list[str]:
    answer = f"{tokens} output tokens" if tokens is not None else "a tenth of the output tokens that its request allows"
    return [
        f"two targets disagree on {100 * design.discordance:g} % of the cases, in every benchmark alike",
        "cases are independent; the normal approximation holds, which exact McNemar's test falls a little short of",
        f"the error level of 0.05 is divided among the comparisons: {design.alpha:.4g} for each, and for verdicts among "
        f"the single models: {design.alpha / design.singles:.4g}",
        f"expected cost: {BYTES_PER_TOKEN} bytes of the request a prompt token, {answer}, no cached input; every step of a "
        f"problem and every judge counted, a verdict {JUDGE_ANSWER_TOKENS} tokens; a router at the mean of its models' "
        "prices",
        "worst case: all calls of subjects, judges and agents, as long and as dear as they can be; other profiles at the "
        "average of this plan's cases",
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
