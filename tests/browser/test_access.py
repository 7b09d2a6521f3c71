"""Who may come in and what they may do: sign-in with the token, and roles that a trusted proxy forwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser import service
from tests.browser.service import Api

TOKEN = "a-token-of-the-browser-tests"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A stack that asks for a token; nothing is registered or prepared in it."""
    with service.serving(tmp_path_factory.mktemp("guarded") / "store", SR_BENCH_TOKEN=TOKEN) as api:
        yield api


@pytest.fixture
def as_reader(browser: Browser, guarded: Api) -> Iterator[BrowserContext]:
    """A browser behind a proxy that vouches for a reader."""
    headers = {
        "authorization": f"Bearer {TOKEN}",
        "x-sr-bench-actor-id": "rita",
        "x-sr-bench-actor-role": "read",
    }
    context = browser.new_context(extra_http_headers=headers, locale="en-US")
    yield context
    context.close()


def test_a_token_is_asked_for_checked_once_and_never_kept(guarded: Api, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(guarded.url + "/runs")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_role("heading", name="Runs")).to_have_count(0)
    page.get_by_label("Token", exact=True).fill("a guess")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("not the service's token")
    page.get_by_label("Token", exact=True).fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    (cookie,) = context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    kept = page.evaluate("JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])")
    assert TOKEN not in kept
    assert cookie["value"] not in kept


def test_a_session_may_write_with_its_csrf_token_and_ends_by_signing_out(guarded: Api, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(guarded.url + "/datasets")
    page.get_by_label("Token", exact=True).fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Prepare a dataset")).to_be_visible()
    refused = page.evaluate(
        """async () => (await fetch('/api/sr-bench/v1/dataset-preparations', {
            method: 'POST', headers: {'content-type': 'application/json'}, body: '{"benchmark": "hle"}'
        })).status"""
    )
    assert refused == 403
    page.get_by_role("combobox", name="Benchmark").first.click()
    page.get_by_role("option", name="ARC-AGI-2").click()
    with page.expect_response("**/dataset-preparations") as answered:
        page.get_by_role("button", name="Download and prepare").click()
    assert answered.value.status == 202
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_session_that_ends_takes_nothing_that_was_filled_in(guarded: Api, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(guarded.url + "/create")
    page.get_by_label("Token", exact=True).fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("textbox", name="Name").fill("half written")
    context.clear_cookies()
    page.get_by_role("radio", name="Quick").check()
    expect(page.get_by_text("Your session has ended.")).to_be_visible()
    expect(page.get_by_role("textbox", name="Name")).to_have_count(0)
    page.get_by_label("Token", exact=True).fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("textbox", name="Name")).to_have_value("half written")
    expect(page.get_by_role("radio", name="Quick")).to_be_checked()
    # It is a session again: what it reads is read, and nothing is left of the refusal.
    expect(page.get_by_text("questions, prepared automatically").first).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_reader_sees_the_form_and_cannot_use_it(guarded: Api, as_reader: BrowserContext) -> None:
    page = as_reader.new_page()
    page.goto(guarded.url + "/create")
    expect(page.get_by_role("heading", name="Create evaluation")).to_be_visible()
    expect(page.get_by_role("button", name="Review plan")).to_be_disabled()
    expect(page.get_by_text("Starting a run needs the right to write.")).to_be_visible()
    page.goto(guarded.url + "/datasets")
    expect(page.get_by_text("Preparing needs the right to write.")).to_be_visible()
    expect(page.get_by_text("There are no", exact=False)).to_have_count(0)
    page.goto(guarded.url + "/targets")
    expect(page.get_by_text("No target is registered")).to_be_visible()
    page.goto(guarded.url + "/runs")
    expect(page.get_by_text("There are no runs yet")).to_be_visible()


def test_a_run_of_somebody_else_is_no_run(guarded: Api, browser: Browser) -> None:
    def asked(role: str, name: str) -> Any:
        headers = {"authorization": f"Bearer {TOKEN}", "x-sr-bench-actor-id": name, "x-sr-bench-actor-role": role}
        context = browser.new_context(extra_http_headers=headers)
        status = context.new_page().request.get(guarded.url + service.PREFIX + "/runs/run-00000000000000000000").status
        context.close()
        return status

    assert asked("write", "walter") == asked("admin", "anna") == 404
