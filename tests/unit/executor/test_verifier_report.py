"""Which reward of 0 says something of a Terminal-Bench task."""

from __future__ import annotations

from pathlib import Path

from srbench_executor.harness.scripts.verifier_report import never_ran

UPSTREAM = "curl -LsSf https://astral.sh/uv/install.sh | sh\nuvx pytest --ctrf /logs/verifier/ctrf.json /tests/test.py\n"


def test_a_verifier_that_could_not_fetch_its_tools_has_judged_nothing_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "test-stdout.txt").write_bytes(b"curl: (6) Could not resolve host: astral.sh\n\xff")
    assert "Could not resolve host" in never_ran(UPSTREAM, tmp_path)
    (tmp_path / "test-stdout.txt").unlink()
    assert never_ran(UPSTREAM, tmp_path).endswith("it ended with: nothing")


def test_a_verifier_that_left_its_report_or_writes_none_has_judged(tmp_path: Path) -> None:
    assert never_ran('if grep -q done /app/x; then echo 1; else echo 0; fi > "/logs/verifier/reward.txt"', tmp_path) == ""
    (tmp_path / "ctrf.json").write_text("{}")
    assert never_ran(UPSTREAM, tmp_path) == ""
