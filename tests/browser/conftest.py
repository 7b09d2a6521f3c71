"""One stack for all browser tests of a session, and pages that are watched while they are used."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright
from srbench_gateway.dashboard import PLACES

from tests.browser import service
from tests.browser.odd_upstream import HOSTILE, odd_upstream
from tests.browser.service import SEED, Api, Stack
from tests.contract.datasets.conftest import Hub, handler_of
from tests.e2e.upstream import upstream

ROOT = Path(__file__).parent.parent.parent
SCREENSHOTS = ROOT / "build" / "screenshots"
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
MMLU_FILE = "data/test-00000-of-00001.parquet"
MMLU_REVISION = "b189ec765aa7ed75c8acfea42df31fdae71f97be"
ARC_REVISION = "f3283f727488ad98fe575ea6a5ac981e4a188e49"
BROKEN = {
    "fault": "http_status",
    "match": {"model": "broken", "prompt_substring": "Question 1"},
    "params": {"status": 500, "message": HOSTILE},
}
Go = Callable[..., Page]
# Machines that run all tests at once are slow; a passing test never waits that long.
expect.set_options(timeout=60_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's chromium; a machine without it fails the tests, for skipped ones would prove nothing."""
    if not CHROMIUM.exists():
        pytest.fail("the browser tests need /usr/bin/chromium: tools/prepare-browser installs it")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser's profile of its own: no cookies, no storage."""
    made = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US", color_scheme="light")
    yield made
    made.close()


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub that has synthetic MMLU-Pro questions under the pinned revision."""
    folder = tmp_path_factory.mktemp("synthetic")
    service.module("srbench_testbed.synthetic", "--out", str(folder), "--seed", str(SEED))
    parquet = next((folder / "mmlu-pro").glob("*.parquet"))
    made = Hub(files={("TIGER-Lab/MMLU-Pro", MMLU_REVISION, MMLU_FILE): parquet.read_bytes()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(made))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    yield made
    made.ended.set()
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, hub: Hub) -> Iterator[Stack]:
    """The stack, with targets registered and a small dataset of two benchmarks prepared."""
    if not any((place / "index.html").is_file() for place in PLACES):
        pytest.fail("the browser tests need the built pages: make dashboard")
    folder = tmp_path_factory.mktemp("stack")
    arc = folder / "arc"
    service.module("srbench_testbed.arc_export", "--out", str(arc))
    with (
        upstream(folder, service.TESTBED | {"faults": [BROKEN]}, answer_key=service.answer_key(folder)) as testbed,
        odd_upstream() as odd,
        service.serving(folder / "store", HF_ENDPOINT=hub.url) as api,
    ):
        document = folder / "targets.json"
        registered = service.testbed_targets(folder / "testbed.json", testbed.base_url)
        registered.append({"id": HOSTILE, "kind": "single", "model": "odd", "base_url": odd, "response_mode": "json"})
        document.write_text(json.dumps({"targets": registered}))
        service.command("--url", api.url, "target", "register", "--file", str(document))
        targets = {target["id"]: target for target in api.get("/targets")["targets"]}
        body = {"benchmark": "arc-agi-2", "profile": "smoke", "source_path": str(arc), "revision": ARC_REVISION}
        yield Stack(api, folder / "store", testbed.url, targets, service.prepared(api, body))


@pytest.fixture
def api(stack: Stack) -> Api:
    return stack.api


class Watch:
    """What went wrong on a page while a test used it: broken policies, thrown errors, requests that left the origin."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.faults: list[str] = []

    def attach(self, page: Page) -> None:
        page.on("console", lambda message: self._said(message.type, message.text))
        page.on("pageerror", lambda error: self.faults.append(f"thrown: {error}"))
        page.on("request", self._asked)

    def _said(self, kind: str, text: str) -> None:
        if "Content Security Policy" in text or (kind == "error" and "Failed to load resource" not in text):
            self.faults.append(f"console: {text}")

    def _asked(self, request: Request) -> None:
        url = urlsplit(request.url)
        if f"{url.scheme}://{url.netloc}" != self.origin and url.scheme not in ("data", "blob"):
            self.faults.append(f"left the origin: {request.url}")


@pytest.fixture
def go(stack: Stack, context: BrowserContext) -> Iterator[Go]:
    """Opens a path of the Dashboard in a new tab."""
    watch = Watch(stack.url)
    context.set_default_timeout(60_000)

    def open_page(path: str = "/", page: Page | None = None) -> Page:
        if page is None:
            page = context.new_page()
            watch.attach(page)
        page.goto(stack.url + path)
        return page

    yield open_page
    assert watch.faults == []


@pytest.fixture
def shoot() -> Callable[[Page, str], None]:
    """Writes a screenshot of the whole page."""

    def take(page: Page, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    return take
