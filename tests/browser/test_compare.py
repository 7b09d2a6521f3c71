"""Iterations held against a baseline: verdicts in words, questions side by side, plans, exports, offline estimates."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet
import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser import service
from tests.browser.service import Api, Stack

Go = Any


@pytest.fixture(scope="module")
def runs(stack: Stack) -> dict[str, str]:
    """A baseline of both models, one of the weak model alone, two routers, and a fitting preview."""

    def run(*targets: str, **more: Any) -> str:
        return stack.api.run(stack.manifest(*targets, cases=service.contest(), **more))

    return {
        "both": run("compact", "frontier", name="both models"),
        "weak": run("compact", name="the weak model"),
        "plain": run("plain", name="plain router"),
        "captured": run("captured", name="captured router"),
        "preview": run("plain", mode="preview", name="plain preview"),
    }


def compared(go: Go, baseline: str, *candidates: str, **more: str) -> Page:
    rest = "".join(f"&{key}={value}" for key, value in more.items())
    page: Page = go(f"/compare?baseline={baseline}&candidate={quote(json.dumps(candidates))}{rest}")
    expect(page.get_by_role("heading", name="Verdicts")).to_be_visible()
    return page


def report(api: Api, baseline: str, *candidates: str) -> dict[str, Any]:
    body = {"baseline_run_id": baseline, "candidate_run_ids": list(candidates)}
    found: dict[str, Any] = api.ask("POST", "/comparisons", body)
    return found


def test_the_choice_is_made_on_the_page_and_lives_in_the_address(go: Go, runs: dict[str, str]) -> None:
    page = go("/compare")
    page.get_by_role("combobox", name="Reference run").fill("both models")
    page.get_by_role("option", name="both models").first.click()
    page.get_by_role("checkbox", name="plain router").check()
    page.get_by_role("checkbox", name="captured router").check()
    page.get_by_role("button", name="Compare 2 runs").click()
    expect(page).to_have_url(re.compile(f"baseline={runs['both']}"))
    expect(page.locator("[data-verdict]")).to_have_count(2)
    page.get_by_role("checkbox", name="captured router").uncheck()
    expect(page.get_by_role("heading", name="Verdicts")).to_have_count(0)
    page.reload()
    expect(page.locator("[data-verdict]")).to_have_count(2)


def test_the_verdict_is_a_plain_sentence_and_an_interval_that_spans_zero_is_no_gain(
    go: Go, api: Api, runs: dict[str, str]
) -> None:
    (better,) = report(api, runs["weak"], runs["plain"])["comparisons"]
    (other,) = report(api, runs["both"], runs["plain"])["comparisons"]
    assert better["verdict"] == "better"
    for row, baseline in ((better, runs["weak"]), (other, runs["both"])):
        singles = {single["target_id"]: single["interval"] for single in row["band"]["singles"]}
        low, high = singles[row["baseline_target_id"]]
        page = compared(go, baseline, runs["plain"])
        card = page.locator("[data-verdict]")
        expect(card).to_contain_text(row["verdict_sentence"])
        word = "better" if low > 0 else "worse" if high < 0 else "not established"
        expect(card.locator(".status-pill")).to_have_text(re.compile(word, re.IGNORECASE))
        expect(card).to_contain_text(f"{row['wins']} / {row['losses']} / {row['ties']}")


def test_a_run_that_cannot_be_compared_says_why_and_draws_nothing(
    go: Go, stack: Stack, api: Api, runs: dict[str, str]
) -> None:
    other = api.run(stack.manifest("mixture", cases=service.contest()[:20], name="fewer questions"))
    page = go(f"/compare?baseline={runs['both']}&candidate={quote(json.dumps([other]))}")
    alert = page.get_by_role("alert").filter(has_text="case_sha256")
    expect(alert.or_(page.get_by_role("alert")).first).to_be_visible()
    expect(page.get_by_role("heading", name="Verdicts")).to_have_count(0)
    expect(page.locator("svg.plane, .plane svg")).to_have_count(0)
    page.get_by_text("that cannot be compared, and why", exact=False).click()
    expect(page.locator(".refused-run").filter(has_text="fewer questions")).to_be_visible()


def test_an_unknown_cost_stands_in_the_gutter_and_is_never_drawn_as_zero(go: Go, stack: Stack, api: Api) -> None:
    free = {"cases": service.contest(), "cost_policy": "capability_only"}
    baseline = api.run(stack.manifest("compact", "unpriced", name="half priced", **free))
    candidate = api.run(stack.manifest("plain", name="priced router", **free))
    page = compared(go, baseline, candidate)
    point = page.get_by_label(re.compile("unpriced.*Cost unknown", re.IGNORECASE))
    expect(point.first).to_be_visible()
    expect(page.locator(".gutter").first).to_be_visible()
    expect(page.get_by_label(re.compile(r"unpriced.*\$0"))).to_have_count(0)


def test_an_active_run_is_not_offered_for_a_comparison(go: Go, stack: Stack, api: Api, runs: dict[str, str]) -> None:
    cases = service.endless()
    active = api.start(stack.manifest("slow", cases=cases, name="still running", limits={"concurrency": 1}))
    page = go(f"/compare?baseline={active}&candidate={quote(json.dumps([runs['plain']]))}")
    expect(page.get_by_role("alert").first).to_be_visible()
    expect(page.get_by_role("heading", name="Verdicts")).to_have_count(0)
    api.ask("POST", f"/runs/{active}/cancel", {})
    api.finish(active)


def test_questions_are_counted_by_outcome_and_opened_side_by_side_with_what_differs(
    go: Go, api: Api, runs: dict[str, str]
) -> None:
    (row,) = report(api, runs["weak"], runs["plain"])["comparisons"]
    page = compared(go, runs["weak"], runs["plain"])
    page.get_by_role("button", name=re.compile(r"^Wins\s*\d")).click()
    expect(page).to_have_url(re.compile("outcome=win"))
    # The head is a row, too.
    table = page.get_by_role("table", name="Question by question")
    expect(table).to_have_attribute("aria-rowcount", str(row["wins"] + 1))
    page.locator('.vbody [data-place="0"] button').click()
    pane = page.get_by_role("complementary")
    expect(pane.get_by_role("region", name="compact")).to_contain_text("Not right")
    expect(pane.get_by_role("region", name="plain")).to_contain_text("Right")
    difference = pane.get_by_role("region", name="Difference")
    expect(difference.locator("del, ins").first).to_be_visible()
    link, before = page.url, pane.get_by_role("heading", level=2).inner_text()
    page.keyboard.press("j")
    expect(pane.get_by_role("heading", level=2)).not_to_have_text(before)
    page.goto(link)
    expect(page.get_by_role("complementary").get_by_role("heading", level=2)).to_have_text(before)


def test_plans_are_held_against_each_other_with_the_recipe(go: Go, api: Api, runs: dict[str, str]) -> None:
    page = compared(go, runs["both"], runs["captured"])
    plan = page.get_by_role("region", name="Plan", exact=True)
    expect(plan.get_by_role("region", name="Targets")).to_contain_text("targets.captured")
    recipe = plan.get_by_role("region", name="Recipe")
    expect(recipe).to_contain_text("recipes.captured")
    expect(plan.get_by_role("region", name="Limits")).to_have_count(0)


def test_a_comparison_is_exported_whole_as_csv_json_and_parquet(
    go: Go, api: Api, runs: dict[str, str], tmp_path: Path
) -> None:
    found = report(api, runs["weak"], runs["plain"])
    page = compared(go, runs["weak"], runs["plain"])
    exports = page.get_by_role("region", name="Export")

    def saved(name: str, place: int) -> Path:
        with page.expect_download() as download:
            exports.get_by_text(name, exact=True).nth(place).click()
        path = tmp_path / f"{place}-{download.value.suggested_filename}"
        download.value.save_as(path)
        return path

    (line,) = list(csv.DictReader(saved("CSV", 0).read_text().splitlines()))
    assert line["candidate_run_id"] == runs["plain"]
    shown = found["comparisons"][0]
    for name, field in (("adaptive_ci95", "quality_delta_adaptive_ci95"), ("hoeffding_ci95", "quality_delta_ci95")):
        assert [float(line[f"quality_delta_{name}_{end}"]) for end in ("low", "high")] == shown[field]
    assert pyarrow.parquet.read_table(saved("Parquet", 0)).num_rows == 1
    assert json.loads(saved("JSON", 0).read_text())["comparisons"][0]["wins"] == found["comparisons"][0]["wins"]
    assert len(list(csv.DictReader(saved("CSV", 1).read_text().splitlines()))) == 60
    assert pyarrow.parquet.read_table(saved("Parquet", 1)).num_rows == 60


def test_the_comparison_can_be_copied_as_a_command_that_says_the_same(
    go: Go, runs: dict[str, str], context: BrowserContext
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = compared(go, runs["weak"], runs["plain"])
    page.get_by_role("button", name="Copy as CLI command").first.click()
    words = page.evaluate("navigator.clipboard.readText()").split()
    assert words[0] == "sr-bench"
    printed = json.loads(service.command("--json", *words[1:]) if "--json" not in words else service.command(*words[1:]))
    assert printed["comparisons"][0]["verdict"] == "better"


def test_an_offline_estimate_calls_no_model_and_stays_apart_from_what_was_measured(
    go: Go, stack: Stack, api: Api, runs: dict[str, str], context: BrowserContext
) -> None:
    page = go("/compare")
    page.get_by_text("Estimate a routing change").click()
    page.get_by_role("combobox", name="Saved single-model run").click()
    page.get_by_role("option", name="both models").first.click()
    page.get_by_role("combobox", name="Route preview").click()
    page.get_by_role("option", name="plain preview").first.click()
    bodies: list[str] = []

    def lose(route: Route) -> None:
        bodies.append(route.request.post_data or "")
        route.fetch()
        route.abort()

    context.route("**/api/sr-bench/v1/replays", lose)
    page.get_by_role("button", name="Create offline estimate").click()
    expect(page.get_by_role("heading", name="Estimate submission needs reconciliation")).to_be_visible()
    context.unroute("**/api/sr-bench/v1/replays")
    page.get_by_role("button", name="Check or submit same estimate").click()
    expect(page).to_have_url(re.compile("/runs/run-"))
    estimates = page.get_by_role("table", name="Estimated, not measured")
    expect(estimates.get_by_role("row").filter(has_text="plain")).to_contain_text("%")
    shares = page.get_by_role("region", name="Routing").get_by_text(re.compile(r"^\d+ · \d+\.\d%$"))
    assert sum(int(text.split(" ")[0]) for text in shares.all_inner_texts()) == 2 * len(service.contest())
    expect(page.get_by_role("table", name="Targets")).to_have_count(0)
    run_id = page.url.split("/runs/")[1].split("/")[0]
    assert api.get(f"/runs/{run_id}/spend")["known_cost_usd"] == 0
