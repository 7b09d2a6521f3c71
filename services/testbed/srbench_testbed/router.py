"""A Mixture of Models: which model answers, what the headers say, what a preview shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson
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


def preview(router: Router, decision: Decision, sampling_seed: Json) -> dict[str, Json]:
    """What would be decided, without a model call."""
    used: list[Json] = [name for name in ("subject", "keyword") if getattr(decision.route, name)]
    return {
        "config_hash": router.config_hash,
        "requested_model": router.id,
        "selected_model": decision.route.model,
        "selection_status": "selected",
        "selection_method": "static" if len(decision.calls) == 1 else "looper",
        "selection_reason": f"route {decision.position} ({decision.route.decision})",
        "selection_provenance": {
            "state_dependent": False,
            "mode": "static",
            "sampled": False,
            "sampling_seed": sampling_seed,
        },
        "decision_result": {
            "decision_name": decision.route.decision,
            "algorithm": "static",
            "plugins": [],
            "used_signals": used,
            "matched_signals": used,
            "unmatched_signals": [],
        },
        "routing_decision": decision.route.decision,
        "recipe": "default",
        "signal_confidences": {},
    }


def config_hashes(router: Router) -> dict[str, Json]:
    """The hash document of the configuration API."""
    return {
        "source_config_hash": router.source_hash,
        "generated_runtime_hash": router.config_hash,
        "active_runtime_hash": router.config_hash,
        "activation_status": "active",
    }
