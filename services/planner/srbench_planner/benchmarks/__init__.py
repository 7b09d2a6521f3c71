"""The built-in benchmarks, one declarative file each, in catalog order."""

from __future__ import annotations

from srbench_planner.benchmark import BenchmarkSpec
from srbench_planner.benchmarks import (
    arc_agi_2,
    gpqa_diamond,
    hle,
    livecodebench,
    mmlu_pro,
    scicode,
    simpleqa_verified,
    tau3,
    terminal_bench,
)

BUILT_IN: tuple[BenchmarkSpec, ...] = (
    mmlu_pro.SPEC,
    gpqa_diamond.SPEC,
    hle.SPEC,
    livecodebench.SPEC,
    scicode.SPEC,
    terminal_bench.SPEC,
    simpleqa_verified.SPEC,
    arc_agi_2.SPEC,
    tau3.SPEC,
)
