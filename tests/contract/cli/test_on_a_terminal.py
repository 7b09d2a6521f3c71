"""What a command shows on a terminal, and what Ctrl-C does there."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RUN_ID = "run-0199b2c3d4e5f6a7b8c9"
# What a shell started in the background ignores the signal, and hands that on to all that it starts.
HEARS_CTRL_C = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.executable, [sys.executable, '-m', 'srbench_cli', *sys.argv[1:]])"
)


def on_terminal(arguments: list[str], folder: Path, *, interrupt_after: str = "", **variables: str) -> tuple[int, str]:
    """Runs `sr-bench …` on a terminal; its exit code and what was shown. `interrupt_after` sends Ctrl-C once seen."""
    master, slave = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SR_BENCH_")} | {
        "TERM": "xterm",
        "COLUMNS": "160",
        **variables,
    }
    process = subprocess.Popen(
        [sys.executable, "-c", HEARS_CTRL_C, *arguments],
        stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    shown, sent, deadline = b"", False, time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.1)[0]:
            try:
                shown += os.read(master, 65536)
            except OSError:
                break
        if interrupt_after and not sent and interrupt_after.encode() in shown:
            process.send_signal(signal.SIGINT)
            sent = True
    os.close(master)
    return process.wait(timeout=60), shown.decode("utf-8", "replace")


def test_on_a_terminal_a_report_is_a_table_that_calls_unknown_costs_unknown(service: Any, tmp_path: Path) -> None:
    code, shown = on_terminal(["report", RUN_ID, "--url", service.url], tmp_path)
    assert code == 0
    assert "75.0 % (3/4)" in shown
    assert "9007199254740993" in shown
    assert "9007199254740992" not in shown
    assert "The cost of mom is unknown: some calls have no usage" in " ".join(shown.split())
    assert "Strongest single model: alpha, 3 of 4 right" in shown
    assert "25.0 points above alpha, cost unknown" in " ".join(shown.split())


def test_nothing_from_outside_reaches_the_terminal_as_a_control(service: Any, tmp_path: Path) -> None:
    for view in (
        ["show", RUN_ID, "--results"],
        ["show", RUN_ID, "--call-id", "c"],
        ["runs"],
        ["evidence", RUN_ID, "call-1"],
    ):
        code, shown = on_terminal([*view, "--url", service.url], tmp_path)
        assert code == 0
        assert "\x1b]0;" not in shown
        assert "\x07" not in shown
        assert "\u202e" not in shown
        assert '\x1b[31m"}' not in shown
        assert "\\x1b" in shown
    _, shown = on_terminal(["show", RUN_ID, "--call-id", "c", "--url", service.url], tmp_path)
    assert "[red]evil[/red] <img src=x>" in shown
    assert "second line" in shown


def test_a_locale_that_lacks_a_character_ends_no_command(service: Any, tmp_path: Path) -> None:
    code, shown = on_terminal(
        ["show", RUN_ID, "--call-id", "c", "--url", service.url], tmp_path, PYTHONIOENCODING="latin-1"
    )
    assert code == 0
    assert "\\u7b2c second line" in shown


def test_ctrl_c_ends_only_the_wait_and_says_how_to_come_back(service: Any, manifest: Path, tmp_path: Path) -> None:
    service.polls_to_end = 10_000
    arguments = ["run", "--manifest", str(manifest), "--url", service.url]
    code, shown = on_terminal(arguments, tmp_path, interrupt_after="1/4 cells")
    assert code == 130
    text = " ".join(shown.split())
    assert "the run goes on" in text
    assert f"`sr-bench --url {service.url} report {RUN_ID}`" in text
    assert f"`sr-bench --url {service.url} cancel {RUN_ID}`" in text
    assert "CancelRun" not in service.requests
