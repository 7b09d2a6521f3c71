"""Changing a router's configuration: planned first, sent under the ETag of what was planned against, and done only when
the router runs what it was given."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from srbench_kit.documents import decode_utf8, load_yaml
from srbench_kit.errors import Conflict, InvalidInput, Unreachable
from srbench_kit.given_files import read_given
from srbench_kit.values import Json

from srbench_cli.router_api import Answer, RouterApi

CONFIG, HASH = "/api/v1/config", "/api/v1/config/hash"
VALIDATE, PLAN, RESTART = "/api/v1/config/validate", "/api/v1/config/plan", "/api/v1/router/restart"
MODES = ("replace", "merge")
MAX_BYTES = 4 * 1024 * 1024
POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A configuration to be sent: its text, and whether it replaces the old one or is merged into it."""

    yaml: str
    mode: str


def read_change(path: Path, mode: str) -> Change:
    """The change in the file at `path`. Raises: `InvalidInput` (of `read_given`, `TOO_LARGE`, `BAD_CONFIG`, of YAML)."""
    data = read_given(path, MAX_BYTES)
    if len(data) > MAX_BYTES:
        raise InvalidInput("TOO_LARGE", f"{path} is larger than {MAX_BYTES} bytes", value=path)
    text = decode_utf8(data, path.name)
    if not isinstance(load_yaml(text, path.name), dict):
        raise InvalidInput("BAD_CONFIG", f"{path} is no object; expected a router's configuration", value=path)
    return Change(yaml=text, mode=mode)


def validate(api: RouterApi, change: Change) -> dict[str, Json]:
    """What the router says of the configuration, which stays as it is. Raises: as `RouterApi.send`."""
    return api.send("POST", VALIDATE, {"yaml": change.yaml, "mode": change.mode}, "").body


def plan(api: RouterApi, change: Change) -> Answer:
    """What the change would do; its ETag names the configuration that was planned against. Raises: as `RouterApi.send`."""
    return api.send("POST", PLAN, {"yaml": change.yaml, "mode": change.mode}, "")


def apply(api: RouterApi, change: Change, timeout_s: float, say: Callable[[str], None]) -> dict[str, Json]:
    """Makes the change and returns the router's hashes once it is in force.

    Raises: `Conflict` (`RESTART_REQUIRED`, `CONFIG_CHANGED`, `SUPERSEDED`), `Unreachable` (`NOT_ACTIVE`), and as
    `RouterApi.send`.
    """
    planned = plan(api, change)
    if planned.body.get("restart_required") is True:
        reasons = planned.body.get("restart_reasons")
        what = ", ".join(str(reason) for reason in reasons) if isinstance(reasons, list) and reasons else "something"
        raise Conflict(
            "RESTART_REQUIRED",
            f"{what} changed, which a running router cannot take; nothing was changed. Hand it over with "
            "`vllm-sr serve --replace-active-config --config FILE`",
        )
    method = "PUT" if change.mode == "replace" else "PATCH"
    answer = api.send(method, CONFIG, {"yaml": change.yaml}, _etag(api, planned))
    return wait_active(api, _expected(answer, planned), timeout_s, say)


def replace_by_restart(api: RouterApi, change: Change, timeout_s: float, say: Callable[[str], None]) -> dict[str, Json]:
    """Restarts the router with the configuration and returns its hashes once that is in force. Raises: as `apply`."""
    planned = plan(api, change)
    answer = api.send("POST", RESTART, {"yaml": change.yaml}, _etag(api, planned))
    say("the router restarts with the new configuration")
    return wait_active(api, _expected(answer, planned), timeout_s, say)


def wait_active(api: RouterApi, expected: str, timeout_s: float, say: Callable[[str], None]) -> dict[str, Json]:
    """The hashes once the router runs `expected`.

    Raises: `Conflict` (`SUPERSEDED`, `ACTIVATION_FAILED`), `Unreachable` (`NOT_ACTIVE`) at the deadline.
    """
    until = time.monotonic() + timeout_s
    last = "it did not answer"
    while True:
        try:
            found = api.get(HASH).body
        except Unreachable as error:
            # While it restarts nothing answers.
            last = error.message
        else:
            if found.get("active_runtime_hash") == expected:
                say(f"the router runs {expected}")
                return found
            if found.get("generated_runtime_hash") != expected:
                raise Conflict(
                    "SUPERSEDED",
                    f"another change came in between: the router is to run "
                    f"{found.get('generated_runtime_hash')}, not {expected}",
                )
            if found.get("activation_status") == "failed":
                raise Conflict("ACTIVATION_FAILED", f"the router could not take {expected}; what ran before runs on")
            last = f"activation_status is {found.get('activation_status')}"
        if time.monotonic() >= until:
            raise Unreachable("NOT_ACTIVE", f"the router does not run {expected} after {timeout_s:g} s: {last}")
        time.sleep(POLL_S)


def _etag(api: RouterApi, planned: Answer) -> str:
    """The ETag to change under: of the plan, so that nobody's change in between is lost."""
    told = planned.etag or planned.body.get("etag")
    return told if isinstance(told, str) and told else api.get(CONFIG).etag


def _expected(answer: Answer, planned: Answer) -> str:
    for found in (answer, planned):
        value = found.body.get("generated_runtime_hash")
        if isinstance(value, str) and value:
            return value
    raise Conflict("NOT_A_ROUTER", "the router does not say which configuration it made; look at it before going on")
