"""What a runner hands back, as one JSON file with a strict schema. Pure but for the reading of that one file."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from srbench_kit.completion import dump_json, load_json
from srbench_kit.values import Json

SCHEMA = "sr-bench-harness-result-v1"
MAX_BYTES = 256 * 1024
_REASON = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_FIELDS = frozenset({"schema", "status", "reward", "reason", "message", "trajectory", "versions", "details"})


class BadResult(Exception):
    """A result file that cannot be taken; the sentence says which field and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A runner's result.

    Attributes:
        status: `completed`; `failed`, with a reason and without a reward.
        reward: the upstream reward or score, finite; `None` when failed, and where a grader finds it out by itself.
        reason: stable word in snake_case: why it failed, or how the episode ended; may be empty when completed.
        message: a sentence for people, at most 2000 characters.
        trajectory: path below the artifact folder; empty for none.
        versions: what ran, by name: harness, agent, image digests.
        details: more facts, such as tests by name.
    """

    status: str
    reward: float | None
    reason: str
    message: str
    trajectory: str
    versions: dict[str, str] = field(default_factory=dict)
    details: dict[str, Json] = field(default_factory=dict)


def read_result(path: Path) -> Result:
    """The result in the file at `path`. Raises: `BadResult`."""
    try:
        if path.is_symlink() or not path.is_file():
            raise BadResult("the runner ended without a result")
        if path.stat().st_size > MAX_BYTES:
            raise BadResult(f"the result is longer than {MAX_BYTES} bytes")
        found: Json = load_json(path.read_bytes())
    except OSError as error:
        raise BadResult(f"the result cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadResult("the result is no JSON document") from error
    return checked(found)


def checked(found: Json) -> Result:
    """`found` as a result. Raises: `BadResult` with the field at fault."""
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise BadResult(f"the result is no object with the schema {SCHEMA}")
    if unknown := sorted(set(found) - _FIELDS):
        raise BadResult(f"the result has the unknown field {unknown[0]}; expected {', '.join(sorted(_FIELDS))}")
    status, reward, reason = found.get("status"), found.get("reward"), found.get("reason", "")
    if status not in ("completed", "failed"):
        raise BadResult(f"status is {status!r}; expected completed or failed")
    if status == "completed" and reward is not None and not _is_reward(reward):
        raise BadResult(f"reward is {reward!r}; expected a finite number, or null for the grader to find out")
    if status == "failed" and reward is not None:
        raise BadResult(f"reward is {reward!r}; expected null where status is failed")
    if not isinstance(reason, str) or not (_REASON.match(reason) or (reason == "" and status == "completed")):
        raise BadResult(f"reason is {reason!r}; expected a word in snake_case")
    versions, details = ({} if found.get(name) is None else found[name] for name in ("versions", "details"))
    if not isinstance(versions, dict) or not all(isinstance(value, str) for value in versions.values()):
        raise BadResult("versions is no object of texts")
    if not isinstance(details, dict):
        raise BadResult("details is no object")
    return Result(
        status=str(status),
        reward=float(reward) if _is_reward(reward) and isinstance(reward, int | float) else None,
        reason=reason,
        message=_message(found.get("message")),
        trajectory=_trajectory(found.get("trajectory")),
        versions={name: str(value) for name, value in versions.items()},
        details=details,
    )


def evidence(result: Result) -> str:
    """The result as the grader gets it."""
    found: dict[str, Json] = {
        "schema": SCHEMA,
        "status": result.status,
        "reward": result.reward,
        "reason": result.reason,
        "message": result.message,
        "versions": dict(result.versions),
        "details": result.details,
    }
    return dump_json(found).decode()


def _is_reward(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _message(value: Json) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadResult("message is no text")
    return value[:2000]


def _trajectory(value: Json) -> str:
    if value is None or value == "":
        return ""
    path = PurePosixPath(value) if isinstance(value, str) else None
    if path is None or path.is_absolute() or ".." in path.parts:
        raise BadResult(f"trajectory is {value!r}; expected a path below the artifact folder")
    return str(path)
