"""Evaluations as plain rows, and the plans and facts that they are made of."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import zstandard
from google.protobuf.timestamp_pb2 import Timestamp
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import (
    plan_pb2,
    target_pb2,
)
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_kit.canonical import digest
from srbench_kit.values import to_value

PRICES = {
    "north": {"input": 2.0, "cached_input": 0.2, "cache_write": 2.5, "output": 8.0},
    "south": {"input": 0.3, "cached_input": 0.03, "cache_write": 0.3, "output": 1.2},
}
STATES = {
    "completed": queue_pb.CELL_STATE_DONE,
    "failed": queue_pb.CELL_STATE_FAILED,
    "cancelled": queue_pb.CELL_STATE_CANCELLED,
    "sent_unknown": queue_pb.CELL_STATE_INTERRUPTED,
}
CREATED = 1_700_000_000
DIGEST = hashlib.sha256(b"request").hexdigest()


def picodollars(usd: float) -> int:
    return int(Decimal(str(usd)) * 10**6)


def target(spec: dict[str, Any], prices: dict[str, Any]) -> target_pb2.Target:
    router = spec["kind"] == "mom"
    message = target_pb2.Target(
        id=spec["id"],
        kind=target_pb2.TARGET_KIND_MOM if router else target_pb2.TARGET_KIND_SINGLE,
        model=spec["model"],
        config_hash="c" * 64 if router else "",
    )
    if router:
        message.max_inference_calls = 8
    for model, rates in prices.items():
        for name, usd in rates.items():
            setattr(message.prices[model], f"{name}_picodollars", picodollars(usd))
    message.request_params.CopyFrom(to_value(spec.get("request_params", {})))
    return message


def case_content(case_id: str, *, split: str = "dev") -> dict[str, Any]:
    return {
        "id": case_id,
        "benchmark": case_id.split("/")[0],
        "messages": [{"role": "user", "content": f"Question {case_id}?"}],
        "answer": "A",
        "metadata": {"split": split, "stratum": "algebra"},
    }


@dataclass
class Evaluation:
    """One run to be made: its targets, cases, outcomes and calls, in the form of the goldens.

    Attributes:
        results, calls: rows with `case_id` and `target_id`; see `outcome_fact` and `call_facts`.
        plan: changes of the plan's fields.
        run: changes of the run's fields.
    """

    run_id: str
    targets: list[dict[str, Any]]
    cases: list[str]
    results: list[dict[str, Any]]
    calls: list[dict[str, Any]]
    prices: dict[str, Any] = field(default_factory=lambda: dict(PRICES))
    weights: dict[str, float] = field(default_factory=dict)
    contents: list[dict[str, Any]] | None = None
    plan: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    grader: str = "choice"

    def content(self) -> list[dict[str, Any]]:
        return self.contents or [case_content(case) for case in self.cases]

    def planner_run(self) -> planner_pb.Run:
        content = self.content()
        benchmarks = {case.split("/")[0] for case in self.cases}
        values: dict[str, Any] = {
            "plan_sha256": hashlib.sha256(self.run_id.encode()).hexdigest(),
            "case_sha256": digest(list(content)),
            "version": "sr-bench-1.0",
            "name": f"run {self.run_id}",
            "mode": "live",
            "profile": "quick",
            "cost_policy": "require_priced",
            "output_policy": "bounded",
            "limits": plan_pb2.Limits(
                concurrency=4,
                max_cost_picodollars=5 * 10**12,
                max_calls_per_case=32,
                max_output_tokens=4096,
                total_timeout_s=180,
            ),
            "sampling": to_value({"temperature": 0}),
            "targets": [target(spec, self.prices) for spec in self.targets],
            "auxiliary_targets": [target({"id": "judge", "kind": "single", "model": "north"}, self.prices)],
            "benchmark_weights": self.weights or dict.fromkeys(benchmarks, 1.0),
            "adapter_versions": dict.fromkeys(benchmarks, "v1"),
            "total": len(self.cases) * len(self.targets),
            "case_count": len(self.cases),
        }
        made = {
            "id": self.run_id,
            "owner": "local",
            "status": "completed",
            "create_time": Timestamp(seconds=CREATED),
            "update_time": Timestamp(seconds=CREATED + 60),
            **self.run,
        }
        run = planner_pb.Run(plan=plan_pb2.Plan(**(values | self.plan)), **made)
        run.progress.total = run.plan.total
        run.progress.completed = sum(row["status"] == "completed" for row in self.results)
        run.progress.failed = len(self.results) - run.progress.completed
        return run

    def facts(self) -> list[pb.Fact]:
        """Dispatches, settlements and outcomes."""
        places = {case: index for index, case in enumerate(self.cases)}
        order = {spec["id"]: index for index, spec in enumerate(self.targets)}
        routers = {spec["id"] for spec in self.targets if spec["kind"] == "mom"}
        ordinals: dict[tuple[int, int], int] = {}
        found: list[pb.Fact] = []
        for call in self.calls:
            at = places[call["case_id"]], order[call["target_id"]]
            ordinal = ordinals[at] = ordinals.get(at, -1) + 1
            key = pb.CallKey(run_id=self.run_id, cell=at[0] * len(order) + at[1], ordinal=ordinal)
            found += call_facts(call, key, at, router=call["target_id"] in routers)
        for row in self.results:
            at = places[row["case_id"]], order[row["target_id"]]
            found.append(pb.Fact(outcome=outcome_fact(row, self.run_id, at, at[0] * len(order) + at[1])))
        for sequence, fact in enumerate(found, start=1):
            fact.sequence = sequence
        return found


def usage_json(usage: dict[str, int] | None) -> dict[str, Any] | None:
    """A provider's usage object that reads as these four buckets."""
    if usage is None:
        return None
    fresh, cached, write = (usage[name] for name in ("input_tokens", "cached_input_tokens", "cache_write_tokens"))
    return {
        "prompt_tokens": fresh + cached + write,
        "completion_tokens": usage["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": cached, "cache_creation_tokens": write},
    }


