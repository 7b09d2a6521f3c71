"""From three steps to a started run, exactly once, whatever happens to the network, the tab or the storage."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.service import Api, Stack

Go = Any
RUNS = "**/api/sr-bench/v1/runs"
KEY = "sr-bench-submission:local"


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label).click()
    page.get_by_role("option", name=option).first.click()


def composed(go: Go, stack: Stack, name: str, target: str = "compact") -> Page:
    """The form, filled over the prepared dataset."""
    page: Page = go(f"/create?dataset={stack.dataset['id']}&target=%5B%22{target}%22%5D")
    page.get_by_role("textbox", name="Name").fill(name)
    return page


def reviewed(go: Go, stack: Stack, name: str) -> Page:
    page = composed(go, stack, name)
    page.get_by_role("button", name="Review plan").click()
    expect(page.get_by_role("heading", name="Plan ready for review")).to_be_visible()
    return page


def start(page: Page) -> None:
    page.get_by_role("button", name="Start evaluation").click()


def until_held(page: Page, held: list[Route]) -> None:
    """Waits until a request of the page has come and is kept."""
    deadline = time.monotonic() + 60
    while not held:
        assert time.monotonic() < deadline, "the page did not ask"
        page.wait_for_timeout(20)


def runs_named(api: Api, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get(f"/runs?q={name}")["runs"]
    return found


def test_missing_datasets_are_prepared_and_the_plan_is_reviewed_before_it_starts(go: Go, api: Api) -> None:
    page = go("/create")
    page.get_by_role("textbox", name="Name").fill("prepared on the way")
    page.get_by_role("checkbox", name="MMLU-Pro").check()
    expect(page.get_by_text("14 questions, prepared automatically")).to_be_visible()
    choose(page, "Add configured target", "compact")
    choose(page, "Add configured target", "mixture")
    before = api.run_count()
    page.get_by_role("button", name="Review plan").click()
    expect(page.get_by_role("heading", name="Plan ready for review")).to_be_visible()
    assert api.run_count() == before
    planned = page.locator(".tile").filter(has_text="Planned evaluations")
    expect(planned).to_contain_text("28")
    expect(planned).to_contain_text(re.compile("14 questions . 2 targets"))
    expect(page.locator(".tile").filter(has_text="Worst case")).to_contain_text("$")
    expect(page.get_by_text("No: development questions.")).to_be_visible()
    expect(page.get_by_text("Model requests so far: 0")).to_be_visible()
    start(page)
    expect(page).to_have_url(re.compile("/runs/run-"))
    run_id = page.url.split("/runs/")[1].split("/")[0]
    assert api.finish(run_id)["progress"]["total"] == 28
    assert len(runs_named(api, "prepared")) == 1


def test_an_edit_after_the_review_disables_the_start(go: Go, stack: Stack) -> None:
    page = reviewed(go, stack, "edited")
    expect(page.get_by_role("button", name="Start evaluation")).to_be_enabled()
    page.get_by_role("textbox", name="Max output tokens").fill("128")
    expect(page.get_by_role("heading", name="Plan changed — review again")).to_be_visible()
    expect(page.get_by_role("button", name="Start evaluation")).to_be_disabled()
    page.get_by_role("textbox", name="Max output tokens").fill("4096")
    expect(page.get_by_role("button", name="Start evaluation")).to_be_enabled()


def test_what_is_wrong_is_said_at_once_and_nothing_is_sent(go: Go, stack: Stack, api: Api) -> None:
    page = go("/create?mode=preview")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.get_by_role("button", name="Review plan").click()
    alert = page.get_by_role("alert")
    for sentence in ("Give the run a name.", "Choose at least one benchmark", "Add at least one target."):
        expect(alert).to_contain_text(sentence)
    page.get_by_role("combobox", name="Add configured target").click()
    expect(page.get_by_role("option", name="mixture").first).to_be_visible()
    expect(page.get_by_role("option").filter(has_text="Single")).to_have_count(0)
    assert sent == []


def test_fixed_settings_are_shown_and_their_conflicts_refused_with_the_reason(go: Go, stack: Stack) -> None:
    page = composed(go, stack, "fixed", target="fixed")
    page.get_by_text("Sampling and advanced limits").click()
    temperature = page.get_by_role("textbox", name="Temperature")
    expect(temperature).to_be_disabled()
    expect(page.get_by_text("Fixed by every target: 0.7")).to_be_visible()
    page.get_by_role("textbox", name="Max output tokens").fill("100")
    page.get_by_role("button", name="Review plan").click()
    expect(page.get_by_role("alert")).to_contain_text("compact always asks for 256 output tokens, above the cap of 100")


def test_missing_prices_change_the_policy_only_by_a_click(go: Go, stack: Stack) -> None:
    page = composed(go, stack, "no prices", target="unpriced")
    expect(page.get_by_text("Without a price for unpriced the plan is refused", exact=False)).to_be_visible()
    page.get_by_role("button", name="Review plan").click()
    expect(page.get_by_role("alert").filter(has_text="The plan was refused")).to_be_visible()
    expect(page.get_by_role("textbox", name="Budget")).to_be_enabled()
    page.get_by_role("button", name="Use Quality only").click()
    expect(page.get_by_role("textbox", name="Budget")).to_be_disabled()
    page.get_by_role("button", name="Review plan").click()
    expect(page.get_by_role("heading", name="Plan ready for review")).to_be_visible()
    page.get_by_text("Frozen manifest").click()
    expect(page.get_by_label("Frozen manifest").last).to_contain_text('"max_cost_usd": 5')
    expect(page.locator(".tile").filter(has_text="Worst case")).to_contain_text("—")
    expect(page.get_by_text("The target unpriced has no prices.")).to_be_visible()


def test_a_lost_answer_is_reconciled_with_the_same_body_and_key(
    go: Go, stack: Stack, api: Api, context: BrowserContext
) -> None:
    page = reviewed(go, stack, "lostanswer")
    bodies: list[str] = []

    def lose(route: Route) -> None:
        bodies.append(route.request.post_data or "")
        route.fetch()
        route.abort()

    context.route(RUNS, lose)
    start(page)
    expect(page.get_by_role("heading", name="Evaluation submission needs reconciliation")).to_be_visible()
    assert len(runs_named(api, "lostanswer")) == 1
    # Nothing else can be made, here or after a reload, before it is settled.
    page.reload()
    expect(page.get_by_role("heading", name="Evaluation submission needs reconciliation")).to_be_visible()
    expect(page.get_by_role("button", name="Review plan")).to_have_count(0)
    context.unroute(RUNS)
    page.on("request", lambda request: bodies.append(request.post_data or "") if request.method == "POST" else None)
    page.get_by_role("button", name="Check or submit same evaluation").click()
    expect(page).to_have_url(re.compile(runs_named(api, "lostanswer")[0]["id"]))
    first, second = (json.loads(body) for body in bodies)
    assert first == second
    assert len(runs_named(api, "lostanswer")) == 1
    assert page.evaluate(f"sessionStorage.getItem('{KEY}')") is None


def test_a_reload_in_the_middle_of_a_submission_starts_one_run(
    go: Go, stack: Stack, api: Api, context: BrowserContext
) -> None:
    page = reviewed(go, stack, "reloaded")
    held: list[Route] = []

    def hold(route: Route) -> None:
        route.fetch()
        held.append(route)

    context.route(RUNS, hold)
    start(page)
    until_held(page, held)
    page.reload()
    context.unroute(RUNS)
    expect(page.get_by_role("heading", name="Evaluation submission needs reconciliation")).to_be_visible()
    page.get_by_role("button", name="Check or submit same evaluation").click()
    expect(page).to_have_url(re.compile("/runs/run-"))
    assert len(runs_named(api, "reloaded")) == 1


def test_a_browser_that_stores_nothing_sends_nothing(go: Go, stack: Stack, api: Api) -> None:
    page = reviewed(go, stack, "unstored")
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') } }")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    start(page)
    expect(page.get_by_role("alert")).to_contain_text("nothing was sent")
    assert sent == []
    assert runs_named(api, "unstored") == []


def test_only_a_proof_that_nothing_started_settles_a_submission(
    go: Go, stack: Stack, api: Api, context: BrowserContext
) -> None:
    page = reviewed(go, stack, "proven")
    context.route(RUNS, lambda route: route.abort())
    start(page)
    expect(page.get_by_role("heading", name="Evaluation submission needs reconciliation")).to_be_visible()
    page.get_by_role("button", name="Check or submit same evaluation").click()
    expect(page.get_by_role("alert").filter(has_text="Still unsettled")).to_be_visible()
    assert page.evaluate(f"sessionStorage.getItem('{KEY}')") is not None
    context.unroute(RUNS)
    # The service says of another plan under this name that nothing was dispatched: that settles it.
    page.evaluate(
        f"""() => {{
            const kept = JSON.parse(sessionStorage.getItem('{KEY}'))
            kept.manifest.sampling.temperature = 1
            sessionStorage.setItem('{KEY}', JSON.stringify(kept))
        }}"""
    )
    page.reload()
    page.get_by_role("button", name="Check or submit same evaluation").click()
    expect(page.get_by_role("button", name="Review plan")).to_be_visible()
    assert page.evaluate(f"sessionStorage.getItem('{KEY}')") is None
    assert runs_named(api, "proven") == []


@pytest.mark.parametrize(
    "stored",
    [
        {"actor": "somebody-else"},
        {"version": 2},
        {"idempotency_key": ""},
        {"manifest": {"plan_sha256": "short"}},
    ],
)
def test_a_submission_of_another_account_or_an_altered_one_is_not_shown(go: Go, stored: dict[str, Any]) -> None:
    whole = {
        "version": 1,
        "actor": "local",
        "idempotency_key": "k",
        "manifest": {"plan_sha256": "a" * 64},
        "unanswered": True,
    }
    key = f"sr-bench-submission:{stored.get('actor', 'local')}"
    page = go("/runs")
    page.evaluate("([key, text]) => sessionStorage.setItem(key, text)", [key, json.dumps(whole | stored)])
    go("/create", page)
    expect(page.get_by_role("button", name="Review plan")).to_be_visible()


def test_an_answer_that_comes_after_the_form_was_left_takes_nobody_anywhere(
    go: Go, stack: Stack, api: Api, context: BrowserContext
) -> None:
    page = reviewed(go, stack, "leftform")
    held: list[Route] = []
    context.route(RUNS, lambda route: held.append(route))
    start(page)
    page.get_by_role("link", name="Datasets", exact=True).click()
    expect(page.get_by_role("heading", name="Datasets")).to_be_visible()
    until_held(page, held)
    with page.expect_response(RUNS):
        held[0].continue_()
    page.wait_for_timeout(500)
    expect(page).to_have_url(stack.url + "/datasets")
    assert len(runs_named(api, "leftform")) == 1
    assert page.evaluate(f"sessionStorage.getItem('{KEY}')") is None


def test_a_late_answer_about_benchmarks_does_not_touch_a_chosen_dataset(
    go: Go, stack: Stack, context: BrowserContext
) -> None:
    held: list[Route] = []
    context.route("**/datasets/selection*", lambda route: held.append(route))
    page = go("/create")
    page.get_by_role("button", name="Use a specific dataset").click()
    expect(page.get_by_role("combobox", name="Dataset")).to_be_visible()
    chosen = page.get_by_role("combobox", name="Dataset").input_value()
    until_held(page, held)
    with page.expect_response("**/datasets/selection*"):
        for route in held:
            route.continue_()
    page.wait_for_timeout(500)
    expect(page.get_by_role("combobox", name="Dataset")).to_have_value(chosen)
    expect(page.get_by_role("checkbox", name="MMLU-Pro")).to_have_count(0)


def test_a_failed_benchmark_check_is_said_and_tried_again(go: Go, context: BrowserContext) -> None:
    context.route("**/datasets/selection*", lambda route: route.abort())
    page = go("/create")
    alert = page.get_by_role("alert").filter(has_text="which benchmarks are ready cannot be read")
    expect(alert).to_be_visible()
    context.unroute("**/datasets/selection*")
    page.get_by_role("button", name="Retry benchmark check").click()
    expect(alert).to_have_count(0)


def test_a_benchmark_selection_is_kept_when_the_size_changes(go: Go) -> None:
    page = go("/create")
    page.get_by_role("checkbox", name="ARC-AGI-2").check()
    page.get_by_role("radio", name="Standard").click()
    expect(page.get_by_role("checkbox", name="ARC-AGI-2")).to_be_checked()
    page.get_by_role("button", name="Clear benchmarks").click()
    page.get_by_role("button", name="Select all benchmarks").click()
    expect(page.get_by_role("checkbox", name="ARC-AGI-2")).to_be_checked()


def test_two_tabs_do_not_share_a_submission(go: Go, stack: Stack, api: Api, context: BrowserContext) -> None:
    first = reviewed(go, stack, "tabone")
    second = reviewed(go, stack, "tabtwo")
    context.route(RUNS, lambda route: route.abort())
    start(first)
    expect(first.get_by_role("heading", name="Evaluation submission needs reconciliation")).to_be_visible()
    context.unroute(RUNS)
    start(second)
    expect(second).to_have_url(re.compile("/runs/run-"))
    expect(first.get_by_role("heading", name="Evaluation submission needs reconciliation")).to_be_visible()
    first.get_by_role("button", name="Check or submit same evaluation").click()
    expect(first).to_have_url(re.compile("/runs/run-"))
    assert len(runs_named(api, "tabone")) == len(runs_named(api, "tabtwo")) == 1


def test_the_plan_can_be_copied_as_a_command(go: Go, stack: Stack, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = reviewed(go, stack, "as a command")
    page.get_by_role("button", name="Copy as CLI command").last.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"sr-bench --url {stack.url} run --manifest - <<'SR_BENCH'\n{{")
    assert '"plan_sha256"' in copied
