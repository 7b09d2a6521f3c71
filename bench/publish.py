"""Writes what the benches measured into docs/performance.md, between the marks `<!-- bench -->` and `<!-- /bench -->`.

python bench/publish.py build/stack_bench.json build/transport_bench.json
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- bench -->", "<!-- /bench -->"


def per_round(rounds: list[dict[str, float]], name: str) -> str:
    """Median and range of one figure over the rounds."""
    values = [one[name] for one in rounds]
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def against(rounds: list[dict[str, float]], base: list[dict[str, float]], name: str, base_name: str) -> str:
    """Median of the ratio within each round."""
    return f"{median(one[name] / raw[base_name] for one, raw in zip(rounds, base, strict=True)):.2f}"


def stack_rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """What the stack bench says to the goals: what, measured, to the raw client, goal."""
    many, few, live = found["runs"].values()
    raw_many, _, raw_live = found["raw"].values()
    everything = "all processes"
    growth = median(a[everything] / b[everything] for a, b in zip(many, few, strict=True))
    stored = median(one["bytes a cell"] for one in many)
    report, again = found["pages"].pop("report")
    slowest, (first, then) = max(found["pages"].items(), key=lambda item: item[1][0])
    return [
        (
            "CPU of all processes per cell, live pace, 256 streams",
            f"{per_round(live, everything)} ms",
            against(live, raw_live, everything, "cpu_ms"),
            "0.8 ms, aim 0.4",
        ),
        (
            "of which the executor",
            f"{per_round(live, 'executor')} ms",
            against(live, raw_live, "executor", "cpu_ms"),
            "5, aim 2",
        ),
        (
            "CPU of all processes per cell, zero delay",
            f"{per_round(many, everything)} ms",
            against(many, raw_many, everything, "cpu_ms"),
            "",
        ),
        (
            "cells per second, zero delay, one executor",
            f"{median(one['cells/s'] for one in many):,.0f}",
            "",
            "1,000, aim 3,000",
        ),
        ("CPU per cell, 6,000 cells against 300", f"{growth:.2f}", "", "1.1, aim 1.0"),
        ("stored bytes per cell, evidence included", f"{stored:.0f}", "", "3,000, aim 1,500"),
        ("report of 16,000 cells, first and again", f"{report:.0f} ms, {again:.0f} ms", "", "1 s, aim 0.1 s"),
        (f"slowest page ({slowest}), first and again", f"{first:.0f} ms, {then:.0f} ms", "", "50 ms, aim 10"),
        ("stack ready after `serve`", f"{found['ready_s']:.2f} s", "", "3 s, aim 1.5"),
    ]


def transport_rows(found: list[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """What the transport bench says to the goals."""
    of = {(row["setting"], row["client"]): row for row in found}
    client = "executor+settle"
    long, live, thousand = (of[setting, client] for setting in ("long-8", "live-256", "live-1000"))
    return [
        (
            "1,000-chunk answer, receipt and evidence included",
            f"{long['cpu_ms']:.2f} ms",
            f"{long['cpu_ratio']:.2f}",
            "5, aim 2",
        ),
        (
            "lateness of the first-token stamp, 99th percentile, 256 streams",
            f"{live['late_p99_ms']:.3f} ms",
            "",
            "5 ms, aim 0.1",
        ),
        ("the same, 1,000 streams", f"{thousand['late_p99_ms']:.3f} ms", "", "5 ms, aim 0.1"),
        ("the raw client's own lateness, 256 streams", f"{of['live-256', 'raw']['late_p99_ms']:.3f} ms", "", ""),
    ]


def memory_row(found: list[dict[str, Any]]) -> tuple[str, str, str, str]:
    """Memory per open stream, from two numbers of streams of the same client."""
    of = {row["setting"]: row["rss_mb"] for row in found if row["client"] == "executor+settle"}
    each_kb = (of["live-1000"] - of["live-256"]) * 1024 / (1000 - 256)
    return ("memory per open stream", f"{each_kb:.0f} kB", "", "100 kB, aim 30")


def main() -> None:
    """Replaces the part between the marks."""
    stack, transport = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])
    rows = [*stack_rows(stack), *transport_rows(transport), memory_row(transport)]
    head = (
        f"Measured {time.strftime('%Y-%m-%d', time.gmtime())} on {os.cpu_count()} cores, {platform.machine()}, "
        f"{platform.python_implementation()} {platform.python_version()}, Linux {platform.release().split('-')[0]}, "
        f"load {stack['load'][0]:.1f} before and {os.getloadavg()[0]:.1f} after, medians of the rounds with their range."
    )
    table = ["| what | measured | to the raw client | must, aim |", "| --- | --- | --- | --- |"]
    table += [f"| {' | '.join(row)} |" for row in rows]
    before, rest = PAGE.read_text().split(BEGIN)
    text = "\n".join([head, "", *table])
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")
    print(text)


if __name__ == "__main__":
    main()
