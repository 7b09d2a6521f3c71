"""A Mixture of Models: which model answers, what the headers say, what a preview shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson
from srbench_kit.canonical import digest
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_testbed.answer_key import Entry
from srbench_testbed.answers import unit
from srbench_testbed.config import Route, Router
from srbench_testbed.fields import Fields

RECEIPT = "x-vsr-model-usage"
_PREVIEW_MEMBERS = (
    "text", "messages", "model", "max_tokens", "max_completion_tokens", "tools", "functions", "tool_choice",
    "function_call", "response_format", "metadata", "options", "preview_context",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a router decided: the route, its position, and the models it calls, the last of which answers."""

    route: Route
    position: int
    calls: tuple[str, ...]


def decide(router: Router, seed: int, prompt: str, prompt_sha256: str, entry: Entry | None, most_calls: int) -> Decision:
    """The first route whose conditions hold. `most_calls` cuts the calls before the answering one."""
    subject = f"{entry.benchmark}/{entry.stratum}" if entry else ""
    for position, route in enumerate(router.routes):
        if route.subject and subject != route.subject and not subject.startswith(route.subject + "/"):
            continue
        if route.keyword and route.keyword.lower() not in prompt.lower():
            continue
        if route.share < 1 and unit(seed, "route", router.id, route.decision, prompt_sha256) >= route.share:
            continue
        return Decision(route=route, position=position, calls=route.calls[-max(1, most_calls) :])
    raise AssertionError("the last route always holds")


def receipt(calls: Sequence[tuple[str, Mapping[str, Json]]]) -> str:
    """The usage receipt of the model calls behind one answer."""
    return orjson.dumps(
        {"version": 1, "complete": True, "calls": [{"model": model, "usage": usage} for model, usage in calls]}
    ).decode()


def headers(router: Router, decision: Decision, request_id: str, debug: bool) -> dict[str, str]:
    """What a router adds to an answer; with `debug` it tells more."""
    found = {
        "x-sr-bench-config-hash": router.config_hash,
        "x-vsr-selected-model": decision.route.model,
        "x-vsr-selected-decision": decision.route.decision,
        "x-vsr-inference-call-count": str(len(decision.calls)),
    }
    if debug:
        found |= {
            "x-vsr-replay-id": f"replay-{request_id}",
            "x-vsr-selected-recipe": "default",
            "x-vsr-selected-confidence": "1.0000",
            "x-vsr-selected-algorithm": "static",
            "x-vsr-response-path": "upstream",
        }
    return found


def check_preview(document: Json) -> tuple[str, Json]:
    """The model and the messages of a preview request.

    Raises: `InvalidInput` (`BAD_FIELD`, `UNKNOWN_FIELD`).
    """
    fields = Fields(document, "request")
    model, messages = fields.text("model"), fields.any("messages")
    for name in _PREVIEW_MEMBERS:
        fields.any(name)
    fields.finish()
    if not isinstance(messages, list) or not messages:
        raise InvalidInput(
            "BAD_FIELD", "request.messages is missing; expected a list with at least one message", field="messages"
        )
    return model, messages


def preview(router: Router, decision: Decision, sampling_seed: Json, prompt_sha256: str) -> dict[str, Json]:
    """What would be decided, without a model call.

    With learning on, the choice comes from a snapshot of the learned state, which a live request may not find again.
    """
    route = decision.route
    used: list[Json] = [name for name in ("subject", "keyword") if getattr(route, name)]
    compound = len(decision.calls) > 1
    learning = _learning(router)
    model = _learned(router, decision, learning, sampling_seed, prompt_sha256) if learning else route.model
    provenance: dict[str, Json] = {"state_dependent": False, "mode": "static", "sampled": False}
    if learning:
        provenance = {
            "state_dependent": True,
            "mode": "learning_snapshot",
            "sampled": learning.get("sampled") is True,
            "config_hash": router.config_hash,
            "state_hash": digest({"router": router.id, "learning": learning}),
            "captured_at": "2026-01-01T00:00:00Z",
        }
    return {
        "config_hash": router.config_hash,
        "requested_model": router.id,
        "selected_model": model,
        "selection_status": "execution_required" if compound else "selected",
        "selection_method": "looper" if compound else "learning" if learning else "static",
        "selection_reason": f"route {decision.position} ({route.decision})",
        "selection_provenance": provenance | {"sampling_seed": sampling_seed},
        "decision_result": {
            "decision_name": route.decision,
            "algorithm": "looper" if compound else "static",
            "plugins": list(route.plugins),
            "used_signals": used,
            "matched_signals": used,
            "unmatched_signals": [],
        },
        "routing_decision": route.decision,
        "recipe": "default",
        "signal_confidences": {},
    }


def _learning(router: Router) -> dict[str, Json]:
    """The learning section when it is on; an empty one when it is off."""
    found: Json = router.document
    for key in ("global", "router", "learning"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) and found.get("enabled") is True else {}


def _learned(
    router: Router, decision: Decision, learning: Mapping[str, Json], sampling_seed: Json, prompt_sha256: str
) -> str:
    """The model of the learned policy: the route's, or a sample of all that the router calls."""
    if learning.get("sampled") is not True:
        return decision.route.model
    models = sorted({call for route in router.routes for call in route.calls})
    return models[int(unit(0, "sample", router.id, str(sampling_seed), prompt_sha256) * len(models))]
