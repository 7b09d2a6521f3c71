"""Pages that stand alone: what they show, to whom, and that nothing in them can run or load anything."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from srbench.v1 import comparison_pb2, judging_pb2, planner_service_pb2, report_pb2
from srbench_gateway.paper import comparison_page, markup, run_page

V1 = "/api/sr-bench/v1"
TOKEN = "a-token-for-callers-from-outside"
HOSTILE = "</title><script>alert(1)</script>\x00\u202e<img src=http://127.0.0.1:9/x onerror=alert(1)>\x1b[31m'\""
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "section", "h1", "h2", "p", "div", "strong"),
    *(
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "dl",
        "dt",
        "dd",
        "code",
        "ul",
        "li",
        "bdi",
        "svg",
        "line",
        "circle",
        "br",
    ),
}


class Tags(HTMLParser):
    """Which elements and attributes a page has, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.said: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def hostile_report() -> report_pb2.Report:
    report = report_pb2.Report(run_id=HOSTILE, status="completed", mode="live", limitations=[HOSTILE], cost_policy=HOSTILE)
    row = report.summary.targets.add(id=HOSTILE, total=2, correct=1, accuracy=0.5, accuracy_ci95=[0.1, 0.9])
    row.failure_reasons[HOSTILE] = 1
    row.decisions[HOSTILE] = 1
    report.benchmarks.add(benchmark=HOSTILE, target_id=HOSTILE)
    report.provenance.target_profiles.add(id=HOSTILE, model=HOSTILE, kind="mom")
    report.provenance.adapter_versions[HOSTILE] = HOSTILE
    audited = judging_pb2.AuditedAccuracy(benchmark=HOSTILE, target_id=HOSTILE)
    agreed = judging_pb2.JudgeAgreement(benchmark=HOSTILE)
    report.judging.CopyFrom(judging_pb2.Judging(auditor=HOSTILE, audited=[audited], agreements=[agreed]))
    return report


def hostile_comparison() -> comparison_pb2.ComparisonReport:
    found = comparison_pb2.ComparisonReport(baseline_run_id=HOSTILE, baseline_selection=HOSTILE, verdict_rule=HOSTILE)
    found.comparisons.add(candidate_run_id=HOSTILE, candidate_target_id=HOSTILE, verdict=HOSTILE, verdict_sentence=HOSTILE)
    found.candidates.add(run_id=HOSTILE)
    found.candidate_targets.add(id=HOSTILE)
    return found


def pages() -> dict[str, str]:
    run = planner_service_pb2.Run(id=HOSTILE, status=HOSTILE)
    run.plan.name = HOSTILE
    return {
        "run": run_page.page(run, hostile_report()),
        "comparison": comparison_page.page(hostile_comparison(), {HOSTILE: HOSTILE}),
    }


@pytest.mark.parametrize("name", ["run", "comparison"])
def test_no_name_becomes_markup(name: str) -> None:
    page = pages()[name]
    tags = Tags(page)
    assert tags.names <= ALLOWED
    assert {"src", "href", "onerror", "style"} & set(tags.attributes) == set()
    assert any("<script>alert(1)</script>" in said for said in tags.said)
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", page)
    # What turns the direction of writing is shut in with the text that it came with.
    outside = re.sub(r"<bdi>.*?</bdi>", "", page.split("</head>")[1], flags=re.DOTALL)
    assert "\u202e" not in outside


async def test_the_page_of_a_run_says_what_its_report_says(stand: Any) -> None:
    run_id = await stand.run()
    answer = await stand.http.get(f"{V1}/runs/{run_id}/report.html")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = answer.headers["content-security-policy"]
    assert policy == markup.CONTENT_SECURITY_POLICY
    assert "script" not in policy
    assert "unsafe" not in policy
    said = " ".join(Tags(answer.text).said)
    for wanted in ("50.0 %", "[10.0, 90.0]", "1 / 2", "unknown", run_id, f"sr-bench report {run_id}"):
        assert wanted in said


async def test_the_page_of_a_comparison_says_the_verdict_and_its_interval(stand: Any) -> None:
    base, other = await stand.run(), await stand.run()
    path = f"{V1}/comparisons/report.html?baseline_run_id={base}&candidate_run_ids={other}&margin_thousandths=20"
    answer = await stand.http.get(path)
    assert answer.status_code == 200
    said = " ".join(Tags(answer.text).said)
    for wanted in ("not established", "[-5.0, +10.0]", "[-7.0, +12.0]", "unknown: =the cost is unknown", base, other):
        assert wanted in said


COMPARED = "/comparisons/report.html?baseline_run_id={run}&candidate_run_ids={run}"


@pytest.mark.parametrize("path", ["/runs/{run}/report.html", COMPARED])
async def test_a_page_is_for_those_who_may_see_the_run(start: Any, path: str) -> None:
    stand = await start(TOKEN)
    ann, bob = ({"x-sr-bench-actor-id": name, "x-sr-bench-actor-role": "read"} for name in ("ann", "bob"))
    run_id = await stand.run(**ann | {"x-sr-bench-actor-role": "write"})
    assert (await stand.http.get(V1 + path.format(run=run_id), headers=ann)).status_code == 200
    refused = await stand.http.get(V1 + path.format(run=run_id), headers=bob)
    assert (refused.status_code, refused.json()["reason"]) == (404, "NO_SUCH_RUN")
    nobody = await stand.http.get(V1 + path.format(run=run_id), headers={"authorization": "Bearer wrong"})
    assert nobody.status_code == 401
