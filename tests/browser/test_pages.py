"""What must hold on every page: accessible, within a narrow screen, in both themes and languages, small, and closed in."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from srbench_gateway.dashboard import PLACES

from tests.browser import service
from tests.browser.chinese import english
from tests.browser.conftest import ROOT
from tests.browser.odd_upstream import HOSTILE
from tests.browser.service import Stack

Go = Any
Shoot = Callable[[Page, str], None]
AXE = ROOT / "gateway" / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
TAGS = {"type": "tag", "values": RULES}
# Colours depend on the theme alone, everything else on the width alone: each is checked once where it can differ.
CHECKS: dict[tuple[int, str], dict[str, Any]] = {
    (1280, "light"): {"runOnly": TAGS},
    (1280, "dark"): {"runOnly": {"type": "rule", "values": ["color-contrast"]}},
    (390, "light"): {"runOnly": TAGS, "rules": {"color-contrast": {"enabled": False}}},
}
FIRST_LOAD_BYTES = 250 * 1024
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# Each page's name and its path; {run} and {dataset} are filled in.
PAGES = {
    "runs": "/runs",
    "create": "/create",
    "preview": "/create?mode=preview&target=%5B%22mixture%22%5D",
    "datasets": "/datasets",
    "dataset": "/datasets/{dataset}",
    "dataset-question": "/datasets/{dataset}?case={case}",
    "dataset-coverage": "/datasets/{dataset}?tab=coverage",
    "dataset-about": "/datasets/{dataset}?tab=about",
    "targets": "/targets",
    "run-results": "/runs/{run}/results",
    "run-questions": "/runs/{run}/questions",
    "run-question": "/runs/{run}/questions?cell=1",
    "run-calls": "/runs/{run}/calls",
    "run-call": "/runs/{captured}/calls?call={routed}",
    "run-evidence": "/runs/{run}/evidence",
    "run-recipe": "/runs/{captured}/recipe",
    "run-recovery": "/runs/{failures}/recovery",
    "run-preview": "/runs/{preview}/results",
    "preview-question": "/runs/{preview}/questions?cell=1",
    "candidate": "/create?baseline={baseline}&experiment={experiment}&target=%5B%22mixture%22%5D",
    "experiments": "/experiments",
    "experiment": "/experiments/{experiment}",
    "compare": "/compare?baseline={baseline}&candidate=%5B%22{captured}%22%5D",
    "compare-question": "/compare?baseline={baseline}&candidate=%5B%22{captured}%22%5D&case={contest}",
    "missing": "/runs/nothing/here",
}


# More places where a service speaks: refusals, and what is missing.
SAID = PAGES | {
    "comparison-with-margin": "/compare?baseline={baseline}&candidate=%5B%22{captured}%22%5D&margin=20",
    "comparison-refused": "/compare?baseline={preview}&candidate=%5B%22{captured}%22%5D",
    "comparison-differing": "/compare?baseline={baseline}&candidate=%5B%22{run}%22%5D",
    "no-run": "/runs/run-nothing/results",
    "no-dataset": "/datasets/nothing",
    "no-experiment": "/experiments/nothing",
    "failed-question": "/runs/{failures}/questions?status=failed&cell={failed}&at=0",
    "failed-results": "/runs/{failures}/results",
    "call": "/runs/{failures}/calls?call={call}&at=0",
    "unpriced": "/runs/{run}/calls?cost=unknown",
}


@pytest.fixture(scope="module")
def filled(stack: Stack) -> dict[str, str]:
    """What the paths name: a run over the prepared dataset, the dataset, one of its questions."""
    run_id = stack.api.run(stack.over_dataset("compact", "mixture", "unpriced", name="demo", cost_policy="capability_only"))
    failures = stack.api.run(stack.manifest("compact", "broken", name="with failures"))
    contest = service.contest()
    baseline = stack.api.run(stack.manifest("compact", "frontier", cases=contest, name="contest"))
    captured = stack.api.run(stack.manifest("captured", cases=contest, name="contest of the router"))
    preview = stack.api.run(stack.manifest("mixture", cases=contest, mode="preview", name="contest preview"))
    body = {"name": "accessible experiment", "idempotency_key": "pages"}
    experiment = stack.api.ask("POST", "/experiments", body)["id"]
    for role, member in (("baseline", baseline), ("initial", captured)):
        stack.api.ask("POST", f"/experiments/{experiment}/runs", {"run_id": member, "role": role})
    case = stack.api.get(f"/datasets/{stack.dataset['id']}/cases?limit=1")["cases"][0]["id"]
    made = {"run": run_id, "failures": failures, "baseline": baseline, "captured": captured, "preview": preview}
    named = {"dataset": stack.dataset["id"], "experiment": experiment}
    failed = stack.api.get(f"/runs/{failures}/results?status=failed")["results"][0]
    call = stack.api.get(f"/runs/{failures}/calls?case_id={failed['case_id']}&target_id={failed['target_id']}")["calls"][0]
    routed = stack.api.get(f"/runs/{captured}/calls?decision=doubtful&limit=1")["calls"][0]
    named |= {"failed": failed["cell"], "call": call["id"], "routed": routed["id"]}
    return made | named | {"case": case.replace("/", "%2F"), "contest": contest[0]["id"].replace("/", "%2F")}


def settled(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_text("Loading…")).to_have_count(0)


@pytest.mark.parametrize("name", list(PAGES))
def test_a_page_is_accessible_fits_every_screen_and_breaks_no_policy(
    stack: Stack, browser: Browser, filled: dict[str, str], shoot: Shoot, name: str
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light", locale="en-US")
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda said: faults.append(said.text) if "Content Security Policy" in said.text else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(stack.url + PAGES[name].format(**filled))
    settled(page)
    page.evaluate(AXE.read_text())
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", theme)
            shoot(page, f"{name}-{width}-{theme}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            if asked := CHECKS.get((width, theme)):
                assert violations(page, asked) == [], f"{width} px, {theme}"
    assert faults == []
    context.close()


def violations(page: Page, options: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """The rules that the page breaks, each with the first places."""
    found = page.evaluate("options => axe.run(document, {...options, resultTypes: ['violations']})", options)
    return [(rule["id"], [node["html"][:300] for node in rule["nodes"][:4]]) for rule in found["violations"]]


def test_the_theme_is_chosen_and_kept(go: Go) -> None:
    page = go("/runs")
    root = page.locator("html")
    expect(root).to_have_attribute("data-mantine-color-scheme", "light")
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("menuitem", name="Dark").click()
    expect(root).to_have_attribute("data-mantine-color-scheme", "dark")
    page.reload()
    expect(root).to_have_attribute("data-mantine-color-scheme", "dark")


@pytest.mark.parametrize("name", list(SAID))
def test_every_page_speaks_chinese(stack: Stack, browser: Browser, filled: dict[str, str], shoot: Shoot, name: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="zh-CN")
    page = context.new_page()
    page.goto(stack.url + SAID[name].format(**filled))
    page.wait_for_load_state("networkidle")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.get_by_role("link", name="数据集", exact=True)).to_be_visible()
    expect(page.get_by_text("加载中…")).to_have_count(0)
    shoot(page, f"{name}-zh")
    assert page.locator("main").inner_text().count("undefined") == 0
    named = {run["manifest"]["name"] for run in stack.api.get("/runs?limit=100")["runs"]}
    assert english(page, named | {"accessible experiment", HOSTILE}) == []
    context.close()


def test_an_english_sentence_would_be_found(go: Go) -> None:
    page = go("/runs")
    said = (
        "<p>The runs cannot be compared.</p><pre>A model may say what it likes.</pre><i title='Read every few seconds'></i>"
    )
    page.evaluate("said => document.body.insertAdjacentHTML('beforeend', said)", said)
    sentences = english(page, [])
    assert "The runs cannot be compared." in sentences
    assert "Read every few seconds" in sentences
    assert not any("what it likes" in sentence for sentence in sentences)


def test_the_language_is_chosen_and_kept(go: Go) -> None:
    page = go("/runs")
    page.get_by_role("button", name="Language").click()
    page.get_by_role("menuitem", name="中文").click()
    expect(page.get_by_role("heading", name="运行")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="运行")).to_be_visible()


def first_load(dist: Path) -> set[str]:
    """The scripts that the start page loads before it shows anything of its own, from the build's manifest."""
    manifest: dict[str, Any] = json.loads((dist / ".vite" / "manifest.json").read_text())
    wanted, waiting = set(), [key for key, entry in manifest.items() if entry.get("isEntry")]
    while waiting:
        entry = manifest[waiting.pop()]
        if entry["file"] not in wanted:
            wanted.add(entry["file"])
            waiting.extend(entry.get("imports", []))
    return wanted


