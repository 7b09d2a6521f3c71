"""What a person keeps in the browser: views of lists and notes on answers. Nothing of it reaches the service."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Request, expect

from tests.browser.service import Stack
from tests.browser.test_pages import AXE, TAGS, violations

Go = Any


@pytest.fixture(scope="module")
def run_id(stack: Stack) -> str:
    return stack.api.run(stack.manifest("compact", "broken", name="kept"))


def questions(go: Go, run_id: str, rest: str = "") -> Page:
    page: Page = go(f"/runs/{run_id}/questions{rest}")
    expect(page.get_by_text("rows · Keys", exact=False)).to_be_visible()
    page.get_by_text("Views", exact=True).click()
    return page


def test_a_view_is_kept_under_a_name_used_again_and_forgotten(go: Go, run_id: str) -> None:
    page = questions(go, run_id)
    page.get_by_role("button", name="Failed", exact=True).click()
    expect(page).to_have_url(re.compile("status=failed"))
    expect(page.get_by_role("button", name="Failed", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_label("Name of this view").fill("<b>mine</b>")
    page.keyboard.press("Enter")
    expect(page.get_by_role("list", name="Your views")).to_be_visible()
    page.evaluate(AXE.read_text())
    assert violations(page, {"runOnly": TAGS}) == []
    page.get_by_role("button", name="Dearest first").click()
    expect(page).not_to_have_url(re.compile("status=failed"))
    page.reload()
    page.get_by_text("Views", exact=True).click()
    page.get_by_role("button", name="<b>mine</b>", exact=True).click()
    expect(page).to_have_url(re.compile("status=failed"))
    expect(page).not_to_have_url(re.compile("by=cost"))
    page.get_by_role("button", name="Forget the view <b>mine</b>").click()
    expect(page.get_by_role("list", name="Your views")).to_have_count(0)


def test_what_stands_in_the_storage_breaks_no_page(go: Go, run_id: str) -> None:
    page = questions(go, run_id)
    odd = {"views:local:questions": [{"name": "odd", "search": {"by": "colour", "status": 7, "cell": 3}}, 5, {"name": 1}]}
    for key, value in (odd | {f"notes:local:{run_id}": {"0": "text", "x": {}}}).items():
        page.evaluate("([key, value]) => localStorage.setItem('sr-bench:' + key, JSON.stringify(value))", [key, value])
    page.reload()
    page.get_by_text("Views", exact=True).click()
    page.get_by_role("button", name="odd", exact=True).click()
    expect(page).to_have_url(re.compile("/questions$"))
    expect(page.get_by_text("on this run")).to_have_count(0)


def test_notes_stay_beside_the_answers_in_every_tab_and_leave_as_a_file(
    go: Go, run_id: str, context: BrowserContext, tmp_path: Path
) -> None:
    sent: list[str] = []

    def listen(request: Request) -> None:
        sent.append(request.url + (request.post_data or ""))

    page = questions(go, run_id, "?cell=0&at=0")
    page.on("request", listen)
    other = questions(go, run_id)
    page.get_by_label("Your note on this answer").fill("jk: the grader is wrong here")
    # Keys of the list do not work where somebody writes.
    expect(page).to_have_url(re.compile("cell=0"))
    other.get_by_text("1 note on this run").click()
    expect(other.get_by_text("jk: the grader is wrong here")).to_be_visible()
    with other.expect_download() as saved:
        other.get_by_role("button", name="Save the notes as JSON").click()
    saved.value.save_as(tmp_path / "notes.json")
    (note,) = json.loads((tmp_path / "notes.json").read_text())["notes"].values()
    assert note["text"] == "jk: the grader is wrong here"
    page.get_by_label("Your note on this answer").fill("")
    expect(other.get_by_text("on this run")).to_have_count(0)
    assert not [each for each in sent if "grader" in each]
