"""What a session says of a program that ended, without a sandbox around it."""

from __future__ import annotations

import subprocess
import sys

from srbench_grader.sandbox.session import Session


def session_of(text: str) -> Session:
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    return Session(process, kill=process.kill, clean=lambda: None, wall_s=60.0, output_bytes=1024)


def test_streams_that_close_before_the_program_ends_do_not_hide_how_it_ended() -> None:
    session = session_of("import os, time\nos.close(1)\nos.close(2)\ntime.sleep(0.2)\nos._exit(3)")
    try:
        assert session.last_words() == "exit code 3: no message"
    finally:
        session.close()
