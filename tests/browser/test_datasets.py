"""The dataset library: questions without answers, twenty-five a page, in every shape that they have."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Response, expect

from tests.browser import service
from tests.browser.service import Api, Stack

Go = Any


@pytest.fixture(scope="module")
def mmlu(stack: Stack) -> dict[str, Any]:
    """A prepared set of 500 multiple-choice questions."""
    return service.prepared(stack.api, {"benchmark": "mmlu-pro", "profile": "quick"})


def lines(page: Page) -> Any:
    return page.locator(".case-list > li")


def test_a_dataset_is_prepared_in_the_background_and_survives_a_reload(go: Go) -> None:
    page = go("/datasets")
    page.get_by_role("combobox", name="Benchmark").first.click()
    page.get_by_role("option", name="MMLU-Pro").click()
    expect(page.get_by_text("huggingface.co/datasets/TIGER-Lab", exact=False)).to_be_visible()
    page.get_by_role("combobox", name="Size").click()
    page.get_by_role("option", name="Standard (2,000)").click()
    page.get_by_role("button", name="Download and prepare").click()
    history = page.get_by_role("table", name="Preparations")
    # Work opens the list, before and after a reload, and it stays open when the work is done.
    expect(history).to_be_visible()
    page.reload()
    expect(history).to_be_visible()
    line = history.get_by_role("row").filter(has_text="standard")
    expect(line.get_by_role("link", name="View dataset")).to_be_visible()
    line.get_by_role("link", name="View dataset").click()
    expect(page.get_by_text("2,000 questions", exact=False).first).to_be_visible()
    expect(page.get_by_text("Holdout").first).to_be_visible()


def test_a_preparation_that_fails_says_why_and_can_be_asked_again(go: Go, hub: Any) -> None:
    kept = dict(hub.files)
    hub.files.clear()
    try:
        page = go("/datasets")
        page.get_by_role("combobox", name="Benchmark").first.click()
        page.get_by_role("option", name="GPQA Diamond").click()
        page.get_by_role("button", name="Download and prepare").click()
        line = page.get_by_role("table", name="Preparations").get_by_role("row").filter(has_text="gpqa-diamond")
        expect(line.get_by_role("button", name="Prepare again")).to_be_visible()
        expect(line).to_contain_text("Idavidrein/gpqa")
    finally:
        hub.files.update(kept)


def test_questions_are_paged_filtered_and_searched_by_the_service(
    stack: Stack, go: Go, api: Api, mmlu: dict[str, Any]
) -> None:
    page = go(f"/datasets/{mmlu['id']}")
    expect(lines(page)).to_have_count(25)
    expect(page.get_by_text("1–25 of 500", exact=False)).to_be_visible()  # noqa: RUF001
    page.get_by_role("link", name="Next page").click()
    expect(page).to_have_url(re.compile("cursor=25"))
    expect(lines(page).first).to_contain_text("26")
    page.get_by_role("link", name="Previous page").click()
    page.get_by_role("combobox", name="Subject group").click()
    page.get_by_role("option", name=re.compile("^physics")).click()
    found = api.get(f"/datasets/{mmlu['id']}/cases?category=physics&limit=1")["total"]
    expect(page.get_by_text(f"of {found} ·", exact=False)).to_be_visible()
    page.get_by_role("textbox", name="Search the questions").fill("no question holds this")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No question fits these filters")).to_be_visible()


def test_a_question_shows_its_choices_and_can_be_linked(stack: Stack, go: Go, mmlu: dict[str, Any]) -> None:
    page = go(f"/datasets/{mmlu['id']}")
    lines(page).nth(3).get_by_role("button").click()
    pane = page.get_by_role("complementary")
    choices = pane.get_by_role("list", name="Choices").get_by_role("listitem")
    expect(choices).to_have_count(10)
    expect(choices.first).to_contain_text("A")
    link = page.url.removeprefix(stack.url)
    other = go(link)
    expect(other.get_by_role("complementary").get_by_role("list", name="Choices")).to_be_visible()
    before = other.get_by_role("complementary").inner_text()
    other.keyboard.press("j")
    expect(other.get_by_role("complementary")).not_to_have_text(before)


def test_grids_are_drawn_as_grids(go: Go, stack: Stack) -> None:
    page = go(f"/datasets/{stack.dataset['id']}")
    lines(page).first.get_by_role("button").click()
    pane = page.get_by_role("complementary")
    expect(pane.get_by_role("img", name=re.compile("^Pair 1 . Input: "))).to_be_visible()
    expect(pane.get_by_role("img", name=re.compile("^Test 1 . Input: "))).to_be_visible()
    expect(pane.get_by_role("img", name=re.compile("^Output: ")).first).to_be_visible()


def test_no_reference_answer_crosses_the_network(stack: Stack, go: Go, api: Api, mmlu: dict[str, Any]) -> None:
    cases = [
        service.question(number, answer="B", metadata={"stratum": "s", "hidden": "HIDDEN-TEST"}) for number in range(3)
    ]
    run_id = api.run(stack.manifest("compact", cases=cases, name="secret answers"))
    seen: list[tuple[str, str]] = []

    def keep(response: Response) -> None:
        if "/api/sr-bench/" in response.url and "/watch" not in response.url:
            seen.append((response.url, response.text()))

    page = go("/runs")
    page.on("response", keep)
    for path in (
        f"/datasets/{mmlu['id']}",
        f"/datasets/{mmlu['id']}?tab=about",
        f"/datasets/{stack.dataset['id']}?tab=coverage",
        f"/runs/{run_id}/questions?cell=0",
        f"/runs/{run_id}/calls",
        f"/runs/{run_id}/evidence",
        "/targets",
    ):
        go(path, page)
        page.wait_for_load_state("networkidle")
    assert len(seen) > 10
    for url, text in seen:
        assert "HIDDEN-TEST" not in text, url
        if "/datasets" in url or "/question" in url or url.endswith(run_id):
            assert '"answer"' not in text, url


def test_coverage_and_sources_are_there_and_folded(go: Go, mmlu: dict[str, Any]) -> None:
    page = go(f"/datasets/{mmlu['id']}?tab=coverage")
    page.get_by_role("link", name="MMLU-Pro").click()
    expect(page.get_by_role("link", name="physics")).to_be_visible()
    page.get_by_role("link", name="About").click()
    sha = page.get_by_text(mmlu["sha256"])
    expect(sha).to_be_hidden()
    page.get_by_text(mmlu["id"][:16], exact=False).first.click()
    expect(sha).to_be_visible()


def test_a_dataset_leads_to_its_evaluation(go: Go, stack: Stack) -> None:
    page = go(f"/datasets/{stack.dataset['id']}")
    page.get_by_role("link", name="Evaluate dataset").click()
    expect(page.get_by_role("combobox", name="Dataset")).to_have_value(re.compile("ARC-AGI-2"))


def test_the_library_is_searched_and_a_failed_read_is_not_an_empty_one(go: Go, context: BrowserContext) -> None:
    page = go("/datasets")
    page.get_by_role("textbox", name="Search").fill("arc")
    expect(page.locator(".card").first).to_contain_text("ARC-AGI-2")
    page.get_by_role("textbox", name="Search").fill("nothing is called this")
    expect(page.get_by_text("No dataset fits these filters")).to_be_visible()
    context.route("**/api/sr-bench/v1/datasets", lambda route: route.abort())
    other = go("/datasets")
    expect(other.get_by_role("alert").filter(has_text="the datasets cannot be read")).to_be_visible()
    expect(other.get_by_text("No dataset is prepared yet")).to_have_count(0)
