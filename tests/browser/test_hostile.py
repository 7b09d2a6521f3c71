"""Texts that want to look like others, and answers of something that is not the service."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from tests.browser import service
from tests.browser.service import Stack
from tests.e2e.answering import Answering, answering

Go = Any
REVERSED = "\u202elive\u202c \x1b[31m \u2066a\u2069 \U000e0041"
LONG_CHARS = 1_000_000
NOT_THE_SERVICE = {
    "null": {"content_type": "application/json", "body": "null"},
    "a list": {"content_type": "application/json", "body": "[]"},
    "half a document": {"content_type": "application/json", "body": '{"runs": [{"id": "run-1"'},
    "a page": {"content_type": "text/html", "body": "<html><h1>Please sign in</h1></html>"},
    "a page of an error": {"status": 502, "content_type": "text/html", "body": "<h1>Bad Gateway</h1>"},
    "nothing": {"status": 503, "body": ""},
    "an object of somebody else": {"content_type": "application/json", "body": '{"ok": true}'},
}


class Model(Answering):
    """Says what hides, or a line without an end."""

    def say(self, asked: dict[str, Any]) -> str:
        return "x" * LONG_CHARS if "Question 1?" in asked["messages"][-1]["content"] else REVERSED


@pytest.fixture(scope="module")
def odd(stack: Stack) -> str:
    with answering(Model) as url:
        target = {"id": "odd", "kind": "single", "model": "odd", "base_url": url, "prices": {"odd": service.PRICE}}
        limits = {"max_output_chars": 2 * LONG_CHARS, "repetition_window": LONG_CHARS, "repetition_limit": 1000}
        cases = [service.question(number) for number in range(2)]
        manifest = stack.manifest(cases=cases, limits=limits, name="\u202eeman")
        return stack.api.run(manifest | {"targets": [target]})


def test_what_has_no_shape_is_written_out_and_copied_as_it_is(stack: Stack, go: Go, odd: str) -> None:
    page = go(f"/runs/{odd}/questions?cell={cell(stack, odd, 'mmlu-pro/0')}")
    expect(page.get_by_role("heading", level=1)).to_have_text("⟨U+202E⟩eman")
    answer = page.get_by_role("figure", name=re.compile("The model.s answer"))
    expect(answer).to_contain_text("⟨U+202E⟩live⟨U+202C⟩ ⟨U+001B⟩[31m ⟨U+2066⟩a⟨U+2069⟩ ⟨U+E0041⟩")
    expect(answer).to_contain_text("Characters without a shape are written out")
    page.evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() }")
    answer.get_by_role("button", name="Copy").click()
    assert page.evaluate("window.copied") == REVERSED
    page.goto(stack.url + "/runs")
    expect(page.get_by_role("link", name="⟨U+202E⟩eman")).to_be_visible()


def test_a_line_of_a_megabyte_is_cut_and_shown_whole_on_request(stack: Stack, go: Go, odd: str) -> None:
    page = go(f"/runs/{odd}/questions?cell={cell(stack, odd, 'mmlu-pro/1')}")
    answer = page.get_by_role("figure", name=re.compile("The model.s answer"))
    answer.get_by_role("button", name="Show all").click()
    expect(answer.get_by_role("button", name="Show all")).to_have_count(0)
    assert len(answer.locator("pre").inner_text()) == LONG_CHARS
    # Finding out its direction would take a browser seconds, and it has none.
    assert answer.locator("pre").get_attribute("dir") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def cell(stack: Stack, run_id: str, case_id: str) -> int:
    return next(row["cell"] for row in stack.api.get(f"/runs/{run_id}/results")["results"] if row["case_id"] == case_id)


@pytest.mark.parametrize("kind", list(NOT_THE_SERVICE))
def test_what_is_not_the_service_is_told_and_breaks_nothing(go: Go, odd: str, context: BrowserContext, kind: str) -> None:
    def answer(route: Route) -> None:
        if route.request.url.endswith(("/session", "/health")):
            route.continue_()
        else:
            route.fulfill(**NOT_THE_SERVICE[kind])

    context.route("**/api/sr-bench/v1/**", answer)
    page = context.new_page()
    for path in ("/runs", f"/runs/{odd}/results", "/compare", "/create", "/datasets", "/targets", "/experiments"):
        go(path, page)
        expect(page.get_by_role("alert").first).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("link", name="Runs", exact=True)).to_be_visible()
    context.unroute("**/api/sr-bench/v1/**")
    page.get_by_role("button", name="Try again").first.click()
    expect(page.get_by_role("heading", name="Experiments", level=1)).to_be_visible()
    assert not [key for key in page.evaluate("Object.keys(sessionStorage)") if key.startswith("sr-bench")]
