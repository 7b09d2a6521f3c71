"""From a baseline to candidates: experiments, derived plans, recipes, and comparisons that stay within an experiment."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser import service
from tests.browser.service import Api, Stack

Go = Any
EXPERIMENTS = "**/api/sr-bench/v1/experiments"
KEY = "sr-bench-experiment:local"


@pytest.fixture(scope="module")
def baseline(stack: Stack) -> str:
    return stack.api.run(stack.manifest("compact", "frontier", name="experiment baseline"))


@pytest.fixture(scope="module")
def candidate(stack: Stack) -> str:
    """A router whose configuration is captured when it starts, asked what the baseline was."""
    return stack.api.run(stack.manifest("captured", name="experiment candidate"))


def experiment(api: Api, name: str, **runs: str) -> str:
    made = str(api.ask("POST", "/experiments", {"name": name, "idempotency_key": name})["id"])
    for role, run_id in runs.items():
        api.ask("POST", f"/experiments/{made}/runs", {"run_id": run_id, "role": role})
    return made


def named(api: Api, name: str) -> list[dict[str, Any]]:
    return [one for one in api.get("/experiments?limit=50")["experiments"] if one["name"] == name]


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label).click()
    page.get_by_role("option", name=option).first.click()


def reviewed(page: Page) -> None:
    page.get_by_role("button", name="Review plan").click()
    expect(page.get_by_role("heading", name="Plan ready for review")).to_be_visible()


def test_an_experiment_is_created_filled_and_deleted_while_its_runs_stay(go: Go, api: Api, baseline: str) -> None:
    page = go("/experiments")
    page.get_by_role("textbox", name="Name").fill("created here")
    page.get_by_role("button", name="Create experiment").click()
    expect(page.get_by_role("heading", name="created here", level=1)).to_be_visible()
    expect(page.get_by_text("Start with single models: they are what a router is held against.")).to_be_visible()
    run = page.get_by_role("combobox", name="Run")
    run.fill("experiment baseline")
    page.get_by_role("option", name="experiment baseline").first.click()
    page.get_by_role("textbox", name="What changed?").fill("nothing <b>yet</b>")
    page.get_by_role("button", name="Add to this experiment").click()
    reference = page.get_by_role("list", name="Reference")
    expect(reference).to_contain_text("experiment baseline")
    expect(reference).to_contain_text("What changed: nothing <b>yet</b>")
    expect(page.get_by_text("Test a first recipe on exactly what the reference asked.")).to_be_visible()
    (made,) = named(api, "created here")
    page.get_by_role("button", name="Delete experiment").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page).to_have_url(re.compile("/experiments$"))
    assert named(api, made["name"]) == []
    assert api.get(f"/runs/{baseline}")["status"] == "completed"


def test_a_lost_creation_is_checked_with_the_same_key(go: Go, api: Api, context: BrowserContext) -> None:
    page = go("/experiments")
    bodies: list[str] = []

    def lose(route: Route) -> None:
        if route.request.method != "POST":
            route.continue_()
            return
        bodies.append(route.request.post_data or "")
        route.fetch()
        route.abort()

    context.route(EXPERIMENTS, lose)
    page.get_by_role("textbox", name="Name").fill("lost creation")
    page.get_by_role("button", name="Create experiment").click()
    heading = page.get_by_role("heading", name="Experiment creation needs reconciliation")
    expect(heading).to_be_visible()
    page.reload()
    expect(heading).to_be_visible()
    context.unroute(EXPERIMENTS)
    page.on("request", lambda request: bodies.append(request.post_data or "") if request.method == "POST" else None)
    page.get_by_role("button", name="Check or create same experiment").click()
    expect(page.get_by_role("heading", name="lost creation", level=1)).to_be_visible()
    assert json.loads(bodies[0]) == json.loads(bodies[1])
    assert len(named(api, "lost creation")) == 1
    assert page.evaluate("key => sessionStorage.getItem(key)", KEY) is None


def test_a_candidate_asks_exactly_what_the_baseline_asked(go: Go, api: Api, baseline: str) -> None:
    made = experiment(api, "derived here", baseline=baseline)
    page = go(f"/experiments/{made}")
    page.get_by_role("link", name="Evaluate a recipe").click()
    expect(page.get_by_role("heading", name="Frozen baseline protocol")).to_be_visible()
    # Only routers are offered, and nothing of the protocol can be changed.
    page.get_by_role("combobox", name="Add configured target").click()
    expect(page.get_by_role("option", name="Single")).to_have_count(0)
    page.get_by_role("option", name="mixture").first.click()
    expect(page.get_by_role("textbox", name="Max output tokens")).to_have_count(0)
    page.get_by_role("textbox", name="Name").fill("derived candidate")
    page.get_by_role("textbox", name="What changed?").fill("the first recipe")
    reviewed(page)
    expect(page.locator(".tile").filter(has_text="Planned evaluations")).to_contain_text("12")
    page.get_by_role("textbox", name="What changed?").fill("another recipe")
    expect(page.get_by_role("button", name="Start evaluation")).to_be_disabled()
    reviewed(page)
    page.get_by_role("button", name="Start evaluation").click()
    expect(page).to_have_url(re.compile("/runs/run-"))
    run = api.finish(page.url.split("/runs/")[1].split("/")[0])
    assert run["manifest"]["case_sha256"] == api.get(f"/runs/{baseline}")["manifest"]["case_sha256"]
    (part,) = run["experiment_roles"]
    assert (part["experiment_id"], part["role"], part["hypothesis"]) == (made, "initial", "another recipe")
    page.get_by_role("link", name="Part of an experiment").click()
    expect(page.get_by_role("list", name="Starting recipe")).to_contain_text("derived candidate")
    expect(page.get_by_text("then try another version of it", exact=False)).to_be_visible()


def test_an_active_or_unfit_baseline_cannot_be_derived(go: Go, stack: Stack, api: Api, candidate: str) -> None:
    cases = service.endless()
    active = api.start(stack.manifest("slow", cases=cases, name="active baseline", limits={"concurrency": 1}))
    page = go(f"/create?baseline={active}")
    expect(page.get_by_role("alert").filter(has_text="The baseline has not ended")).to_be_visible()
    expect(page.get_by_role("button", name="Review plan")).to_have_count(0)
    go(f"/runs/{active}", page)
    expect(page.get_by_role("button", name="Cancel evaluation")).to_be_visible()
    expect(page.get_by_role("link", name="Evaluate candidate")).to_have_count(0)
    api.ask("POST", f"/runs/{active}/cancel", {})
    api.finish(active)
    go(f"/create?baseline={candidate}", page)
    expect(page.get_by_role("alert").filter(has_text="has no single model")).to_be_visible()


def test_a_preview_takes_session_and_conversation_and_shows_no_score(go: Go, stack: Stack, api: Api) -> None:
    page = go(f"/create?mode=preview&dataset={stack.dataset['id']}&target=%5B%22mixture%22%5D")
    page.get_by_role("textbox", name="Name").fill("in a session")
    page.get_by_role("textbox", name="Session ID").fill("session-7")
    page.get_by_role("textbox", name="Conversation ID").fill("conversation-9")
    reviewed(page)
    page.get_by_role("button", name="Start route preview").click()
    expect(page).to_have_url(re.compile("/runs/run-"))
    run = api.finish(page.url.split("/runs/")[1].split("/")[0])
    context = run["manifest"]["preview_context"]
    assert (context["session_id"], context["conversation_id"]) == ("session-7", "conversation-9")
    expect(page.get_by_text("Preview only: no answer was generated, so there is no accuracy.")).to_be_visible()
    expect(page.get_by_role("columnheader", name=re.compile("accuracy", re.IGNORECASE))).to_have_count(0)
    expect(page.get_by_role("heading", name="Selection status").first).to_be_visible()
    page.get_by_role("link", name="Questions", exact=True).click()
    page.locator('.vbody [data-place="0"] button').click()
    pane = page.get_by_role("complementary")
    expect(pane.get_by_role("heading", name="Routing")).to_be_visible()
    expect(pane).to_contain_text("Decision")
    expect(pane).to_contain_text("No: the same question goes the same way again.")
    # Nothing here is a verdict.
    for word in ("Right", "Not right", "Score", "Verdict"):
        expect(page.locator("main").get_by_text(word, exact=True)).to_have_count(0)


def test_a_preview_flows_from_decisions_to_models_and_a_band_narrows_its_rows(go: Go, stack: Stack, api: Api) -> None:
    run_id = api.run(stack.manifest("mixture", cases=service.contest(), mode="preview", name="flow of a preview"))
    counts: dict[tuple[str, str], int] = {}
    for row in api.get(f"/runs/{run_id}/routing")["rows"]:
        counts[row["decision"], row["model"]] = counts.get((row["decision"], row["model"]), 0) + row["cell_count"]
    assert sum(counts.values()) == 60
    (decision, model), expected = max(counts.items(), key=lambda item: item[1])
    page = go(f"/runs/{run_id}/results")
    flow = page.get_by_role("region", name="Decision flow")
    expect(flow.locator("text.column")).to_have_count(3)
    band = flow.get_by_role("button", name=re.compile(f"{decision}.*{model}")).first
    band.focus()
    band.press("Enter")
    expect(page).to_have_url(re.compile(f"decision={decision}"))
    expect(page).to_have_url(re.compile(f"model={model}"))
    expect(page.get_by_text(re.compile(rf"^{expected} rows"))).to_be_visible()
    expect(page.locator(".vbody .vrow").first).to_contain_text(decision)
    assert api.get(f"/runs/{run_id}/results?decision={decision}&model={model}")["total"] == expected
    page.get_by_role("button", name="Clear filters").click()
    expect(page.get_by_text(re.compile(r"^60 rows"))).to_be_visible()


def test_a_recipe_is_shown_when_its_hashes_prove_it_and_never_borrowed(
    go: Go, api: Api, stack: Stack, candidate: str
) -> None:
    page = go(f"/runs/{candidate}")
    page.get_by_role("link", name="Recipe", exact=True).click()
    expect(page.get_by_text("Verified configuration snapshot")).to_be_visible()
    (entry,) = api.get(f"/runs/{candidate}/recipes")["recipes"]
    expect(page.get_by_text(entry["recipe"]["recipe_sha256"])).to_be_visible()
    page.get_by_text("Recipe as JSON").click()
    expect(page.get_by_role("figure", name="Recipe as JSON")).to_contain_text("everyday")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the recipe of captured").click()
    assert download.value.suggested_filename == f"{candidate}-captured-recipe.json"
    plain = api.run(stack.manifest("mixture", name="no recipe"))
    go(f"/runs/{plain}/recipe", page)
    expect(page.get_by_text("Snapshot unavailable")).to_be_visible()
    expect(page.get_by_text("registered without capture_recipe", exact=False)).to_be_visible()
    single = api.run(stack.manifest("compact", name="no router"))
    go(f"/runs/{single}", page)
    expect(page.get_by_role("link", name="Evidence", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Recipe", exact=True)).to_have_count(0)


def test_a_deep_link_never_widens_the_scope_of_a_comparison(
    go: Go, api: Api, stack: Stack, baseline: str, candidate: str
) -> None:
    outside = api.run(stack.manifest("mixture", name="outside of it"))
    made = experiment(api, "scope", baseline=baseline, candidate=candidate)
    sent: list[str] = []
    candidates = quote(json.dumps([candidate, outside]))
    page = go("/runs")
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    go(f"/compare?experiment={made}&baseline={baseline}&candidate={candidates}", page)
    expect(page.get_by_role("alert").filter(has_text="names runs outside the experiment")).to_contain_text(outside)
    expect(page.get_by_role("heading", name="Verdicts")).to_have_count(0)
    assert sent == []
    go(f"/compare?experiment={made}&baseline={baseline}&candidate={quote(json.dumps([candidate]))}", page)
    expect(page.get_by_role("heading", name="Verdicts")).to_be_visible()
    expect(page.get_by_role("checkbox", name="outside of it")).to_have_count(0)
    page.get_by_role("button", name="Include runs outside this experiment").click()
    expect(page).to_have_url(re.compile("scope=all"))
    expect(page).not_to_have_url(re.compile("candidate="))
    expect(page.get_by_role("checkbox", name="outside of it").first).to_be_visible()
