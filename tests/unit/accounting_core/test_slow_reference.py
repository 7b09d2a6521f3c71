"""An independent, slow, plain-Python reading of the protocol's formulas, that makes and checks the goldens kept here.

`python test_slow_reference.py` writes the goldens again. Nothing of the product is imported.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

Row = dict[str, Any]
HERE = Path(__file__).parent
WEIGHTS = {
    "mmlu-pro": 0.10,
    "gpqa-diamond": 0.15,
    "hle": 0.15,
    "livecodebench": 0.10,
    "scicode": 0.10,
    "terminal-bench-2.1": 0.10,
    "simpleqa-verified": 0.10,
    "arc-agi-2": 0.10,
    "tau3": 0.10,
}
PRICES = {
    "north": {"input": 2.0, "cached_input": 0.2, "cache_write": 2.5, "output": 8.0},
    "south": {"input": 0.3, "cached_input": 0.03, "cache_write": 0.3, "output": 1.2},
}
BUCKETS = (
    ("input_tokens", "input"),
    ("cached_input_tokens", "cached_input"),
    ("cache_write_tokens", "cache_write"),
    ("output_tokens", "output"),
)


def money(call: Row, prices: dict[str, Row]) -> Decimal | None:
    price, usage = prices[call["selected_model"] or call["model"]], call["usage"]
    if usage is None:
        return None
    return sum((usage[bucket] * Decimal(str(price[rate])) for bucket, rate in BUCKETS), Decimal(0)) / 10**6


def neutral(call: Row, prices: dict[str, Row]) -> Decimal | None:
    price, usage = prices[call["selected_model"] or call["model"]], call["usage"]
    if usage is None:
        return None
    prompt = sum(usage[bucket] for bucket, _ in BUCKETS[:3])
    return (prompt * Decimal(str(price["input"])) + usage["output_tokens"] * Decimal(str(price["output"]))) / 10**6


def total(values: list[Decimal | int | None]) -> float | int | None:
    return None if any(value is None for value in values) else float(sum(value for value in values if value is not None))


def quantile(values: list[float], share: float) -> float | None:
    ordered = sorted(values)
    if len(ordered) < 2:
        return ordered[0] if ordered else None
    position = (len(ordered) - 1) * share
    low = math.floor(position)
    high = math.ceil(position)
    return ordered[low] * (1 - (position - low)) + ordered[high] * (position - low)


def wilson(right: int, count: int) -> list[float]:
    """The two roots of (p - p0)² = z²·p0·(1 - p0)/n, by bisection instead of the formula."""
    z, share = statistics.NormalDist().inv_cdf(0.975), right / count

    def inside(chance: float) -> bool:
        return (share - chance) ** 2 <= z * z * chance * (1 - chance) / count

    def edge(good: float, bad: float) -> float:
        for _ in range(200):
            middle = (good + bad) / 2
            good, bad = (middle, bad) if inside(middle) else (good, middle)
        return good

    return [edge(share, 0.0) if right else 0.0, edge(share, 1.0) if right < count else 1.0]


def slow_continuity(rows: list[Row], calls: list[Row]) -> Row:
    tasks, inferences = [], 0
    for row in rows:
        own = [call for call in calls if call["case_id"] == row["case_id"]]
        if len(own) < 2:
            continue
        if any((call["inference_call_count"] or 0) > 1 for call in own):
            inferences += 1
            continue
        seen = [call["selected_model"] or (call["model"] if call["status"] == "completed" else None) for call in own]
        models = [model for model in seen if model]
        switches = sum(a != b for a, b in itertools.pairwise(models))
        decisions = {call["decision"] for call in own if call["decision"]}
        right = row["status"] == "completed" and row["correct"] is True
        tasks.append((switches, right, len(seen) - len(models), len(decisions) > 1))
    switched, unswitched = [t[1] for t in tasks if t[0]], [t[1] for t in tasks if not t[0]]
    return {
        "multi_inference_tasks": inferences,
        "multi_request_tasks": len(tasks),
        "unknown_model_requests": sum(t[2] for t in tasks),
        "switched_tasks": len(switched),
        "switched_accuracy": statistics.mean(switched) if switched else None,
        "unswitched_tasks": len(unswitched),
        "unswitched_accuracy": statistics.mean(unswitched) if unswitched else None,
        "model_switches": sum(t[0] for t in tasks),
        "mean_switches_per_task": statistics.mean(t[0] for t in tasks) if tasks else None,
        "max_switches_per_task": max((t[0] for t in tasks), default=None),
        "decision_changed_tasks": sum(t[3] for t in tasks),
    }


def counted(values: list[str | None]) -> dict[str, int]:
    return {value: values.count(value) for value in set(values) if value is not None}


def slow_metrics(evaluation: Row, side: str, target: str, benchmark: str | None) -> Row:
    prices = evaluation["prices"]
    cases = [case for case in evaluation["case_order"] if benchmark in (None, case.split("/")[0])]
    rows = [row for row in evaluation[side]["results"] if row["target_id"] == target and row["case_id"] in cases]
    every = [call for call in evaluation[side]["calls"] if call["target_id"] == target and call["case_id"] in cases]
    calls = [call for call in every if call["role"] == "subject"]
    done = [row for row in rows if row["status"] == "completed"]
    right = sum(row["correct"] is True for row in done)
    covered = {call["case_id"] for call in calls} == set(cases)
    costs, all_costs = [money(call, prices) for call in calls], [money(call, prices) for call in every]
    times = []
    for row in done:
        own = [call["latency_s"] for call in calls if call["case_id"] == row["case_id"]]
        times.append(sum(own) if own else row["latency_s"])
    usages = [call["usage"] for call in calls]
    cost = total(costs) if covered else None
    firsts = [call["ttft_s"] for call in calls if call["ttft_s"] is not None]
    finish = [call["finish_reason"] for call in calls]
    observed = [call["selected_model"] or (call["model"] if call["status"] == "completed" else None) for call in calls]
    checked = [row["strict_format"] for row in rows if row.get("strict_format") is not None]
    return {
        "id": target,
        "total": len(cases),
        "completed": len(done),
        "failed": len(rows) - len(done),
        "pending": len(cases) - len(rows),
        "scored": sum(isinstance(row["correct"], bool) for row in done),
        "correct": right,
        "accuracy": right / len(cases),
        "accuracy_ci95": wilson(right, len(cases)),
        "complete": len(done) == len(cases) == sum(isinstance(row["correct"], bool) for row in done),
        "cost_usd": cost,
        "known_cost_usd": float(sum(value for value in costs if value is not None)),
        "cost_complete": cost is not None,
        "cache_neutral_cost_usd": total([neutral(call, prices) for call in calls]) if covered else None,
        "evaluation_cost_usd": total([money(call, prices) for call in every if call["role"] != "subject"]),
        "total_spend_usd": total(all_costs) if covered else None,
        "tokens": {bucket: sum(usage[bucket] for usage in usages) for bucket, _ in BUCKETS}
        if covered and None not in usages
        else None,
        "call_count": total([call["inference_call_count"] for call in calls]) if covered else None,
        "request_count": len(calls),
        "evaluation_call_count": len(every) - len(calls),
        "selected_models": counted(observed),
        "decisions": counted([call["decision"] for call in calls]),
        "continuity": slow_continuity(rows, calls),
        "output_diagnostics": {
            "planned_cases": len(cases),
            "result_cases": len(rows),
            "output_limit_cases": sum(bool(row.get("output_limit")) for row in rows),
            "strict_format": {
                "checked_cases": len(checked),
                "failed_cases": checked.count(False),
                "unassessed_cases": len(cases) - len(checked),
            },
            "subject_calls": {
                "finish_reasons": counted(finish),
                "total": len(calls),
                "unknown_finish_reason": finish.count(None),
            },
        },
        "queue_wait_p50_s": quantile([row["queue_wait_s"] for row in rows if "queue_wait_s" in row], 0.5),
        "queue_wait_p95_s": quantile([row["queue_wait_s"] for row in rows if "queue_wait_s" in row], 0.95),
        "case_wall_time_p50_s": quantile([row["latency_s"] for row in done], 0.5),
        "latency_p50_s": quantile(times, 0.5),
        "latency_p95_s": quantile(times, 0.95),
        "ttft_p50_s": quantile(firsts, 0.5),
        "request_time_sum_s": math.fsum(call["latency_s"] for call in calls),
    }


def slow_report(evaluation: Row, side: str) -> Row:
    targets, rows = [], []
    for target in [one["id"] for one in evaluation[side]["targets"]]:
        own = [
            {**slow_metrics(evaluation, side, target, name), "benchmark": name, "target_id": target}
            for name in sorted(evaluation["benchmarks"])
        ]
        weights = [Fraction(str(evaluation["weights"][row["benchmark"]])) for row in own]
        macro = sum(w * Fraction(r["correct"], r["total"]) for w, r in zip(weights, own, strict=True)) / sum(weights)
        targets.append(
            {**slow_metrics(evaluation, side, target, None), "macro_accuracy": float(macro), "sr_bench_score": None}
        )
        rows.extend(own)
    spends = [row["total_spend_usd"] for row in targets]
    failed = sorted(
        (r["case_id"], r["target_id"], r["error"]) for r in evaluation[side]["results"] if r["status"] == "failed"
    )
    failure = None
    if failed:
        case, target, reason = failed[0]
        failure = {"case_id": case, "target_id": target, "reason": reason, "inferred_from_saved_results": True}
    return {
        "status": "failed" if failed else "completed",
        "mode": "live",
        "cost_policy": "require_priced",
        "failure": failure,
        "summary": {"targets": targets, "total_spend_usd": None if None in spends else math.fsum(spends)},
        "benchmarks": rows,
    }


def saving(base: float | None, mine: float | None, eligible: bool) -> float | None:
    return (1 - mine / base) * 100 if eligible and base and mine is not None else None


def slow_bootstrap(by_benchmark: dict[str, list[int]], weights: dict[str, Fraction]) -> list[float]:
    source, means = random.Random(20260918), []
    for _ in range(2000):
        drawn = {name: source.choices(values, k=len(values)) for name, values in sorted(by_benchmark.items())}
        means.append(sum(float(weights[name]) * (sum(values) / len(values)) for name, values in drawn.items()))
    means.sort()
    return [means[49], means[1949]]


def right_cases(evaluation: Row, side: str, target: str) -> set[str]:
    rows = evaluation[side]["results"]
    return {row["case_id"] for row in rows if row["target_id"] == target and row.get("correct") is True}


def slow_compare(evaluation: Row) -> Row:
    baseline, candidate = evaluation["baseline"]["report"], evaluation["candidate"]["report"]
    names = sorted(evaluation["benchmarks"])
    raw = {name: Fraction(str(evaluation["weights"][name])) for name in names}
    weights = {name: raw[name] / sum(raw.values()) for name in names}
    singles = [one["id"] for one in evaluation["baseline"]["targets"] if one["kind"] == "single"]
    quality = {
        target: sum(
            weights[name]
            * Fraction(
                sum(case.startswith(f"{name}/") for case in right_cases(evaluation, "baseline", target)),
                sum(case.startswith(f"{name}/") for case in evaluation["case_order"]),
            )
            for name in names
        )
        for target in singles
    }
    tied = [target for target in singles if quality[target] == max(quality.values())]
    rows = {row["id"]: row for row in baseline["summary"]["targets"]}
    spend = {target: rows[target]["total_spend_usd"] for target in tied}
    best = sorted(tied, key=lambda t: (spend[t] is None, spend[t] or 0, t))[0]
    eligible = None not in spend.values()
    base_right = right_cases(evaluation, "baseline", best)
    comparisons = []
    for row in candidate["summary"]["targets"]:
        mine = right_cases(evaluation, "candidate", row["id"])
        paired = {
            name: [
                (case in mine) - (case in base_right) for case in evaluation["case_order"] if case.startswith(f"{name}/")
            ]
            for name in names
        }
        flat = [value for values in paired.values() for value in values]
        delta = float(sum(weights[name] * Fraction(sum(values), len(values)) for name, values in paired.items()))
        radius = math.sqrt(2 * math.log(40) * sum(float(weights[name]) ** 2 / len(paired[name]) for name in names))
        base = rows[best]
        comparisons.append(
            {
                "baseline_target_id": best,
                "candidate_target_id": row["id"],
                "paired_cases": len(flat),
                "quality_delta": delta,
                "micro_quality_delta": statistics.mean(flat),
                "quality_delta_ci95": [max(-1.0, delta - radius), min(1.0, delta + radius)],
                "quality_delta_bootstrap_ci95": slow_bootstrap(paired, weights),
                "wins": flat.count(1),
                "losses": flat.count(-1),
                "ties": flat.count(0),
                "baseline_subject_cost_usd": base["cost_usd"],
                "candidate_subject_cost_usd": row["cost_usd"],
                "subject_cost_saving_percent": saving(base["cost_usd"], row["cost_usd"], eligible),
                "baseline_total_cost_usd": base["total_spend_usd"],
                "candidate_total_cost_usd": row["total_spend_usd"],
                "total_cost_saving_percent": saving(base["total_spend_usd"], row["total_spend_usd"], eligible),
                "cache_neutral_cost_saving_percent": saving(
                    base["cache_neutral_cost_usd"], row["cache_neutral_cost_usd"], eligible
                ),
            }
        )
    return {
        "baseline_selected_target_id": best,
        "baseline_tied_best_target_ids": sorted(tied),
        "baseline_cost_comparison_eligible": eligible,
        "comparisons": comparisons,
    }


def made_up_side(source: random.Random, cases: list[str], targets: list[Row], fault: str) -> Row:
    calls: list[Row] = []
    results: list[Row] = []
    for case in cases:
        for target in targets:
            model = target["model"] if target["kind"] == "single" else source.choice(sorted(PRICES))
            count = 2 if fault == "several" and source.random() < 0.5 else 1
            failed = fault == "several" and source.random() < 0.15
            own = []
            for _ in range(count):
                model = source.choice(sorted(PRICES)) if target["kind"] == "mom" else model
                usage = {bucket: source.randrange(0, 900) for bucket, _ in BUCKETS}
                own.append(
                    {
                        "case_id": case,
                        "target_id": target["id"],
                        "role": "subject",
                        "status": "failed" if failed else "completed",
                        "model": model,
                        "selected_model": model if target["kind"] == "mom" and source.random() < 0.9 else None,
                        "decision": source.choice(["easy", "hard", None]) if target["kind"] == "mom" else None,
                        "finish_reason": None if failed else source.choice(["stop", "length"]),
                        "inference_call_count": source.choice([1, 1, 1, 1, 2]) if target["kind"] == "mom" else 1,
                        "latency_s": round(source.uniform(0.2, 6), 6),
                        "ttft_s": None if failed else round(source.uniform(0.05, 0.4), 6),
                        "usage": None if fault == "silent" and source.random() < 0.04 else usage,
                    }
                )
            if fault == "several" and source.random() < 0.3:
                usage = {bucket: source.randrange(0, 200) for bucket, _ in BUCKETS}
                judge = {**own[0], "role": "judge", "model": "south", "selected_model": None, "usage": usage}
                own.append({**judge, "decision": None, "status": "completed"})
            calls.extend(own)
            row = {"case_id": case, "target_id": target["id"], "benchmark": case.split("/")[0]}
            row |= {"latency_s": round(source.uniform(6, 12), 6), "queue_wait_s": round(source.uniform(0, 3), 6)}
            if failed:
                row |= {"status": "failed", "error": source.choice(["stream_cut", "http_error"])}
            else:
                right = source.random() < 0.6
                row |= {"status": "completed", "correct": right, "strict_format": source.choice([True, False, None])}
                row |= {"output_limit": not right and source.random() < 0.2}
            results.append(row)
    return {"calls": calls, "results": results, "targets": targets}


def made_up(scenario: str, seed: int) -> Row:
    source = random.Random(seed)
    sizes = {"mmlu-pro": 9, "gpqa-diamond": 5, "arc-agi-2": 3}
    cases = [f"{name}/{index:03}" for name, size in sizes.items() for index in range(size)]
    singles = [{"id": name[0], "kind": "single", "model": name} for name in sorted(PRICES)]
    routers = [{"id": f"router-{index}", "kind": "mom", "model": "auto"} for index in (1, 2)]
    evaluation: Row = {
        "scenario": scenario,
        "case_order": cases,
        "benchmarks": sizes,
        "weights": WEIGHTS,
        "prices": PRICES,
        "baseline": made_up_side(source, cases, singles, scenario),
        "candidate": made_up_side(source, cases, routers, scenario),
    }
    for side in ("baseline", "candidate"):
        evaluation[side]["report"] = slow_report(evaluation, side)
    evaluation["compare"] = slow_compare(evaluation)
    return evaluation


SCENARIOS = {"plain": 11, "several": 12, "silent": 15}


def test_the_slow_reading_still_makes_the_goldens_that_are_kept() -> None:
    for scenario, seed in SCENARIOS.items():
        kept = json.loads((HERE / "goldens" / f"{scenario}.json").read_text())
        assert json.loads(json.dumps(made_up(scenario, seed))) == kept


def test_the_slow_reading_agrees_with_the_released_service(shared: Path | None) -> None:
    kept = [HERE / "goldens" / "plain.json"]
    for path in sorted((shared / "goldens").glob("*.json")) if shared else kept:
        golden = json.loads(path.read_text())
        for side in ("baseline", "candidate"):
            for row, expected in zip(
                slow_report(golden, side)["summary"]["targets"], golden[side]["report"]["summary"]["targets"], strict=True
            ):
                for name in ("accuracy", "macro_accuracy", "latency_p95_s", "cost_usd", "cache_neutral_cost_usd"):
                    assert row[name] == expected[name] or math.isclose(row[name], expected[name], rel_tol=1e-9), name
                assert all(
                    math.isclose(a, b, abs_tol=1e-9)
                    for a, b in zip(row["accuracy_ci95"], expected["accuracy_ci95"], strict=True)
                )
                assert row["continuity"] == expected["continuity"]


if __name__ == "__main__":
    for scenario, seed in SCENARIOS.items():
        (HERE / "goldens" / f"{scenario}.json").write_text(json.dumps(made_up(scenario, seed), indent=1) + "\n")
