"""A router's own management: its configuration in versions, changed under its ETag, in force at once, later, or after a
restart. The answers have the members that the real router's have."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from srbench_kit.documents import load_yaml
from srbench_kit.errors import Conflict, InvalidInput, NotFound
from srbench_kit.values import Json

from srbench_testbed.config import Router, check_routes, with_document
from srbench_testbed.fields import Fields

# What a running process cannot change: the addresses that it listens at.
RESTART_KEYS = ("listeners",)
RESTART_S = 0.2
MODES = ("merge", "replace")
SECTIONS = ("recipes", "entrypoints", "evaluation", "routing", "global", "listeners")


@dataclass(slots=True)
class State:
    """One router: what it runs, what it is to run from `due` on, and every source that was saved."""

    active: Router
    saved: Router
    due: float = 0.0
    versions: list[tuple[str, float, Router]] = field(default_factory=list)


class Routers:
    """The routers of a testbed as they are now."""

    def __init__(
        self, routers: Iterable[Router], models: Collection[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._models = models
        self._states = {router.id: State(active=router, saved=router) for router in routers}
        for state in self._states.values():
            self._remember(state)

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def get(self, name: str) -> Router | None:
        """The router as it decides now; `None` when there is none of that name."""
        state = self._states.get(name)
        return None if state is None else self._settled(state).active

    def state(self, name: str) -> State:
        """The state of a router; of the first for an empty name. Raises: `NotFound` (`NO_SUCH_ROUTER`)."""
        for known, state in self._states.items():
            if not name or known == name:
                return self._settled(state)
        raise NotFound("NO_SUCH_ROUTER", f"there is no router named {name!r}" if name else "there is no router")

    def hashes(self, name: str) -> dict[str, Json]:
        """The hash document."""
        return _hashes(self.state(name))

    def validate(self, name: str, body: Json) -> dict[str, Json]:
        """Checks a configuration and changes nothing. Raises: `InvalidInput`."""
        state = self.state(name)
        yaml, mode = _change(body)
        return {"valid": True, "generated_runtime_hash": self._changed(state, yaml, mode).config_hash}

    def plan(self, name: str, body: Json) -> dict[str, Json]:
        """What a change would do. Raises: `InvalidInput`."""
        state = self.state(name)
        yaml, mode = _change(body)
        new = self._changed(state, yaml, mode)
        reasons = _restart_reasons(state.saved, new)
        return {
            "mode": mode,
            "changed": _differences(state.saved.document, new.document),
            "restart_required": bool(reasons),
            "restart_reasons": list(reasons),
            "etag": f'"{state.saved.source_hash}"',
            "source_config_hash": new.source_hash,
            "generated_runtime_hash": new.config_hash,
            "active_runtime_hash": state.active.config_hash,
        }

    def change(self, name: str, body: Json, mode: str, if_match: str) -> tuple[int, dict[str, Json]]:
        """Saves a configuration; 200 when it is in force, 202 when it will be.

        Raises: `InvalidInput`, `Conflict` (`PRECONDITION_REQUIRED`, `ETAG_MISMATCH`, `RESTART_REQUIRED`,
        `CONFIG_ACTIVATION_PENDING`).
        """
        state = self._guarded(name, if_match)
        yaml, _ = _change(body)
        new = self._changed(state, yaml, mode)
        reasons = _restart_reasons(state.saved, new)
        if reasons:
            raise Conflict("RESTART_REQUIRED", f"{', '.join(reasons)} changed, which needs a restart of the router")
        return self._save(state, new, new.activation_s)

    def rollback(self, name: str, body: Json, if_match: str) -> tuple[int, dict[str, Json]]:
        """Saves an earlier version again. Raises: as `change`, and `NotFound` (`NO_SUCH_VERSION`)."""
        state = self._guarded(name, if_match)
        fields = Fields(body, "request")
        wanted = fields.text("version")
        fields.finish()
        for version, _, router in state.versions:
            if version == wanted:
                return self._save(state, router, router.activation_s)
        raise NotFound("NO_SUCH_VERSION", f"there is no version {wanted!r} of the configuration")

    def restart(self, name: str, body: Json, if_match: str) -> tuple[int, dict[str, Json]]:
        """Takes a configuration over whatever changed in it, and comes back with it after a moment."""
        state = self._guarded(name, if_match)
        yaml, _ = _change(body)
        return self._save(state, self._changed(state, yaml, "replace"), RESTART_S)

    def versions(self, name: str) -> dict[str, Json]:
        """All saved configurations, newest first."""
        listed: list[Json] = [
            {"version": version, "source_config_hash": router.source_hash, "created_at": saved_at}
            for version, saved_at, router in reversed(self.state(name).versions)
        ]
        return {"versions": listed}

    def _guarded(self, name: str, if_match: str) -> State:
        state = self.state(name)
        if not if_match:
            raise Conflict("PRECONDITION_REQUIRED", "a change needs the header If-Match with the current ETag")
        if if_match != f'"{state.saved.source_hash}"':
            raise Conflict("ETAG_MISMATCH", f'the configuration is "{state.saved.source_hash}", not {if_match}')
        if state.due:
            raise Conflict("CONFIG_ACTIVATION_PENDING", "an earlier change is not in force yet")
        return state

    def _changed(self, state: State, yaml: str, mode: str) -> Router:
        document = load_yaml(yaml, "yaml")
        if not isinstance(document, dict):
            raise InvalidInput("BAD_FIELD", "yaml is no object; expected a configuration", field="yaml")
        for key in document:
            if key not in SECTIONS:
                raise InvalidInput("UNKNOWN_FIELD", f"yaml has the section {key!r}; known are {', '.join(SECTIONS)}")
        new = with_document(state.saved, _merged(state.saved.document, document) if mode == "merge" else document)
        check_routes(new, self._models)
        return new

    def _save(self, state: State, new: Router, wait_s: float) -> tuple[int, dict[str, Json]]:
        state.saved = new
        state.due = self._clock() + wait_s if wait_s > 0 else 0.0
        if not state.due:
            state.active = new
        self._remember(state)
        return (202 if state.due else 200), _hashes(state)

    def _settled(self, state: State) -> State:
        if state.due and self._clock() >= state.due:
            state.active, state.due = state.saved, 0.0
        return state

    @staticmethod
    def _remember(state: State) -> None:
        state.versions.append((f"v{len(state.versions) + 1}", time.time(), state.saved))


def _change(body: Json) -> tuple[str, str]:
    fields = Fields(body, "request")
    yaml, mode = fields.text("yaml"), fields.text("mode", "replace", MODES)
    fields.finish()
    return yaml, mode


def _hashes(state: State) -> dict[str, Json]:
    return {
        "source_config_hash": state.saved.source_hash,
        "generated_runtime_hash": state.saved.config_hash,
        "active_runtime_hash": state.active.config_hash,
        "activation_status": "pending" if state.due else "active",
    }


def _restart_reasons(old: Router, new: Router) -> tuple[str, ...]:
    before, after = old.document, new.document
    return tuple(key for key in RESTART_KEYS if before.get(key) != after.get(key))


def _merged(old: Json, new: Json) -> Json:
    """Objects member by member; everything else is replaced, and a null removes."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    merged = {key: _merged(value, new[key]) if key in new else value for key, value in old.items()}
    merged |= {key: value for key, value in new.items() if key not in old}
    return {key: value for key, value in merged.items() if value is not None}


def _differences(old: Json, new: Json, path: str = "") -> list[Json]:
    """The paths at which two documents differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        found: list[Json] = []
        for key in sorted(old.keys() | new.keys()):
            found += _differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
        return found
    return [] if old == new else [path]
