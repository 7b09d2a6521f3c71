"""Structured logs on stderr: one JSON object a line, secrets removed, no task text and no model text."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback

from srbench_kit.redact import Redactor, environment_redactor

SECRET_VARIABLES = ["SR_BENCH_TOKEN", "SR_BENCH_INTERNAL_TOKEN", "HF_TOKEN"]


class _JsonFormatter(logging.Formatter):
    def __init__(self, service: str, redactor: Redactor) -> None:
        super().__init__()
        self._service = service
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "service": self._service,
            "message": record.getMessage(),
        }
        facts = getattr(record, "facts", None)
        if facts:
            entry["facts"] = facts
        if record.exc_info:
            entry["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return self._redactor.text(json.dumps(entry, ensure_ascii=False, default=str))


def configure(service: str, level: str = "INFO", secrets: list[str] | None = None) -> None:
    """Sends all logging of this process to stderr as JSON lines. `secrets` are removed beside those of the environment."""
    handler = logging.StreamHandler(sys.stderr)
    redactor = Redactor(secrets) if secrets else environment_redactor(SECRET_VARIABLES)
    handler.setFormatter(_JsonFormatter(service, redactor))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("httpx").setLevel("WARNING")
    logging.getLogger("alembic").setLevel("WARNING")