def test_the_first_load_is_small_and_no_chart_is_in_it() -> None:
    dist = next(place for place in PLACES if (place / "index.html").is_file())
    scripts = [dist / name for name in first_load(dist) if name.endswith(".js")]
    assert sum(len(gzip.compress(script.read_bytes())) for script in scripts) <= FIRST_LOAD_BYTES
    charts = {path.name for name in ("Charts", "Sankey") for path in (dist / "assets").glob(f"{name}-*.js")}
    assert len(charts) == 2
    assert not charts & {script.name for script in scripts}


def test_the_page_loads_nothing_but_its_own_files(stack: Stack, context: BrowserContext, filled: dict[str, str]) -> None:
    asked: list[str] = []
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    for path in ("/runs", "/create", "/datasets", f"/runs/{filled['run']}/results"):
        page.goto(stack.url + path)
        settled(page)
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith(stack.url)] == []


def test_a_keyboard_reaches_the_content_the_tabs_and_the_rows(stack: Stack, go: Go, filled: dict[str, str]) -> None:
    page = go(f"/runs/{filled['run']}/questions")
    settled(page)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    first = page.locator('.vbody [data-place="0"] button')
    first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator('.vbody [data-place="1"] button')).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary")).to_have_count(0)


def test_a_long_answer_says_that_it_is_cut(stack: Stack, go: Go) -> None:
    long = service.question(1, messages=[{"role": "user", "content": "word " * 10_000 + "\n\nA. yes\nB. no"}])
    run_id = stack.api.run(stack.manifest("compact", cases=[long], name="long"))
    page = go(f"/runs/{run_id}/questions?cell=0")
    page.get_by_text("As the model gets it").click()
    expect(page.get_by_text(re.compile("The first .* characters are shown"))).to_be_visible()
    page.get_by_role("button", name=re.compile("Show all")).click()
    expect(page.get_by_text(re.compile("The first .* characters are shown"))).to_have_count(0)
