"""A run of 100,000 cells in the browser: what is in sight exists, the rest stays on the service."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import work_queue_service_pb2 as queue
from srbench_accounting.schema import row_id

from tests.browser import service
from tests.browser.service import Stack

Go = Any
CASES, TARGETS = 25_000, ("compact", "frontier", "mixture", "broken")
CELLS = CASES * len(TARGETS)
MOST_ROWS = 80


@pytest.fixture(scope="module")
def large(stack: Stack) -> str:
    """A run that was stopped at once, and whose ledger then got rows for all of its cells.

    Only the rows are put there by hand: to buy 100,000 answers takes minutes, and what is tested is how they are read.
    """
    cases = [service.question(number) for number in range(CASES)]
    run_id = stack.api.start(stack.manifest(*TARGETS, cases=cases, name="large", limits={"concurrency": 1}))
    stack.api.ask("POST", f"/runs/{run_id}/cancel", {})
    stack.api.finish(run_id)
    stack.api.get(f"/runs/{run_id}/spend")
    fill(stack, run_id)
    assert stack.api.get(f"/runs/{run_id}/results?limit=1")["total"] == CELLS
    return run_id


def fill(stack: Stack, run_id: str) -> None:
    """Writes a call with its receipt and an outcome for every cell that has none."""
    with sqlite3.connect(stack.store / "accounting.sqlite3", timeout=60) as ledger:
        (run_no,) = ledger.execute("SELECT run_no FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        known = {cell for (cell,) in ledger.execute("SELECT cell FROM outcomes WHERE run_no = ?", (run_no,))}
        known |= {cell for (cell,) in ledger.execute("SELECT cell FROM calls WHERE run_no = ?", (run_no,))}
        counts = ledger.execute("SELECT call_count, outcome_count FROM runs WHERE run_no = ?", (run_no,)).fetchone()
        missing = [cell for cell in range(CELLS) if cell not in known]
        outcomes_of_known = CELLS - len(missing) - counts[1]
        assert outcomes_of_known == 0, "a cell was sent whose outcome is not there yet"
        ledger.executemany(INSERT_OUTCOME, [outcome(run_no, counts[1] + at, cell) for at, cell in enumerate(missing, 1)])
        ledger.executemany(INSERT_CALL, [call(run_no, counts[0] + at, cell) for at, cell in enumerate(missing, 1)])
        ledger.executemany(INSERT_RECEIPT, [receipt(run_no, counts[0] + at, cell) for at, cell in enumerate(missing, 1)])
        ledger.execute(
            "UPDATE runs SET outcome_count = ?, call_count = ? WHERE run_no = ?", (CELLS, counts[0] + len(missing), run_no)
        )


INSERT_OUTCOME = (
    "INSERT INTO outcomes (outcome_id, run_no, cell, token, case_index, target_index, state, correct, score,"
    " output_limit, start_us, finish_after_us, rest) VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, 0, 1796000000000000, 250000, x'')"
)
INSERT_CALL = (
    "INSERT INTO calls (call_id, run_no, cell, ordinal, offer, token, case_index, target_index, role, reserved,"
    " dispatch_us, request_sha256, request_byte_count, message_count, max_output_tokens)"
    " VALUES (?, ?, ?, 0, 0, 1, ?, ?, ?, 1000, 1796000000000000, zeroblob(32), 100, 1, 64)"
)
INSERT_RECEIPT = (
    "INSERT INTO receipts (call_id, status, output_complete, usage_final, http_status, latency_ns, ttft_ns, input_tokens,"
    " cached_input_tokens, cache_write_tokens, output_tokens, cost, rest)"
    " VALUES (?, ?, 1, 1, 200, ?, 1000000, 10, 0, 0, 5, ?, x'')"
)


def outcome(run_no: int, place: int, cell: int) -> tuple[int | float, ...]:
    right = int(cell % 3 == 0)
    where = (cell // len(TARGETS), cell % len(TARGETS))
    return (row_id(run_no, place), run_no, cell, *where, queue.CELL_STATE_DONE, right, float(right))


def call(run_no: int, place: int, cell: int) -> tuple[int, ...]:
    where = (cell // len(TARGETS), cell % len(TARGETS))
    return (row_id(run_no, place), run_no, cell, *where, accounting.CALL_ROLE_SUBJECT)


def receipt(run_no: int, place: int, cell: int) -> tuple[int, ...]:
    return (row_id(run_no, place), accounting.CALL_STATUS_COMPLETED, 1_000_000 + cell, 1_000_000 + cell * 7 % CELLS)


def in_sight(page: Page) -> int:
    return page.locator(".vbody [data-place]").count()


def test_the_table_scrolls_from_end_to_end_with_few_rows(go: Go, large: str) -> None:
    page = go(f"/runs/{large}/questions")
    expect(page.get_by_text("100,000 rows", exact=False)).to_be_visible()
    scroller = page.locator(".vtable-scroll")
    for share in (0.25, 0.5, 0.75, 1.0):
        scroller.evaluate("(element, share) => { element.scrollTop = element.scrollHeight * share }", share)
        expect(page.get_by_role("row").filter(has_text="mmlu-pro/").first).to_be_visible()
        assert in_sight(page) <= MOST_ROWS
    expect(page.locator(f'.vbody [data-place="{CELLS - 1}"]')).to_be_visible()
    expect(page.locator(f'.vbody [data-place="{CELLS - 1}"]')).to_contain_text("mmlu-pro/")
    assert page.locator('[role="table"]').get_attribute("aria-rowcount") == str(CELLS + 1)


def test_a_filter_and_an_order_cover_all_hundred_thousand_rows(stack: Stack, go: Go, large: str) -> None:
    page = go(f"/runs/{large}/questions")
    expect(page.get_by_text("100,000 rows", exact=False)).to_be_visible()
    page.get_by_role("combobox", name="Verdict").click()
    page.get_by_role("option", name="Right", exact=True).click()
    right = stack.api.get(f"/runs/{large}/results?correct=true&limit=1")["total"]
    assert right > CELLS / 4
    expect(page.get_by_text(f"{right:,} rows", exact=False)).to_be_visible()
    page.get_by_role("button", name="Spend").click()
    expect(page.locator('.vbody [data-place="0"]')).to_contain_text("$")


def test_calls_scroll_alike(go: Go, large: str) -> None:
    page = go(f"/runs/{large}/calls?by=latency&desc=true")
    expect(page.locator('.vbody [data-place="0"]')).to_contain_text("mmlu-pro/")
    page.locator(".vtable-scroll").evaluate("element => { element.scrollTop = element.scrollHeight }")
    expect(page.locator(".vbody [data-place]").last).to_contain_text("mmlu-pro/")
    assert in_sight(page) <= MOST_ROWS
