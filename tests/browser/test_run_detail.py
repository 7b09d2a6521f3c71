"""One run: figures from the whole report, lists that the service filters, links to one thing, texts that stay text."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser import service
from tests.browser.odd_upstream import HOSTILE, LINK, PROMPT_TOKENS
from tests.browser.service import Api, Stack

Go = Any
MODELS_ANSWER = re.compile("The model.s answer")


@pytest.fixture(scope="module")
def mixed(stack: Stack) -> str:
    """A run of 30 questions over a single model, a router, and a model that fails eleven of them."""
    cases = [service.question(number) for number in range(30)]
    return stack.api.run(stack.manifest("compact", "mixture", "broken", cases=cases, name="mixed"))


@pytest.fixture(scope="module")
def odd(stack: Stack) -> str:
    """A run whose name, target, case and answers are hostile, and whose token counts are beyond a double."""
    case = service.question(1, id=HOSTILE)
    hostile = stack.manifest(HOSTILE, "broken", cases=[case], name=HOSTILE, cost_policy="capability_only")
    return stack.api.run(hostile)


def rows(page: Page) -> Any:
    return page.locator(".vbody [data-place]")


def test_results_come_from_the_whole_report_and_lead_to_their_rows(stack: Stack, go: Go, api: Api, mixed: str) -> None:
    page = go(f"/runs/{mixed}")
    report = api.get(f"/runs/{mixed}/report")
    table = page.get_by_role("table", name="Targets")
    for target in report["summary"]["targets"]:
        line = table.get_by_role("row").filter(has=page.get_by_role("rowheader", name=target["id"], exact=True))
        expect(line).to_contain_text(f"{target['correct']} / 30")
    routed = report["summary"]["targets"][1]["decisions"]
    for decision, number in routed.items():
        line = page.get_by_role("listitem").filter(has=page.get_by_role("link", name=decision, exact=True))
        expect(line).to_contain_text(f"{number} · ")
    page.get_by_role("table", name="Failures by reason").get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"/questions\?target=broken&reason="))
    expect(page.get_by_text("11 rows", exact=False)).to_be_visible()
    expect(rows(page).first).to_contain_text("Not right")


def test_an_unknown_cost_is_a_dash_with_its_reason_and_never_zero(stack: Stack, go: Go, api: Api) -> None:
    run_id = api.run(stack.manifest("unpriced", "compact", cost_policy="capability_only"))
    page = go(f"/runs/{run_id}")
    table = page.get_by_role("table", name="Targets")
    line = table.get_by_role("row").filter(has=page.get_by_role("rowheader", name="unpriced"))
    dashes = line.get_by_role("note")
    expect(dashes.first).to_have_text("—")
    expect(dashes.first).to_have_attribute("aria-label", re.compile("unknown", re.IGNORECASE))
    expect(line).not_to_contain_text("$0")
    expect(page.locator(".tile").filter(has_text="Model tokens")).to_contain_text("—")


def test_the_service_filters_orders_and_counts_the_questions(stack: Stack, go: Go, api: Api, mixed: str) -> None:
    page = go(f"/runs/{mixed}/questions")
    expect(page.get_by_text("90 rows", exact=False)).to_be_visible()
    page.get_by_role("combobox", name="Target").click()
    page.get_by_role("option", name="mixture").click()
    expect(page.get_by_text("30 rows", exact=False)).to_be_visible()
    page.get_by_role("combobox", name="Verdict").click()
    page.get_by_role("option", name="Right", exact=True).click()
    right = api.get(f"/runs/{mixed}/results?target_id=mixture&correct=true&limit=1")["total"]
    expect(page.get_by_text(f"{right} rows", exact=False)).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_role("button", name="Spend").click()
    expect(page).to_have_url(re.compile("by=cost&desc=true"))
    dearest = api.get(f"/runs/{mixed}/results?order_by=cost&descending=true&limit=1")["results"][0]
    expect(rows(page).first).to_contain_text(dearest["case_id"])
    page.get_by_role("textbox", name="Search answers and ids").fill("mmlu-pro/7")
    expect(page.get_by_text("3 rows", exact=False)).to_be_visible()


def test_a_question_is_opened_walked_and_linked(stack: Stack, go: Go, mixed: str) -> None:
    page = go(f"/runs/{mixed}/questions?target=compact")
    rows(page).nth(2).get_by_role("button").click()
    pane = page.get_by_role("complementary")
    expect(pane.get_by_role("listitem").filter(has_text="yes")).to_be_visible()
    first = pane.get_by_role("heading", level=2).inner_text()
    page.keyboard.press("j")
    expect(pane.get_by_role("heading", level=2)).not_to_have_text(first)
    expect(pane.get_by_role("heading", level=2)).to_contain_text("compact")
    second = pane.get_by_role("heading", level=2).inner_text()
    page.keyboard.press("k")
    expect(pane.get_by_role("heading", level=2)).to_have_text(first)
    page.keyboard.press("j")
    expect(pane.get_by_role("heading", level=2)).to_have_text(second)
    link = page.url
    other = go(link.removeprefix(stack.url))
    expect(other.get_by_role("complementary").get_by_role("heading", level=2)).to_have_text(second)
    expect(other.get_by_role("complementary").get_by_text(MODELS_ANSWER)).to_be_visible()
    other.keyboard.press("Escape")
    expect(other.get_by_role("complementary")).to_have_count(0)


def test_answers_are_read_only_when_they_are_opened(go: Go, mixed: str) -> None:
    asked: list[str] = []
    page = go("/runs")
    page.on("request", lambda request: asked.append(request.url) if re.search(r"/calls/call-", request.url) else None)
    go(f"/runs/{mixed}/calls", page)
    expect(rows(page).first).to_be_visible()
    assert asked == []
    rows(page).first.get_by_role("button").click()
    expect(page.get_by_role("complementary").get_by_text(MODELS_ANSWER)).to_be_visible()
    assert len(asked) == 1


def test_a_call_is_linked_with_its_tokens_and_its_evidence(stack: Stack, go: Go, api: Api, mixed: str) -> None:
    call = api.get(f"/runs/{mixed}/calls?target_id=compact&limit=1")["calls"][0]
    page = go(f"/runs/{mixed}/calls?call={call['id']}")
    pane = page.get_by_role("complementary")
    expect(pane.locator(".tile").filter(has_text="Fresh input")).to_contain_text(str(call["usage"]["input_tokens"]))
    expect(pane.locator(".tile").filter(has_text="Total")).to_contain_text(str(sum(call["usage"].values())))
    with page.expect_download() as download:
        pane.get_by_role("link", name="Body as received").click()
    assert "data:" in download.value.path().read_text()


def test_a_page_of_events_that_fails_keeps_the_rows_and_the_place(
    stack: Stack, go: Go, api: Api, mixed: str, context: BrowserContext
) -> None:
    total = len(api.get(f"/runs/{mixed}/events")["events"])
    page = go(f"/runs/{mixed}/evidence")
    events = page.locator("ol.events > li")
    expect(events.first).to_be_visible()
    if total > 25:
        expect(events).to_have_count(25)
        context.set_offline(True)
        page.get_by_role("button", name="Load more events").click()
        expect(page.get_by_text("Last read failed", exact=False)).to_be_visible()
        expect(events).to_have_count(25)
        context.set_offline(False)
        page.get_by_role("button", name="Load more events").click()
    expect(events).to_have_count(min(total, 50))
    page.get_by_role("combobox", name="Type").click()
    page.get_by_role("option", name="Created").click()
    expect(events).to_have_count(1)
    expect(page).to_have_url(re.compile("type=created"))


def test_the_manifest_and_the_machine_are_there_to_look_at(go: Go, mixed: str) -> None:
    page = go(f"/runs/{mixed}/evidence")
    page.get_by_text("Frozen manifest").click()
    expect(page.get_by_label("Frozen manifest").get_by_text('"plan_sha256"', exact=False)).to_be_visible()
    expect(page.get_by_text('"answer"', exact=False)).to_have_count(0)


def test_hostile_texts_are_shown_as_text_and_load_nothing(stack: Stack, go: Go, api: Api, odd: str) -> None:
    for path in ("/runs", f"/runs/{odd}", f"/runs/{odd}/questions?cell=0", f"/runs/{odd}/questions?cell=1"):
        page = go(path)
        expect(page.get_by_text(HOSTILE).first).to_be_visible()
        assert "owned" not in page.title() or HOSTILE in page.title()
        assert page.evaluate("document.title") != "owned"
        page.close()
    call = next(call for call in api.get(f"/runs/{odd}/calls")["calls"] if call["target_id"] == HOSTILE)
    page = go(f"/runs/{odd}/calls?call={call['id']}")
    shown = page.get_by_label(MODELS_ANSWER)
    expect(shown).to_contain_text(HOSTILE)
    expect(shown).to_contain_text("<script>")
    assert page.locator("main img, main script, main iframe").count() == 0
    assert page.locator(f'a[href^="{LINK[:10]}"]').count() == 0
    assert page.locator("[onerror]").count() == 0
    page = go("/create?target=" + quote(json.dumps([HOSTILE])))
    expect(page.get_by_role("heading", name="Create evaluation")).to_be_visible()
    assert page.evaluate("document.title") != "owned"


def test_token_counts_beyond_a_double_stay_exact(go: Go, api: Api, odd: str) -> None:
    calls = api.get(f"/runs/{odd}/calls")["calls"]
    call = next(call for call in calls if call["target_id"] == HOSTILE)
    assert call["usage"]["input_tokens"] == PROMPT_TOKENS
    page = go(f"/runs/{odd}/calls?call={call['id']}")
    grouped = f"{PROMPT_TOKENS:,}"
    expect(page.locator(".tile").filter(has_text="Fresh input")).to_contain_text(grouped)
    expect(page.locator(".tile").filter(has_text="Total")).to_contain_text(f"{PROMPT_TOKENS + 12:,}")
    page.get_by_text("Usage as received").click()
    expect(page.get_by_label("Usage as received").last).to_contain_text(str(PROMPT_TOKENS))


def test_a_correction_stands_beside_the_receipts_and_changes_none(go: Go, stack: Stack, api: Api) -> None:
    run_id = api.run(stack.manifest("compact", name="reconciled"))
    before = api.get(f"/runs/{run_id}/calls")["calls"]
    asked = api.get(f"/runs/{run_id}/spend")["call_count"]
    page = go(f"/runs/{run_id}/evidence")
    expect(page.get_by_text("Usage was never reconciled.")).to_be_visible()
    page.get_by_role("button", name="Reconcile usage", exact=True).click()
    line = page.get_by_role("table", name="Accounting corrections").get_by_role("row").nth(1)
    expect(line).to_contain_text("Verified")
    expect(line).to_contain_text("12 / 0 / 0")
    expect(page.get_by_text("Every receipt stays as it was recorded", exact=False)).to_be_visible()
    assert api.get(f"/runs/{run_id}/calls")["calls"] == before
    assert api.get(f"/runs/{run_id}/spend")["call_count"] == asked


def test_saved_answers_are_graded_again_and_exported_without_a_model(go: Go, stack: Stack, api: Api) -> None:
    run_id = api.run(stack.manifest("compact", name="regraded"))
    page = go(f"/runs/{run_id}/evidence")
    page.get_by_role("button", name="Regrade saved answers", exact=True).click()
    expect(page.get_by_text("0 of 12 answers are judged differently", exact=False)).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export training matrix: JSON").click()
    assert len(json.loads(download.value.path().read_text())["cases"]) == 12
    holdout = service.question(1, metadata={"stratum": "math", "split": "holdout"})
    kept = api.run(stack.manifest("compact", cases=[holdout], name="holdout"))
    go(f"/runs/{kept}/evidence", page)
    page.get_by_role("button", name="Export training matrix: JSON").click()
    expect(page.get_by_role("alert").filter(has_text="holdout")).to_be_visible()


def test_a_run_is_cancelled_after_a_question(stack: Stack, go: Go, api: Api) -> None:
    cases = service.endless()
    run_id = api.start(stack.manifest("slow", cases=cases, name="to be stopped", limits={"concurrency": 2}))
    page = go(f"/runs/{run_id}")
    page.get_by_role("button", name="Cancel evaluation").click()
    page.get_by_role("button", name="Keep it running").click()
    assert api.get(f"/runs/{run_id}")["status"] in ("queued", "running")
    page.get_by_role("button", name="Cancel evaluation").click()
    page.get_by_role("button", name="Stop it").click()
    expect(page.locator('[data-status="cancelled"]').first).to_be_visible()
    assert api.finish(run_id)["status"] == "cancelled"


def test_a_network_cut_during_a_run_ends_with_the_runs_own_end(
    stack: Stack, go: Go, api: Api, context: BrowserContext
) -> None:
    cases = [service.question(number) for number in range(8)]
    run_id = api.start(stack.manifest("slow", cases=cases, name="cut", limits={"concurrency": 2}))
    # It goes on once the page has lost it, however long the page took to come up.
    api.ask("POST", f"/runs/{run_id}/pause", {})
    page = go(f"/runs/{run_id}")
    expect(page.get_by_text("Live updates", exact=False)).to_be_visible()
    context.set_offline(True)
    api.ask("POST", f"/runs/{run_id}/resume", {})
    api.finish(run_id)
    context.set_offline(False)
    expect(page.locator('[data-status="completed"]').first).to_be_visible()
    assert api.get("/runs?q=cut&limit=5")["total"] == 1
