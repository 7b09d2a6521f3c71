"""What the results of a run say beyond the list of targets: benchmarks side by side, judges held against people, spend."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser import service
from tests.browser.service import Api, Stack
from tests.browser.test_pages import AXE, TAGS, violations
from tests.e2e.answering import Answering, answering

Go = Any


class Model(Answering):
    """A subject that is sure of everything, and two judges, of which the second is never against it."""

    def say(self, asked: dict[str, Any]) -> str:
        if not asked["model"].startswith("judge"):
            return "1969, I think" if "Which" in asked["messages"][-1]["content"] else "Nobody knows"
        answer = json.loads(asked["messages"][1]["content"])["candidate_answer"]
        right = asked["model"] == "judge-2" or answer.startswith("1969")
        return json.dumps({"verdict": "correct" if right else "incorrect", "explanation": "compared"})


@pytest.fixture(scope="module")
def judged(stack: Stack) -> str:
    """A run judged by two models, of which people looked at eight answers."""
    with answering(Model) as url:
        names = ("subject", "judge", "judge-2")
        made = {name: {"id": name, "kind": "single", "model": name, "base_url": url} for name in names}
        for name, target in made.items():
            target["prices"] = {name: service.PRICE}
        cases = [asked(number) for number in range(9)] + [service.question(number) for number in range(2)]
        manifest = stack.manifest(cases=cases, name="judged") | {
            "targets": [made["subject"]],
            "auxiliary_targets": {name: made[name] for name in names[1:]},
            "benchmark_options": {"hle": {"judge": "judge", "second_judge": "judge-2"}},
            "profile": "smoke",
        }
        run_id = stack.api.run(manifest)
    labels = [{"case_id": f"hle/{n}", "target_id": "subject", "correct": n % 4 != 0} for n in range(8)]
    stack.api.ask("POST", f"/runs/{run_id}/audits", {"auditor": "Ada <b>Lovelace</b>", "labels": labels})
    return run_id


def asked(number: int) -> dict[str, Any]:
    text = f"{'Which' if number % 3 else 'Who'}? {number}"
    return {
        "id": f"hle/{number}",
        "benchmark": "hle",
        "messages": [{"role": "user", "content": text}],
        "answer": "1969",
    }


def row(table: Any, *texts: str) -> Any:
    found = table.get_by_role("row")
    for text in texts:
        found = found.filter(has_text=text)
    return found


def test_judges_are_held_against_people_and_against_each_other(go: Go, api: Api, judged: str) -> None:
    page = go(f"/runs/{judged}")
    judging = api.get(f"/runs/{judged}/report")["judging"]
    (headline,), (audited,), (agreement,) = judging["headlines"], judging["audited"], judging["agreements"]
    section = page.get_by_role("region", name="How well the judges judge")
    expect(section).to_contain_text(re.compile("Corrected by people.s labels of 8 of 9 judged answers"))
    expect(section).to_contain_text("Ada <b>Lovelace</b>")
    table = section.get_by_role("table", name="Corrected")
    expect(row(table, "All benchmarks")).to_contain_text(f"{100 * headline['corrected_accuracy']:.1f}%")
    expect(row(table, "Macro accuracy")).to_contain_text(f"{100 * headline['corrected_macro_accuracy']:.1f}%")
    expect(row(table, "hle")).to_contain_text(f"{100 * audited['judged_accuracy']:.1f}%")
    expect(row(table, "hle")).to_contain_text(f"{audited['agreed_count']} / 8")
    both = section.get_by_role("table", name="Agreement of two judges")
    expect(row(both, "hle")).to_contain_text(f"{100 * agreement['observed']:.1f}%")
    section.get_by_text("Errors of the judge").click()
    expect(row(section.get_by_role("table", name="Errors of the judge"), "hle")).to_contain_text("%")
    page.evaluate(AXE.read_text())
    assert violations(page, {"runOnly": TAGS}) == []


def test_a_run_that_nobody_judged_says_nothing_of_judges(stack: Stack, go: Go) -> None:
    page = go(f"/runs/{stack.api.run(stack.manifest('compact', name='not judged'))}")
    expect(page.get_by_role("table", name="Tokens and spend")).to_be_visible()
    expect(page.get_by_role("region", name="How well the judges judge")).to_have_count(0)
    expect(page.get_by_text("Only a router chooses between models; this run has none.")).to_be_visible()


def test_what_a_target_and_its_evaluation_cost_stands_apart(go: Go, api: Api, judged: str) -> None:
    page = go(f"/runs/{judged}")
    (target,) = api.get(f"/runs/{judged}/report")["summary"]["targets"]
    assert 0 < target["evaluation_cost_usd"] < target["total_spend_usd"]
    line = row(page.get_by_role("table", name="Tokens and spend"), "subject").get_by_role("cell")
    tokens = target["tokens"]
    expect(line.nth(1)).to_have_text(f"{tokens['input_tokens']:,}")
    expect(line.nth(4)).to_have_text(f"{tokens['output_tokens']:,}")
    money = [float(line.nth(place).inner_text().lstrip("$")) for place in (5, 6, 7)]
    assert money == pytest.approx([target["cost_usd"], target["evaluation_cost_usd"], target["total_spend_usd"]], rel=0.01)


def test_benchmarks_are_held_against_one_of_the_targets(stack: Stack, go: Go, api: Api) -> None:
    cases = service.contest()[:12] + [
        service.question(number, id=f"gpqa-diamond/{number}", benchmark="gpqa-diamond") for number in range(6)
    ]
    run_id = api.run(stack.manifest("compact", "frontier", cases=cases, name="two benchmarks"))
    found = {(line["benchmark"], line["target_id"]): line for line in api.get(f"/runs/{run_id}/report")["benchmarks"]}
    page = go(f"/runs/{run_id}")
    table = page.get_by_role("table", name="By benchmark")
    page.get_by_role("combobox", name="Hold against").click()
    page.get_by_role("option", name="frontier").click()
    for benchmark in ("mmlu-pro", "gpqa-diamond"):
        own, other = found[benchmark, "compact"], found[benchmark, "frontier"]
        delta = 100 * (own["accuracy"] - other["accuracy"])
        sign = "+" if delta > 0 else "\N{MINUS SIGN}" if delta < 0 else ""
        cell = row(table, benchmark).get_by_role("cell").nth(0)
        expect(cell).to_contain_text(f"{own['correct']} / {own['total']}")
        expect(cell).to_contain_text(f"{sign}{abs(delta):.1f} pp")
    page.get_by_text("Cost", exact=True).first.click()
    expect(row(table, "mmlu-pro").get_by_role("cell").nth(0)).to_contain_text("$")
    page.evaluate(AXE.read_text())
    assert violations(page, {"runOnly": TAGS}) == []
    row(table, "gpqa-diamond").get_by_role("link", name=re.compile("^gpqa-diamond on compact: ")).click()
    expect(page.get_by_text("6 rows", exact=False)).to_be_visible()


def test_a_report_page_is_read_with_the_service_and_without_it(go: Go, api: Api, judged: str, tmp_path: Path) -> None:
    page = go(f"/runs/{judged}")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Report page").click()
    paper = opened.value
    expect(paper.get_by_role("heading", name="judged", level=1)).to_be_visible()
    saved = tmp_path / "report.html"
    saved.write_text(paper.content())
    (target,) = api.get(f"/runs/{judged}/report")["summary"]["targets"]
    faults: list[str] = []
    paper.on("console", lambda said: faults.append(said.text))
    paper.on("request", lambda request: faults.append(request.url) if not request.url.startswith("file:") else None)
    for width in (1280, 390):
        paper.set_viewport_size({"width": width, "height": 900})
        paper.evaluate(AXE.read_text())
        assert violations(paper, {"runOnly": TAGS}) == []
        assert paper.evaluate("document.documentElement.scrollWidth") <= width
        # Styles are allowed by their digest alone, in the page as it came and in the saved one.
        assert paper.locator(".scroll").first.evaluate("part => getComputedStyle(part).overflowX") == "auto"
        line = row(paper.get_by_role("table").first, "subject")
        expect(line).to_contain_text(f"{100 * target['accuracy']:.1f} %")
        paper.goto(saved.as_uri())
    assert faults == []
    assert not re.search(r"Which\?|Who\?|1969|127\.0\.0\.1", saved.read_text())
