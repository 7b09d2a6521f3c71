"""The most that a plan can cost, call by call: steps, judges, agents, and what is unknown with its reason."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from planner_doubles import PRICE, Files, Spec, benchmarks, case, manifest, target
from srbench_accounting.reservation import DearestRates, reserve_at
from srbench_grader.grading import Case as GraderCase
from srbench_grader.grading import JudgeCall
from srbench_grader.judge import RESPONSE_FORMATS, judge
from srbench_kit.values import Json
from srbench_planner.benchmark import Harness
from srbench_planner.freeze import Freezer
from srbench_planner.ports import Benchmarks
from srbench_planner.worst_case import Gap, Spend, judge_prompt, prompts_of

OUTPUT = 100
# Picodollars a token: the dearest of the prompt's prices, and the output's.
IN, OUT = 1_500_000, 4_000_000


def registered() -> Benchmarks:
    specs: dict[str, Any] = dict(benchmarks().specs)
    specs["scicode"] = Spec(
        id="scicode", kind="code", weight=0.1, driver="scicode", grader="scicode", requires_answer=False
    )
    for name, roles in (("tau3", ("simulator", "judge")), ("terminal-bench-2.1", ())):
        runner = Harness(runner=name, roles=roles)
        specs[name] = replace(specs[name], driver="harness", grader="harness", harness=runner)
    specs["theirs"] = Spec(id="theirs", weight=0.1, grader="theirs")
    return Benchmarks(specs=specs, built_in=benchmarks().built_in)


def worst(cases: list[dict[str, Any]], *targets: dict[str, Any], **more: Any) -> Spend:
    own = targets or (priced("a"),)
    auxiliary = {name: priced(name) for name in ("j", "k", "s")}
    limits = {"max_output_tokens": OUTPUT, "max_output_chars": 1000, "max_calls_per_case": 40} | more.pop("limits", {})
    given = {"targets": list(own), "auxiliary_targets": auxiliary, "cases": cases, "limits": limits} | more
    return Freezer(registered(), Files()).freeze(manifest(**given), collect=True).worst_case


def priced(name: str, **more: Any) -> dict[str, Any]:
    return target(name, prices={"m": PRICE}, **more)


def steps(count: int) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"Step {number}"} for number in range(count)]
    return case("s1", "scicode", messages=messages, answer=None)


def test_every_step_is_a_call_that_reads_the_answers_before_it() -> None:
    one, three = worst([steps(1)]), worst([steps(3)])
    assert (one.calls, three.calls) == (1, 3)
    assert one.picodollars is not None
    assert three.picodollars is not None
    # Two more answers, and the first one read twice, the second once more: the prompts grow by nothing else but messages.
    grown = sum(prompts_of(steps(3), "scicode")) - 3 * prompts_of(steps(1), "scicode")[0]
    assert three.picodollars == 3 * one.picodollars + (grown + 3 * OUTPUT) * IN


def test_another_model_behind_a_router_may_make_a_token_of_every_byte() -> None:
    router = priced("r", kind="mom", max_inference_calls=1, config_hash="sha256:" + "0" * 64)
    single, routed = worst([steps(2)]), worst([steps(2)], router)
    assert single.picodollars is not None
    assert routed.picodollars is not None
    assert routed.picodollars == single.picodollars + (4 * OUTPUT - OUTPUT) * IN


@pytest.mark.parametrize("calls", [1, 2, 4])
def test_the_worst_case_of_a_router_is_no_less_than_what_the_ledger_reserves(calls: int) -> None:
    router = priced("r", kind="mom", max_inference_calls=calls, config_hash="sha256:" + "0" * 64)
    found = worst([case()], router).picodollars
    body = len(json.dumps({"messages": case()["messages"], "model": "m", "max_tokens": OUTPUT, "temperature": 0}))
    reserved = reserve_at(DearestRates(IN, OUT), body, 1, OUTPUT, calls)
    assert found is not None
    assert reserved <= found < 2 * calls * reserved


def test_both_judges_of_an_answer_are_counted_at_their_own_prices() -> None:
    asked = case("h1", "hle", answer="42")
    alone = worst([case("h1")]).picodollars
    first = worst([asked], benchmark_options={"hle": {"judge": "j"}})
    both = worst([asked], benchmark_options={"hle": {"judge": "j", "second_judge": "k"}})
    assert (first.calls, both.calls) == (2, 3)
    assert alone is not None
    assert first.picodollars is not None
    assert both.picodollars is not None
    once = first.picodollars - alone
    assert both.picodollars - first.picodollars == once
    assert once > judge_prompt(asked, 1000) * IN + OUTPUT * OUT


@pytest.mark.parametrize("shown", ["json_schema", "json_object", "none"])
@pytest.mark.parametrize("answer", ["\x01" * 20_000, "<|" * 20_000, "\N{GRINNING FACE}" * 30_000, "short", '"' * 20_001])
def test_no_judge_is_asked_with_more_than_the_bound(answer: str, shown: str) -> None:
    assert shown in RESPONSE_FORMATS
    question = "Is [/INST] <|this|> \x02 a question?"
    asked = case("h1", "hle", messages=[{"role": "user", "content": question}], answer="<s>[INST] yes")
    options: dict[str, Json] = {"judge": "j", "judge_response_format": shown}
    graded = judge(answer, GraderCase(question=question, answer="<s>[INST] yes", options=options))
    call = graded.judge_call
    assert isinstance(call, JudgeCall)
    content = sum(len(text.encode()) for _, text in call.messages) + len(json.dumps(call.request_fields).encode())
    assert content <= judge_prompt(asked, 131_072) - 256 - 128


def test_an_agent_may_make_all_its_calls_with_a_full_window_in_its_dearest_role() -> None:
    window = {"m": {"context_window": 8000, "max_output_tokens": 1000}}
    dear = priced("s", native_limits=window) | {"prices": {"m": PRICE | {"output": 40}}}
    found = worst(
        [case("t1", "tau3", messages=[], answer=None)],
        priced("a", native_limits=window),
        auxiliary_targets={"s": dear, "j": priced("j", native_limits=window)},
        benchmark_options={"tau3": {"simulator": "s", "judge": "j"}},
    )
    assert found == Spend(40 * (8000 * IN + OUTPUT * 10 * OUT), 40)


def test_an_agent_without_a_registered_window_has_no_worst_case_and_says_why() -> None:
    found = worst([case("t1", "terminal-bench-2.1", messages=[], answer=None), case("q1")])
    assert found.picodollars is None
    assert found.calls == 41
    assert [(gap.reason, gap.benchmark, gap.target_id) for gap in found.gaps] == [
        ("AGENT_PROMPT_UNBOUNDED", "terminal-bench-2.1", "a")
    ]


def test_what_has_no_price_is_named_once_also_when_it_is_a_judge() -> None:
    found = worst(
        [case("h1", "hle", answer="42"), case("h2", "hle", answer="43")],
        priced("a"),
        target("b"),
        auxiliary_targets={"j": target("j")},
        benchmark_options={"hle": {"judge": "j"}},
    )
    assert found.picodollars is None
    assert [(gap.reason, gap.target_id) for gap in found.gaps] == [("NO_PRICES", "b"), ("NO_PRICES", "j")]


def test_a_judge_that_is_not_named_and_a_strange_grader_with_one_are_unknown() -> None:
    unnamed = worst([case("h1", "hle", answer="42")])
    strange = worst([case("x1", "theirs")], benchmark_options={"theirs": {"judge": "j"}})
    assert [gap.reason for gap in unnamed.gaps] == ["JUDGE_NOT_NAMED"]
    assert [gap.reason for gap in strange.gaps] == ["GRADER_UNKNOWN"]
    # It can ask nobody where the options name nobody.
    assert worst([case("x1", "theirs")]).gaps == ()


def test_a_registered_window_bounds_what_a_call_reads() -> None:
    tiny = priced("a", native_limits={"m": {"context_window": 10, "max_output_tokens": 5}})
    assert worst([case()], tiny).picodollars == 10 * IN + OUTPUT * OUT


def test_a_preview_costs_nothing() -> None:
    router = target("r", kind="mom", preview_url="http://127.0.0.1:1/p", config_hash="sha256:" + "0" * 64)
    assert worst([case()], router, mode="preview") == Spend(0, 0)


def test_gaps_are_told_apart_by_what_they_concern() -> None:
    assert Gap(reason="NO_PRICES", target_id="a", message="x") < Gap(reason="NO_PRICES", target_id="b", message="x")
