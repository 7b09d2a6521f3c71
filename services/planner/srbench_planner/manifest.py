"""The manifest's own fields: which there are, their defaults and their shapes. What they mean together is `freeze`'s."""

from __future__ import annotations

import re
from collections.abc import Mapping

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import checks

VERSION = "sr-bench-1.0"
DEFAULT_SEED = 20260918
DEFAULT_NAME = "sr-bench"
MODES = ("live", "preview")
PROFILES = ("smoke", "quick", "standard")
COST_POLICIES = ("require_priced", "capability_only")
OUTPUT_POLICIES = ("bounded", "native")
EXPERIMENT_ROLES = ("baseline", "candidate", "initial", "validation", "smoke", "preview", "estimate", "recovery")
MAX_HYPOTHESIS = 2000
MAX_NAME = 200
MAX_IDENTITY_BYTES = 1024

FIELDS = (
    "version",
    "mode",
    "profile",
    "seed",
    "name",
    "cost_policy",
    "output_policy",
    "experiment",
    "dataset",
    "cases",
    "targets",
    "auxiliary_targets",
    "benchmark_options",
    "limits",
    "sampling",
    "execution_cells",
    "benchmark_weights",
    "adapter_versions",
    "preview_context",
    "limitations",
    "claims",
    "baseline_run_id",
    "case_sha256",
    "plan_sha256",
)
# Written by the service alone; a manifest that brings them is refused with a reason of its own.
SERVICE_FIELDS = {
    "runner_provenance": "the service captures it itself",
    "recovery": "only a recovery creates it",
    "replay_sources": "only a replay creates it",
    "replay_compatibility": "only a replay creates it",
}
_EXPERIMENT = re.compile(r"exp-[0-9a-f]{32}\Z")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def read_head(value: Json) -> tuple[dict[str, Json], dict[str, Json]]:
    """The manifest as an object, and the frozen form of its plain fields.

    Raises: `InvalidInput` with the field at fault.
    """
    found = checks.obj(value, "the manifest")
    for key, why in SERVICE_FIELDS.items():
        if key in found:
            raise InvalidInput("SERVICE_FIELD", f"{key} is not allowed in a manifest; {why}", field=key)
    checks.known_keys(found, FIELDS, "")
    if found.get("version") != VERSION:
        raise checks.bad("version", found.get("version"), VERSION, "BAD_VERSION")
    head: dict[str, Json] = {"version": VERSION}
    head["mode"] = checks.one_of(found.get("mode", "live"), "mode", MODES)
    head["seed"] = seed(found.get("seed", DEFAULT_SEED))
    _set(head, "experiment", _experiment(found.get("experiment")))
    head["cost_policy"] = checks.one_of(found.get("cost_policy", "require_priced"), "cost_policy", COST_POLICIES)
    head["profile"] = checks.one_of(found.get("profile", "quick"), "profile", PROFILES)
    head["output_policy"] = checks.one_of(found.get("output_policy", "bounded"), "output_policy", OUTPUT_POLICIES)
    head["name"] = checks.text(found.get("name", DEFAULT_NAME), "name", most=MAX_NAME)
    if head["mode"] == "preview":
        head["preview_context"] = _preview_context(found.get("preview_context"), head["seed"])
    _set(head, "limitations", _texts(found.get("limitations"), "limitations"))
    if found.get("baseline_run_id") is not None:
        head["baseline_run_id"] = checks.text(found["baseline_run_id"], "baseline_run_id", most=64)
    for key in ("case_sha256", "plan_sha256"):
        if found.get(key) is not None:
            digest(found[key], key)
    return found, head


def seed(value: Json) -> int:
    """A seed: any integer of 64 bits."""
    return checks.integer(value, "seed", -(2**63), 2**63 - 1)


def digest(value: Json, path: str) -> str:
    """A SHA-256 in lower-case hex."""
    if not isinstance(value, str) or not _DIGEST.match(value):
        raise checks.bad(path, value, "64 lower-case hex digits")
    return value


def fitting_roles(mode: str, profile: str, kinds: set[str], *, recovery: bool = False) -> list[str]:
    """The roles that a run may have in an experiment. `kinds` are the kinds of its targets."""
    if recovery:
        return ["recovery"]
    if mode != "live":
        return ["preview"] if mode == "preview" else ["estimate"]
    roles = ["baseline"] if "single" in kinds else []
    if profile == "standard":
        return [*roles, "validation"]
    roles += ["initial", "candidate"] if "mom" in kinds else []
    return [*roles, "smoke"] if profile == "smoke" else roles


def check_experiment_role(head: Mapping[str, Json], kinds: set[str]) -> None:
    """Refuses an experiment role that does not fit the run. `kinds` are the kinds of its targets."""
    experiment = head.get("experiment")
    if isinstance(experiment, dict):
        check_role(experiment["role"], fitting_roles(str(head["mode"]), str(head["profile"]), kinds), "experiment.role")


def check_role(role: Json, fitting: list[str], path: str) -> None:
    """Raises: `InvalidInput` (`BAD_FIELD`) unless `role` is one of `fitting`."""
    if role not in fitting:
        raise checks.bad(path, role, f"one that fits this run: {', '.join(fitting)}")


def _experiment(value: Json) -> Json:
    """The `experiment` of a manifest; null for none."""
    if value is None:
        return None
    found = checks.obj(value, "experiment")
    checks.known_keys(found, ("id", "role", "hypothesis"), "experiment")
    name = found.get("id")
    if not isinstance(name, str) or not _EXPERIMENT.match(name):
        raise checks.bad("experiment.id", name, "exp- and 32 lower-case hex digits")
    experiment: dict[str, Json] = {
        "id": name,
        "role": checks.one_of(found.get("role"), "experiment.role", EXPERIMENT_ROLES),
    }
    if found.get("hypothesis") is not None:
        _set(experiment, "hypothesis", hypothesis(found["hypothesis"], "experiment.hypothesis"))
    return experiment


def hypothesis(value: Json, path: str) -> str:
    """What a run is to show, trimmed."""
    if not isinstance(value, str) or len(value.strip()) > MAX_HYPOTHESIS:
        raise checks.bad(path, value, f"a text of at most {MAX_HYPOTHESIS} characters")
    return value.strip()


def _preview_context(value: Json, seed_value: Json) -> Json:
    found = checks.obj({} if value is None else value, "preview_context")
    checks.known_keys(found, ("session_id", "conversation_id", "sampling_seed"), "preview_context")
    context: dict[str, Json] = {}
    for key in ("session_id", "conversation_id"):
        if found.get(key) is not None:
            context[key] = _identity(found[key], f"preview_context.{key}")
    given = found.get("sampling_seed", seed_value)
    context["sampling_seed"] = checks.integer(given, "preview_context.sampling_seed", -(2**63), 2**63 - 1)
    return context


def _identity(value: Json, path: str) -> str:
    name = checks.text(value, path)
    if len(name.encode()) > MAX_IDENTITY_BYTES or any(mark in name for mark in "\r\n\0"):
        raise checks.bad(path, name, f"at most {MAX_IDENTITY_BYTES} bytes in one line")
    return name


def _texts(value: Json, path: str) -> Json:
    if value is None:
        return None
    return [checks.text(item, f"{path}[{index}]") for index, item in enumerate(checks.items(value, path))]


def _set(target: dict[str, Json], key: str, value: Json) -> None:
    """Keeps only what says something."""
    if value is not None and value not in ([], {}, ""):
        target[key] = value
