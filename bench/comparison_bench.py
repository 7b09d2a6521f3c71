"""What a report of each of two runs and their comparison take, from typed columns: 3,183 cases and four targets each.

    python bench/comparison_bench.py [--rounds 20]

CPU of this process, whole suite at its standard counts. `first` draws the bootstrap and the deals of the permutation test
anew, as after a start; later comparisons of a layout use them again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from srbench_accounting import bootstrap, routers
from srbench_accounting.columns import CallColumns, CallEnd, CellEnd, Labels, OutcomeColumns, PlanColumns, Role
from srbench_accounting.compare import RunFigures
from srbench_accounting.comparing import ComparisonSet, compare_all
from srbench_accounting.report import RunFacts, TargetProfile, make_report
from srbench_kit import adaptive

# Cases and weight of each benchmark at its standard count.
SUITE = {
    "mmlu-pro": (2000, 0.10),
    "gpqa-diamond": (158, 0.15),
    "hle": (200, 0.15),
    "livecodebench": (150, 0.10),
    "scicode": (20, 0.10),
    "terminal-bench-2.1": (15, 0.10),
    "simpleqa-verified": (500, 0.10),
    "arc-agi-2": (80, 0.10),
    "tau3": (60, 0.10),
}
SKILL = (0.55, 0.65, 0.75, 0.72)
CASES = sum(size for size, _ in SUITE.values())


def plan(targets: list[str]) -> PlanColumns:
    """The whole suite for `targets`, case after case."""
    benchmarks = [name for name, (size, _) in SUITE.items() for _ in range(size)]
    return PlanColumns(
        case_ids=[f"{name}/{index}" for index, name in enumerate(benchmarks)],
        case_benchmark=Labels.of(benchmarks),
        target_ids=targets,
        cell_case=np.repeat(np.arange(CASES), len(targets)),
        cell_target=np.tile(np.arange(len(targets)), CASES),
        weights={name: weight for name, (_, weight) in SUITE.items()},
    )


def columns(own: PlanColumns, seed: int) -> tuple[OutcomeColumns, CallColumns]:
    """One answered and graded call a cell; a target is right as often as `SKILL` says, on cases that are hard for all."""
    source, size = np.random.default_rng(seed), len(own.cell_case)
    hard = np.random.default_rng(1).random(CASES)[own.cell_case]
    right = (0.7 * hard + 0.3 * source.random(size) < np.asarray(SKILL)[own.cell_target]).astype(np.int64)
    ones = np.ones(size, dtype=np.int64)
    outcomes = OutcomeColumns(
        case=own.cell_case,
        target=own.cell_target,
        end=np.full(size, CellEnd.DONE),
        reason=Labels(np.full(size, -1), ()),
        correct=right,
        strict_format=ones,
        output_limit=ones * 0,
        latency_s=source.random(size),
        queue_wait_s=source.random(size),
        finish_s=source.random(size),
    )
    tokens = {name: source.integers(1, 2000, size) for name in ("input_tokens", "cached_input_tokens", "output_tokens")}
    cost = tokens["input_tokens"] * 2_000_000 + tokens["output_tokens"] * 8_000_000 * (1 + own.cell_target)
    models = Labels(source.integers(0, 3, size), ("m0", "m1", "m2"))
    calls = CallColumns(
        case=own.cell_case,
        target=own.cell_target,
        role=np.full(size, Role.SUBJECT),
        end=np.full(size, CallEnd.COMPLETED),
        **tokens,
        cache_write_tokens=ones * 0,
        prompt_tokens=tokens["input_tokens"] + tokens["cached_input_tokens"],
        cost=cost,
        cache_neutral_cost=cost,
        reserved=cost * 4,
        inference_calls=ones,
        cache_read_reported=ones,
        model=models,
        selected_model=models,
        decision=Labels(source.integers(0, 5, size), ("a", "b", "c", "d", "e")),
        finish_reason=Labels(ones * 0, ("stop",)),
        latency_s=source.random(size),
        ttft_s=source.random(size),
        first_token_lag_s=source.random(size),
    )
    return outcomes, calls


class Side:
    """One run: its columns, made once, and its figures, made anew each time."""

    def __init__(self, run_id: str, targets: list[str], singles: list[str], seed: int) -> None:
        self._plan = plan(targets)
        self._outcomes, self._calls = columns(self._plan, seed)
        self._singles = frozenset(singles)
        profiles = [TargetProfile(id=name, model=name, kind="single") for name in targets]
        self._facts = RunFacts(
            run_id=run_id, status="completed", created_s=0.0, updated_s=1.0, runner={}, target_profiles=profiles
        )

    def figures(self) -> RunFigures:
        """The report and what a comparison takes."""
        return RunFigures(
            plan=self._plan,
            outcomes=self._outcomes,
            report=make_report(self._facts, self._plan, self._outcomes, self._calls),
            singles=self._singles,
            calls=self._calls,
        )


def main() -> None:
    """Prints CPU milliseconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    baseline = Side("base", ["m0", "m1", "m2", "r"], ["m0", "m1", "m2"], 2)
    candidate = Side("cand", ["m0", "m1", "m2", "r"], ["m0", "m1", "m2"], 3)
    routed = Side("cand", ["r0", "r1", "r2", "r3"], [], 3).figures()
    first, second = baseline.figures(), candidate.figures()

    def comparison() -> ComparisonSet:
        return compare_all(first, [second])

    def four_routers() -> ComparisonSet:
        return compare_all(first, [routed])

    def anew() -> ComparisonSet:
        bootstrap.released_draws.cache_clear()
        routers._deals.cache_clear()
        adaptive._kept_bets.cache_clear()
        return comparison()

    print(f"{CASES} cases, 4 targets, {rounds} rounds; CPU milliseconds, median (least)")
    total = [0.0, 0.0]
    measured: dict[str, Callable[[], object]] = {
        "report of the baseline": baseline.figures,
        "report of the candidate": candidate.figures,
        "comparison, again": comparison,
        "comparison, first": anew,
    }
    for name, work in measured.items():
        times = [cpu_ms(work) for _ in range(rounds)]
        print(f"  {name:36} {median(times):7.1f} ({min(times):.1f})")
        if not name.endswith("first"):
            total[0] += median(times)
        if not name.endswith("again"):
            total[1] += median(times)
    times = [cpu_ms(four_routers) for _ in range(rounds)]
    print(f"  {'comparison of four routers, again':36} {median(times):7.1f} ({min(times):.1f})")
    print(f"  {'all together, again':36} {total[0]:7.1f}")
    print(f"  {'all together, first':36} {total[1]:7.1f}")


def cpu_ms(work: Callable[[], object]) -> float:
    """CPU of this process that `work` takes, all its threads together."""
    begun = time.process_time()
    work()
    return 1e3 * (time.process_time() - begun)


if __name__ == "__main__":
    main()