def split_usage(usage: dict[str, int], count: int) -> list[dict[str, Any]]:
    """The same usage as that of `count` calls together."""
    parts = [{name: value // count for name, value in usage.items()} for _ in range(count)]
    for name, value in usage.items():
        parts[0][name] += value - sum(part[name] for part in parts)
    return [usage_json(part) or {} for part in parts]


def stream_of(text: str, model: str, usage: dict[str, Any] | None, finish: str = "stop") -> bytes:
    """A whole streamed answer."""
    events = [
        {"model": model, "choices": [{"index": 0, "delta": {"content": text}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        *([{"choices": [], "usage": usage}] if usage is not None else []),
    ]
    return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events) + b"data: [DONE]\n\n"


def call_facts(call: dict[str, Any], key: pb.CallKey, at: tuple[int, int], *, router: bool) -> list[pb.Fact]:
    """A call's dispatch and, unless it is still `sent`, its evidence (where it has a `final`) and its settlement."""
    start = Timestamp(seconds=CREATED + 1)
    role = call.get("role", "subject")
    dispatch = pb.Dispatch(
        key=key,
        token=1,
        case_index=at[0],
        target_index=at[1],
        role=pb.CallRole.Value(f"CALL_ROLE_{role.upper()}"),
        auxiliary_target_id="" if role == "subject" else "judge",
        request_sha256=DIGEST,
        request_byte_count=2000,
        message_count=1,
        max_output_tokens=4096,
        dispatch_time=start,
        executor_id="e1",
    )
    if call["status"] == "sent":
        return [pb.Fact(dispatch=dispatch)]
    usage = call["usage"]
    raw = usage_json(usage)
    receipt = pb.Receipt(
        status=pb.CallStatus.Value(f"CALL_STATUS_{call['status'].upper()}"),
        http_status=200,
        finish_reason=call.get("finish_reason") or "",
        output_complete=True,
        response_model=call["model"],
        usage_json=json.dumps(raw).encode() if raw is not None else b"",
        usage_final=True,
        selected_model=call.get("selected_model") or "",
        decision=call.get("decision") or "",
        start_time=start,
        content_chars=1,
    )
    if call.get("latency_s") is not None:
        receipt.latency_ns = round(call["latency_s"] * 1e9)
    if call.get("ttft_s") is not None:
        receipt.ttft_ns = round(call["ttft_s"] * 1e9)
    count = call.get("inference_call_count", 1)
    headers = [("content-type", "text/event-stream")]
    if router and role == "subject":
        receipt.inference_call_count = count
        if receipt.selected_model:
            headers.append(("x-vsr-selected-model", receipt.selected_model))
        headers.append(("x-vsr-inference-call-count", str(count)))
        if usage is not None and (count > 1 or not receipt.selected_model):
            model = call.get("selected_model") or call["model"]
            children = [{"model": model, "usage": part} for part in split_usage(usage, count)]
            receipt.router_receipt_json = json.dumps({"version": 1, "complete": True, "calls": children}).encode()
            headers.append(("x-vsr-model-usage", receipt.router_receipt_json.decode()))
    if "receipt" in call:
        receipt.MergeFrom(call["receipt"])
    settle = pb.Settle(key=key, receipt=receipt)
    facts = [pb.Fact(dispatch=dispatch)]
    if "final" in call:
        body = call.get("body") or stream_of(call["final"], call["model"], raw, receipt.finish_reason)
        evidence = pb.Evidence(http_status=200, body=body, clean_end=call.get("clean_end", True))
        for name, value in headers:
            evidence.headers.add(name=name, value=value)
        data = zstandard.compress(evidence.SerializeToString())
        facts.append(pb.Fact(evidence=pb.EvidenceChunk(key=key, data=data)))
        settle.evidence_sha256, settle.evidence_byte_count = hashlib.sha256(data).hexdigest(), len(data)
    return [*facts, pb.Fact(settle=settle)]


def outcome_fact(row: dict[str, Any], run_id: str, at: tuple[int, int], cell: int) -> pb.CellOutcome:
    wait = row.get("queue_wait_s") or 0.0
    start, made = Timestamp(), Timestamp()
    start.FromMicroseconds(round((CREATED + wait) * 1e6))
    made.FromMicroseconds(start.ToMicroseconds() + round(row["latency_s"] * 1e6))
    outcome = pb.CellOutcome(
        run_id=run_id,
        cell=cell,
        token=1,
        case_index=at[0],
        target_index=at[1],
        state=STATES[row["status"]],
        reason="" if row["status"] == "completed" else row.get("error") or "http_error",
        correct=row.get("correct"),
        score=None if row.get("correct") is None else float(row["correct"]),
        answer=to_value(row.get("answer")),
        answer_status="parsed" if row["status"] == "completed" else "",
        strict_format=row.get("strict_format"),
        grader_version="grader-v1" if row["status"] == "completed" else "",
        output_limit=bool(row.get("output_limit")),
        start_time=start,
        finish_time=made,
    )
    return outcome


SINGLES = [{"id": "n", "kind": "single", "model": "north"}, {"id": "s", "kind": "single", "model": "south"}]
ROUTER = [{"id": "r", "kind": "mom", "model": "auto"}]
USAGE = {"input_tokens": 100, "cached_input_tokens": 20, "cache_write_tokens": 10, "output_tokens": 50}


@dataclass
class Maker:
    """Makes small evaluations of four questions: who has which right, and what is otherwise."""

    cases: tuple[str, ...] = ("mmlu-pro/0", "mmlu-pro/1", "mmlu-pro/2", "mmlu-pro/3")

    def evaluation(
        self, run_id: str, right: dict[str, str], targets: list[dict[str, Any]] | None = None, **changes: Any
    ) -> Evaluation:
        """`right` maps target ids to one character a case: `1` right, `0` wrong, `f` failed, `-` no outcome."""
        specs = targets or (SINGLES if "n" in right else ROUTER)
        cases = list(changes.pop("cases", self.cases))
        results, calls = [], []
        for index, case in enumerate(cases):
            for spec in specs:
                mark = right[spec["id"]][index]
                if mark == "-":
                    continue
                results.append(self._result(case, spec, mark))
                calls.append(self._call(case, spec, mark, index))
        return Evaluation(run_id, specs, cases, results, calls, **changes)

    @staticmethod
    def _result(case: str, spec: dict[str, Any], mark: str) -> dict[str, Any]:
        row = {"case_id": case, "target_id": spec["id"], "latency_s": 1.5}
        if mark == "f":
            return {**row, "status": "failed", "error": "http_error"}
        return {**row, "status": "completed", "correct": mark == "1", "answer": "A" if mark == "1" else "B"}

    @staticmethod
    def _call(case: str, spec: dict[str, Any], mark: str, index: int) -> dict[str, Any]:
        router = spec["kind"] == "mom"
        model = ("north", "south")[index % 2] if router else spec["model"]
        call = {
            "case_id": case,
            "target_id": spec["id"],
            "status": "failed" if mark == "f" else "completed",
            "model": model,
            "finish_reason": "stop",
            "usage": None if mark == "f" else dict(USAGE),
            "latency_s": 1.0 + index,
            "selected_model": model if router else None,
            "decision": ("hard", "easy")[index % 2] if router else None,
        }
        return call if mark == "f" else {**call, "final": f"Answer: {'A' if mark == '1' else 'B'}"}
