"""By what signs an endpoint says how an answer ended, that it failed, or what it thought. Pure; raises on no input.

Endpoints that call themselves OpenAI-compatible agree on where content stands and on little else: each name below is one
that a provider or server sends, and each was met where another one had been expected.
"""

from __future__ import annotations

from typing import Any

from srbench_kit.chatparts import error_sentence, texts_of

LENGTH_REASONS = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
# Withheld by the provider's filters: OpenAI and Azure, Gemini, Bedrock, Anthropic's classifiers, Zhipu.
FILTER_REASONS = frozenset(
    {
        "content_filter",
        "content_filtered",
        "guardrail_intervened",
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "sensitive",
        "refusal",
    }
)
# The server gave up, which is not the model's doing: OpenRouter and vLLM, SGLang, Zhipu, DeepSeek.
FAILED_REASONS = frozenset(
    {"error", "abort", "aborted", "cancelled", "canceled", "network_error", "server_error", "insufficient_system_resource"}
)
# Written where others leave the finish reason out, in every event: they end nothing.
_NO_REASONS = frozenset({"null", "none"})
# Names of events that only keep a connection open; some carry a date or a word instead of JSON.
KEEPALIVE_EVENTS = frozenset({"ping", "keepalive", "keep-alive", "keep_alive", "heartbeat"})
_REASONING_NAMES = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
_NO_ERROR_CODES = (None, 0, 200, "", "0", "200", "ok", "success")
# How refusals of a prompt are coded: OpenAI, Azure, DashScope, Zhipu.
_WITHHELD = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "moderation_blocked",
        "responsibleaipolicyviolation",
        "data_inspection_failed",
        "datainspectionfailed",
        "1301",
    }
)
# No money or allowance is left: OpenAI and those that take after it, Moonshot, DashScope.
_SPENT = frozenset(
    {
        "insufficient_quota",
        "exceeded_current_quota_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "throttling.allocationquota",
    }
)
# Reset reasons of Envoy's 503 from before a request is passed on. All others, such as `connection termination`, may come
# after the model has begun.
_NOT_PASSED_ON = (
    "connection failure",
    "local connection failure",
    "remote connection failure",
    "connection timeout",
    "overflow",
    "overload",
    "local refused",
    "remote refused",
)
_WORDLESS = "the endpoint reported an error without words"


def finish_reason(value: Any) -> str:
    """The finish reason that `value` gives; empty when it gives none."""
    return value if isinstance(value, str) and value.lower() not in _NO_REASONS else ""


def error_of(value: dict[str, Any]) -> str:
    """What an object says that went wrong; empty when it is no error.

    An error stands under `error`; or it is the object itself: one without choices whose `object` or `type` says so (vLLM,
    Anthropic), that explains itself under `detail` (FastAPI) or `base_resp` (MiniMax), or that has a code and a message.
    """
    error = value.get("error")
    if error:
        return error_sentence(error) or _WORDLESS
    if value.get("choices") is not None:
        return ""
    status = value.get("base_resp")
    if isinstance(status, dict) and status.get("status_code") not in _NO_ERROR_CODES:
        return error_sentence(status.get("status_msg")) or _WORDLESS
    kinds = (value.get("object"), value.get("type"))
    named = any(isinstance(kind, str) and kind.lower().endswith("error") for kind in kinds)
    code = value.get("code")
    coded = isinstance(code, int | str) and code not in _NO_ERROR_CODES and bool(value.get("message") or value.get("msg"))
    if named or coded or value.get("detail"):
        return error_sentence(value) or _WORDLESS
    return ""


def usage_of(value: dict[str, Any]) -> dict[str, Any] | None:
    """The usage object of a chunk, of a choice (Moonshot) or of Groq's own member; `None` when there is none."""
    usage = value.get("usage")
    if not usage and "x_groq" in value:
        groq = value["x_groq"]
        usage = groq.get("usage") if isinstance(groq, dict) else None
    return usage if usage and isinstance(usage, dict) else None


def reasoning_pieces(delta: dict[str, Any]) -> list[str]:
    """The reasoning in a delta or message, under the first of its names that says anything."""
    for name in _REASONING_NAMES:
        said = delta.get(name)
        if said and isinstance(said, str):
            return [said]
    details = delta.get("reasoning_details")
    if not isinstance(details, list):
        return []
    # OpenRouter and MiniMax; what is encrypted says nothing.
    parts = [detail for detail in details if isinstance(detail, dict)]
    return [text for part in parts for text in texts_of(part.get("text") or part.get("summary")) if text]


def may_have_been_passed_on(said: str) -> bool:
    """Whether a gateway's refusal in the words `said` may have come after it passed the request on.

    Envoy answers 503 for an exchange with its upstream that broke off, too, and names the reason.
    """
    _, found, reason = said.lower().rpartition("reset reason: ")
    return bool(found) and not reason.startswith(_NOT_PASSED_ON)


def prompt_is_withheld(error: Any) -> bool:
    """Whether an error from outside says that a filter of the provider kept the prompt from the model."""
    return bool(_WITHHELD & _codes(error))


def quota_is_spent(error: Any) -> bool:
    """Whether an error from outside says that there is no money or allowance left, which no waiting brings back."""
    return bool(_SPENT & _codes(error))


def _codes(error: Any) -> set[str]:
    """The words and numbers by which an error calls itself, in lower case."""
    inner = error.get("error", error) if isinstance(error, dict) else None
    found: set[str] = set()
    for holder in (inner, inner.get("innererror") if isinstance(inner, dict) else None):
        if isinstance(holder, dict):
            found |= {str(holder[name]).lower() for name in ("code", "type") if isinstance(holder.get(name), str | int)}
    return found
