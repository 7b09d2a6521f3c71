"""Cells tried again from the browser: reviewed, acknowledged, started once; what they cost; what operators say of calls."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser import service
from tests.browser.service import Api, Stack

Go = Any
RECOVER = "**/api/sr-bench/v1/runs/*/recover"
# Of the numbers 0 to 11 the broken model fails 1, 10 and 11.
FAILED = 3


@pytest.fixture
def parent(stack: Stack) -> str:
    """A run of which three cells failed after they were sent."""
    return stack.api.run(stack.manifest("compact", "broken", name="parent"))


def key_of(parent: str) -> str:
    return f"sr-bench-recovery:local:{parent}"


def planned(go: Go, parent: str, scope: str = "Failed") -> Page:
    page: Page = go(f"/runs/{parent}/recovery")
    page.get_by_role("radio", name=scope).click()
    page.get_by_role("button", name="Review recovery plan").click()
    return page


def acknowledged(go: Go, parent: str) -> Page:
    page = planned(go, parent)
    page.get_by_role("checkbox", name="I know that these cells were sent before").check()
    return page


def create(page: Page, cells: int = FAILED) -> None:
    page.get_by_role("button", name=re.compile(f"Create recovery run .{cells} cell")).click()


def children(api: Api, parent: str) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = api.get(f"/runs/{parent}/lineage")["runs"]
    return runs[1:]


def tile(page: Page, label: str) -> Any:
    return page.locator(".tile").filter(has=page.get_by_text(label, exact=True))


def test_every_cell_is_eligible_or_excluded_with_its_reason(go: Go, api: Api, parent: str) -> None:
    page = go(f"/runs/{parent}")
    page.get_by_role("link", name="See what can be tried again").click()
    before = api.run_count()
    page.get_by_role("radio", name="Never sent").click()
    page.get_by_role("button", name="Review recovery plan").click()
    expect(page.get_by_text("No cell can be tried again in this scope")).to_be_visible()
    page.get_by_text("24 cells stay as they are, and why").click()
    reasons = page.get_by_role("table", name="Cannot be tried again")
    line = reasons.get_by_role("row").filter(has_text="already_dispatched_requires_explicit_new_attempt")
    expect(line).to_contain_text("3")
    expect(line).to_contain_text("Use the scope “Failed”.")
    page.get_by_role("radio", name="Failed").click()
    page.get_by_role("button", name="Review recovery plan").click()
    expect(tile(page, "Can be tried again")).to_contain_text("3")
    expect(tile(page, "Cannot be tried again")).to_contain_text("21")
    expect(tile(page, "Known spend of this run")).to_contain_text("Incomplete accounting: at most $")
    expect(tile(page, "Budget of the child run")).to_contain_text("$5.00")
    cells = page.get_by_role("table", name="Cells to try again")
    expect(cells.get_by_role("row").filter(has_text="http_error")).to_have_count(FAILED)
    # What a failed call cost is unknown: a dash with its bound, not 0.
    expect(cells.get_by_role("note").first).to_have_text("—")
    expect(cells).not_to_contain_text(re.compile(r"\$0\.00(?!\d)"))
    assert api.run_count() == before


def test_a_new_attempt_must_be_acknowledged_and_the_child_has_its_own_denominator(go: Go, api: Api, parent: str) -> None:
    page = planned(go, parent)
    expect(page.get_by_role("button", name=re.compile("Create recovery run"))).to_be_disabled()
    page.get_by_role("checkbox", name="Try mmlu-pro/10 on broken again").uncheck()
    page.get_by_role("checkbox", name="I know that these cells were sent before").check()
    create(page, 2)
    expect(page).not_to_have_url(re.compile(parent))
    (child,) = children(api, parent)
    assert api.finish(child["id"])["progress"]["total"] == 2
    expect(page.locator(".tile").filter(has_text="Cells ended")).to_contain_text("2 of 2")
    page.get_by_role("link", name="Recovery", exact=True).click()
    expect(page.get_by_role("link", name=parent)).to_be_visible()
    page = go(f"/runs/{parent}/recovery")
    line = page.get_by_role("table", name="Lineage").get_by_role("row")
    expect(line.filter(has_text="this run")).to_contain_text("24 of 24")
    expect(line.filter(has_text=child["id"])).to_contain_text("2 of 2")
    expect(tile(page, "Answered")).to_contain_text("21 / 24")
    assert api.get(f"/runs/{parent}")["progress"]["total"] == 24


def test_a_lost_recovery_answer_is_checked_with_the_same_body_and_key(
    go: Go, api: Api, parent: str, context: BrowserContext
) -> None:
    page = acknowledged(go, parent)
    bodies: list[str] = []

    def lose(route: Route) -> None:
        bodies.append(route.request.post_data or "")
        route.fetch()
        route.abort()

    context.route(RECOVER, lose)
    create(page)
    heading = page.get_by_role("heading", name="Recovery submission needs reconciliation")
    expect(heading).to_be_visible()
    assert len(children(api, parent)) == 1
    page.reload()
    expect(heading).to_be_visible()
    expect(page.get_by_role("button", name="Review recovery plan")).to_have_count(0)
    context.unroute(RECOVER)
    page.on("request", lambda request: bodies.append(request.post_data or "") if request.method == "POST" else None)
    page.get_by_role("button", name="Check or submit same recovery").click()
    (child,) = children(api, parent)
    expect(page).to_have_url(re.compile(child["id"]))
    first, second = (json.loads(body) for body in bodies)
    assert first == second
    assert len(children(api, parent)) == 1
    assert page.evaluate("key => sessionStorage.getItem(key)", key_of(parent)) is None


def test_a_browser_that_stores_nothing_recovers_nothing(go: Go, api: Api, parent: str) -> None:
    page = acknowledged(go, parent)
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') } }")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    create(page)
    expect(page.get_by_role("alert").filter(has_text="nothing was sent")).to_be_visible()
    assert sent == []
    assert children(api, parent) == []


def test_an_outdated_plan_leads_back_to_planning(go: Go, api: Api, parent: str) -> None:
    first, second = acknowledged(go, parent), acknowledged(go, parent)
    create(first)
    expect(first).not_to_have_url(re.compile(parent))
    create(second)
    expect(second.get_by_role("alert").filter(has_text="has changed since the plan was made")).to_be_visible()
    assert second.evaluate("key => sessionStorage.getItem(key)", key_of(parent)) is None
    second.get_by_role("button", name="Review recovery plan").click()
    expect(tile(second, "Can be tried again")).to_contain_text("0")
    second.get_by_text("cells stay as they are, and why").click()
    expect(second.get_by_text("A recovery has it already.")).to_be_visible()
    assert len(children(api, parent)) == 1


@pytest.mark.parametrize(
    "altered",
    [
        {"actor": "somebody-else"},
        {"parent": "run-of-another"},
        {"request": {"mode": "failed", "plan_sha256": "a" * 64, "cells": [{"case_id": "c", "target_id": "t"}]}},
    ],
)
def test_an_altered_recovery_is_none_of_ours(go: Go, parent: str, altered: dict[str, Any]) -> None:
    cells = [{"case_id": "mmlu-pro/1", "target_id": "broken"}]
    request = {"mode": "failed", "plan_sha256": "a" * 64, "cells": cells, "acknowledge_new_attempt": True}
    whole = {
        "version": 1,
        "actor": "local",
        "parent": parent,
        "idempotency_key": "k",
        "unanswered": True,
        "request": request,
    }
    page = go("/runs")
    page.evaluate("([key, text]) => sessionStorage.setItem(key, text)", [key_of(parent), json.dumps(whole | altered)])
    go(f"/runs/{parent}/recovery", page)
    expect(page.get_by_role("button", name="Review recovery plan")).to_be_visible()


def test_a_call_of_unknown_cost_is_settled_and_its_run_counts_it(go: Go, stack: Stack, api: Api) -> None:
    cases = [service.question(1)]
    run_id = api.run(stack.manifest("broken", cases=cases, name="to be settled"))
    assert api.get(f"/runs/{run_id}/spend")["unknown_cost_count"] == 1
    page = go(f"/runs/{run_id}/recovery")
    line = page.get_by_role("table", name="Calls of unknown cost").get_by_role("row").filter(has_text="mmlu-pro/1")
    expect(line).to_contain_text("http_error")
    line.get_by_role("button").click()
    form = page.get_by_role("dialog")
    form.get_by_role("textbox", name="Usage object").fill("[1, 2]")
    expect(form.get_by_text("The usage is no JSON object.")).to_be_visible()
    expect(form.get_by_role("button", name="Record")).to_be_disabled()
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 0}}
    form.get_by_role("textbox", name="Usage object").fill(json.dumps(usage))
    form.get_by_role("textbox", name="Model that answered").fill("broken")
    form.get_by_role("textbox", name="Where you have it from").fill("the provider's console")
    form.get_by_role("button", name="Record").click()
    expect(form).to_have_count(0)
    expect(line).to_contain_text("It happened")
    expect(line).to_contain_text("$0.00012")
    (call,) = api.get(f"/runs/{run_id}/calls?unknown_cost=true")["calls"]
    assert call["settlement"]["note"] == "the provider's console"
    assert api.get(f"/runs/{run_id}/report")["summary"]["targets"][0]["cost_usd"] == pytest.approx(0.00012)


def test_a_preview_and_a_whole_run_have_nothing_to_recover(go: Go, stack: Stack, api: Api) -> None:
    preview = api.run(stack.manifest("mixture", mode="preview", name="preview"))
    page = go(f"/runs/{preview}/recovery")
    expect(page.get_by_text("Only live runs send anything", exact=False)).to_be_visible()
    expect(page.get_by_text("The cost of every call is known")).to_be_visible()
