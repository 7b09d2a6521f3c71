"""The testbed as a process of its own, so that what it received survives everything the tests do to the others."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Upstream:
    """A running testbed. `url` is its root; models answer below `/v1`."""

    url: str
    process: subprocess.Popen[bytes]

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    @contextmanager
    def held(self) -> Iterator[None]:
        """For the length of the block nobody is answered: what is in flight stays in flight."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=60) as answer:
            return json.loads(answer.read())

    def ledger(self) -> list[dict[str, Any]]:
        """Every chat request received."""
        with urllib.request.urlopen(f"{self.url}/testbed/ledger?limit=100000", timeout=60) as answer:
            rows = [json.loads(line) for line in answer.read().splitlines()]
        return [row for row in rows if row["path"].endswith("/chat/completions")]

    def fault(self, rule: dict[str, Any] | list[Any]) -> None:
        request = urllib.request.Request(f"{self.url}/testbed/faults", json.dumps(rule).encode(), method="POST")
        urllib.request.urlopen(request, timeout=60).close()


@contextmanager
def upstream(
    folder: Path, config: dict[str, Any] | None = None, pace: str = "live", answer_key: Path | None = None
) -> Iterator[Upstream]:
    """Starts a testbed on a free port and ends it afterwards."""
    command = [sys.executable, "-m", "srbench_testbed", "--pace", pace]
    if config is not None:
        (folder / "testbed.json").write_text(json.dumps(config))
        command += ["--config", str(folder / "testbed.json")]
    if answer_key is not None:
        command += ["--answer-key", str(answer_key)]
    with (folder / "testbed.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        line = process.stdout.readline().decode()
        assert line.startswith("listening "), (folder / "testbed.log").read_text()
        yield Upstream(line.split()[1], process)
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
