"""Servers that nobody here wrote, as processes: started on a free port, waited for, ended by their own pid."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port

HOME = Path(os.environ.get("SR_BENCH_FOREIGN_HOME", "~/.cache/sr-bench/foreign")).expanduser()
# LiteLLM imports for 6 to 12 seconds on two free cores.
START_S = 150.0


def prepared(place: str) -> Path:
    """A path of the prepared machine."""
    found = HOME / place
    assert found.exists(), f"there is no {found}; run tools/prepare-foreign"
    return found


@contextmanager
def served(command: list[str], folder: Path, ready: str, env: dict[str, str] | None = None) -> Iterator[str]:
    """The root address of `command`, to which `--host` and `--port` are added, once `ready` answers below it."""
    port = free_port()
    log = folder / "server.log"
    with log.open("wb") as out:
        whole = [*command, "--host", "127.0.0.1", "--port", str(port)]
        process = subprocess.Popen(whole, env=os.environ | (env or {}), stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + START_S
        while not _answers(url + ready):
            assert process.poll() is None, f"it ended at its start: {log.read_text()[-2000:]}"
            assert time.monotonic() < deadline, f"it does not answer: {log.read_text()[-2000:]}"
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
