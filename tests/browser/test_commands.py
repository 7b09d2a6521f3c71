"""Every page gives what it shows as a command line, and the command line knows every one of them."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import BrowserContext, Page, expect
from srbench_cli.context import Session
from srbench_cli.main import benchmark

from tests.browser.conftest import ROOT
from tests.browser.service import Api, Stack

Go = Any
COPY = "Copy as CLI command"
# What is copied is kept in the page: reading the clipboard would need a window in front.
KEEP = "window.copied = []; navigator.clipboard.writeText = async text => { window.copied.push(text) }"


def copied(page: Page) -> list[str]:
    """The commands of a page as it stands."""
    buttons = page.get_by_role("button", name=COPY)
    expect(buttons.first).to_be_visible()
    for button in buttons.all():
        button.click()
    found: list[str] = page.evaluate("window.copied.splice(0)")
    return found


def refusal(command: str) -> str:
    """Why the command line does not take `command`; empty when it does. Nothing is run: help is asked for."""
    words = shlex.split(re.sub(r" <<'SR_BENCH'\n.*", "", command, flags=re.DOTALL))
    assert words[0] == "sr-bench"
    done = CliRunner().invoke(benchmark, [*words[1:], "--help"], obj=Session("sr-bench"))
    return "" if done.exit_code == 0 else f"{command[:200]}: {done.exception or done.output[-300:]}"


@pytest.fixture(scope="module")
def places(stack: Stack) -> dict[str, str]:
    baseline = stack.api.run(stack.manifest("compact", "broken", name="baseline of commands"))
    router = stack.api.run(stack.manifest("captured", name="router of commands"))
    made = stack.api.ask("POST", "/experiments", {"name": "commands", "idempotency_key": "commands"})["id"]
    call = stack.api.get(f"/runs/{baseline}/calls?limit=1")["calls"][0]["id"]
    named = {"baseline": baseline, "router": router, "experiment": made}
    return named | {"call": call, "dataset": stack.dataset["id"]}


@pytest.mark.parametrize(
    "path",
    [
        "/runs?q=baseline&status=completed",
        "/create?baseline={baseline}&target=%5B%22mixture%22%5D",
        "/datasets",
        "/datasets/{dataset}",
        "/targets",
        "/experiments/{experiment}",
        "/runs/{baseline}/results",
        "/runs/{baseline}/questions",
        "/runs/{baseline}/calls?call={call}",
        "/runs/{baseline}/evidence",
        "/runs/{router}/recipe",
        "/runs/{baseline}/recovery",
        "/compare?baseline={baseline}&candidate=%5B%22{router}%22%5D&outcome=win&by=cost_delta&desc=true",
    ],
)
def test_what_a_page_copies_is_a_command(go: Go, context: BrowserContext, places: dict[str, str], path: str) -> None:
    context.add_init_script(KEEP)
    page = go(path.format(**places))
    page.wait_for_load_state("networkidle")
    commands = copied(page)
    assert commands
    assert [why for why in map(refusal, commands) if why] == []


def test_a_recovery_and_a_settlement_can_be_taken_to_the_shell(
    go: Go, context: BrowserContext, places: dict[str, str]
) -> None:
    context.add_init_script(KEEP)
    page = go(f"/runs/{places['baseline']}/recovery")
    page.get_by_role("radio", name="Failed").click()
    page.get_by_role("button", name="Review recovery plan").click()
    expect(page.get_by_role("table", name="Cells to try again")).to_be_visible()
    commands = copied(page)
    assert any(" recover " in command and '"selected_cells"' in command for command in commands)
    page.get_by_role("table", name="Calls of unknown cost").get_by_role("button").first.click()
    form = page.get_by_role("dialog")
    form.get_by_role("textbox", name="Usage object").fill('{"prompt_tokens": 3, "completion_tokens": 1}')
    form.get_by_role("textbox", name="Where you have it from").fill("it's in the console")
    form.get_by_role("button", name=COPY).click()
    commands += page.evaluate("window.copied.splice(0)")
    assert any(" settle " in command for command in commands)
    assert [why for why in map(refusal, commands) if why] == []


def test_everything_is_found_by_its_name_from_any_page(go: Go, stack: Stack, api: Api) -> None:
    run_id = api.run(stack.manifest("compact", name="found by its name"))
    page = go("/targets")
    expect(page.get_by_role("button", name="Go to…")).to_be_visible()
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Go to")
    expect(box).to_be_focused()
    expect(page.get_by_role("option").first).to_contain_text("Runs")
    box.fill("found by its")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/runs/{run_id}/results"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("next and previous row of a list")
    page.get_by_role("combobox", name="Go to").fill("nothing is called like this")
    expect(dialog.get_by_text("Nothing is called so.")).to_be_visible()
    page.evaluate((ROOT / "gateway/dashboard/node_modules/axe-core/axe.min.js").read_text())
    assert (
        page.evaluate("axe.run(document.querySelector('dialog')).then(found => found.violations.map(rule => rule.id))")
        == []
    )
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
