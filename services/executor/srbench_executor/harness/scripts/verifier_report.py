"""Tells a verifier that found the task undone from one that never came to look.

Runs in the harness's interpreter: the standard library alone.
"""

from __future__ import annotations

from pathlib import Path

REPORT = "ctrf.json"
_TAIL = 400


def never_ran(script: str, verifier: Path) -> str:
    """Why a reward of 0 says nothing of the task, as a sentence; empty where it does.

    Terminal-Bench's verifiers fetch what they need, then have pytest write a report, and give 0 for whatever fails on the
    way. One that was to leave a report and left none could not fetch its tools: no test has looked at the container.

    Args:
        script: the text of the task's `tests/test.sh`.
        verifier: the folder with what the verifier left.
    """
    if f"/{REPORT}" not in script or (verifier / REPORT).is_file():
        return ""
    said = verifier / "test-stdout.txt"
    tail = said.read_text(errors="replace")[-_TAIL:].strip() if said.is_file() else ""
    return f"the verifier gave 0 without having run its tests; it ended with: {tail or 'nothing'}"
