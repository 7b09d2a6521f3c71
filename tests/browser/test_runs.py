"""The list of runs: what it finds, how it is filtered, how it lives through an outage."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser import service
from tests.browser.service import Api, Stack

Go = Any


def row(page: Page, run_id: str) -> Any:
    return page.locator(f'tr[data-run="{run_id}"]')


@pytest.fixture
def busy(stack: Stack) -> Iterator[str]:
    """A run that is active while the test lasts: lists that show one are read every few seconds."""
    cases = service.endless()
    run_id = stack.api.start(stack.manifest("slow", cases=cases, name="busy", limits={"concurrency": 2}))
    yield run_id
    stack.api.ask("POST", f"/runs/{run_id}/cancel", {})
    stack.api.finish(run_id)


@pytest.mark.usefixtures("busy")
def test_a_run_of_the_command_line_is_found_with_its_planned_denominator(stack: Stack, go: Go, tmp_path: Path) -> None:
    page = go("/runs")
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps(stack.manifest("compact", "broken", name="from the shell")))
    printed = service.command("--url", stack.url, "--json", "run", "--manifest", str(manifest), "--detach")
    run_id = json.loads(printed)["id"]
    stack.api.finish(run_id)
    found = row(page, run_id)
    expect(found).to_be_visible()
    expect(found).to_contain_text("24 of 24")
    expect(found).to_contain_text("3 failed")
    expect(found).to_contain_text("compact")
    expect(found).to_contain_text("Single")


def test_filters_are_the_services_and_live_in_the_address(stack: Stack, go: Go, api: Api) -> None:
    wanted = api.run(stack.manifest("compact", name="needle one"))
    other = api.run(stack.manifest("mixture", name="haystack"))
    page = go("/runs")
    page.get_by_role("textbox", name="Search").fill("needle one")
    expect(row(page, wanted)).to_be_visible()
    expect(row(page, other)).to_have_count(0)
    expect(page).to_have_url(stack.url + "/runs?q=needle+one")
    row(page, wanted).get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="needle one")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("textbox", name="Search")).to_have_value("needle one")
    page.get_by_role("combobox", name="Status").click()
    page.get_by_role("option", name="Failed", exact=True).click()
    expect(page.get_by_text("No run fits these filters")).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    expect(row(page, other)).to_be_visible()
    page.get_by_role("combobox", name="Profile").click()
    page.get_by_role("option", name="Standard", exact=True).click()
    expect(page.get_by_text("No run fits these filters")).to_be_visible()
    expect(page).to_have_url(stack.url + "/runs?profile=standard")
    page.goto(f"{stack.url}/runs?profile=quick&q={wanted}")
    expect(row(page, wanted)).to_be_visible()
    expect(row(page, other)).to_have_count(0)


def test_an_unknown_filter_in_a_link_is_left_out(go: Go) -> None:
    page = go("/runs?status=beautiful&mode=42&nonsense=1")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    expect(page.get_by_text("no run fits", exact=False)).to_have_count(0)


def test_a_live_run_shows_rate_time_left_and_spend_and_outlives_the_page(stack: Stack, go: Go, api: Api) -> None:
    cases = service.endless()
    run_id = api.start(stack.manifest("slow", cases=cases, name="live", limits={"concurrency": 4}))
    page = go("/runs")
    found = row(page, run_id)
    expect(found.get_by_text("Running")).to_be_visible()
    expect(found.get_by_text("cells/s", exact=False)).to_be_visible()
    expect(found.get_by_text("left", exact=False)).to_be_visible()
    expect(found.get_by_text("of $5.00", exact=False)).to_be_visible()
    found.get_by_role("link").first.click()
    expect(page.get_by_text("Live updates", exact=False)).to_be_visible()
    expect(page.get_by_role("table", name="In flight")).to_be_visible()
    before = api.get(f"/runs/{run_id}")["progress"]["completed"]
    page.reload()
    page.close()
    time.sleep(1)
    run = api.get(f"/runs/{run_id}")
    assert run["status"] == "running"
    assert run["progress"]["completed"] >= before
    api.ask("POST", f"/runs/{run_id}/cancel", {})
    api.finish(run_id)


@pytest.mark.usefixtures("busy")
def test_after_a_network_cut_the_page_goes_on_by_itself_and_submits_nothing(
    stack: Stack, go: Go, api: Api, context: BrowserContext
) -> None:
    page = go("/runs")
    expect(page.get_by_role("table", name="Runs")).to_be_visible()
    count, posts = api.run_count(), []
    page.on("request", lambda request: posts.append(request.url) if request.method != "GET" else None)
    context.set_offline(True)
    expect(page.get_by_text("Last read failed", exact=False)).to_be_visible()
    expect(page.get_by_role("table", name="Runs")).to_be_visible()
    context.set_offline(False)
    expect(page.get_by_text("Last read failed", exact=False)).to_have_count(0)
    assert posts == []
    assert api.run_count() == count


@pytest.mark.usefixtures("busy")
def test_a_service_that_stops_answering_is_said_and_comes_back_without_a_submission(stack: Stack, go: Go, api: Api) -> None:
    page = go("/runs")
    expect(page.get_by_role("table", name="Runs")).to_be_visible()
    posts: list[str] = []
    page.on("request", lambda request: posts.append(request.url) if request.method != "GET" else None)
    count, planner = api.run_count(), process(stack.store, "srbench_planner")
    os.kill(planner, signal.SIGSTOP)
    try:
        expect(page.get_by_text("Last read failed", exact=False)).to_be_visible()
        expect(page.get_by_role("table", name="Runs")).to_be_visible()
    finally:
        os.kill(planner, signal.SIGCONT)
    expect(page.get_by_text("Last read failed", exact=False)).to_have_count(0)
    assert posts == []
    assert api.run_count() == count


def process(store: Path, module: str) -> int:
    """The process of a stack that runs `module`."""
    leader = json.loads((store / "service.json").read_text())["pid"]
    for line in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(line.read_text().rpartition(")")[2].split()[1])
            words = (line.parent / "cmdline").read_bytes().split(b"\0")
        except FileNotFoundError:
            continue
        if parent == leader and module.encode() in words:
            return int(line.parent.name)
    raise LookupError(f"no {module} below {leader}")


def test_pending_unavailable_and_empty_are_three_different_things(go: Go, context: BrowserContext) -> None:
    held: list[Route] = []
    context.route("**/api/sr-bench/v1/runs?*", lambda route: held.append(route))
    page = go("/runs")
    expect(page.get_by_role("status").get_by_text("Loading")).to_be_visible()
    expect(page.get_by_text("There are no runs yet")).to_have_count(0)
    page.wait_for_timeout(200)
    # A read that the page starts meanwhile must not be held for ever.
    context.route("**/api/sr-bench/v1/runs?*", lambda route: route.abort())
    for route in held:
        route.abort()
    expect(page.get_by_role("alert").get_by_text("the runs cannot be read", exact=False)).to_be_visible()
    expect(page.get_by_text("There are no runs yet")).to_have_count(0)
    context.unroute("**/api/sr-bench/v1/runs?*")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("textbox", name="Search").fill("nothing is called this")
    expect(page.get_by_text("No run fits these filters")).to_be_visible()


def test_a_stalled_read_of_the_runs_does_not_block_the_datasets(go: Go, context: BrowserContext) -> None:
    held: list[Route] = []
    context.route("**/api/sr-bench/v1/runs?*", lambda route: held.append(route))
    page = go("/datasets")
    expect(page.get_by_role("link", name="ARC-AGI-2").first).to_be_visible()
    expect(page.get_by_text("runs are being read").first).to_be_visible()
    for route in held:
        route.abort()


def test_links_of_the_released_dashboard_still_lead_somewhere(stack: Stack, go: Go, api: Api) -> None:
    run_id = api.run(stack.manifest("compact", name="old link"))
    page = go(f"/evaluation?run={run_id}&section=calls")
    expect(page).to_have_url(f"{stack.url}/runs/{run_id}/calls")
    page = go(f"/evaluation?run={run_id}", page)
    expect(page).to_have_url(f"{stack.url}/runs/{run_id}/results")
    page = go("/?view=new", page)
    expect(page).to_have_url(stack.url + "/create")
    page = go("/evaluation?view=datasets", page)
    expect(page).to_have_url(stack.url + "/datasets")
    page = go("/runs/nothing", page)
    expect(page.get_by_role("alert").get_by_text("cannot be read", exact=False)).to_be_visible()


@pytest.mark.parametrize("total", [27])
def test_older_runs_are_one_page_further_and_back(stack: Stack, go: Go, api: Api, total: int) -> None:
    for number in range(total):
        api.start(stack.manifest("compact", name=f"page {number:02d}", cases=[service.question(1)]))
    page = go("/runs?q=page")
    expect(page.locator("tr[data-run]")).to_have_count(25)
    page.get_by_role("link", name="Older runs").click()
    expect(page.locator("tr[data-run]")).to_have_count(total - 25)
    page.go_back()
    expect(page.locator("tr[data-run]")).to_have_count(25)
