"""Faults in what is said: usage, finish, identity, router receipts, events."""

from __future__ import annotations

import orjson

from srbench_testbed.fault_types import Draft, Fault, Params
from srbench_testbed.reply import event


def _usage_missing(draft: Draft, _: Params) -> None:
    draft.reply.usage = None


def _usage_null(draft: Draft, _: Params) -> None:
    draft.reply.usage, draft.reply.usage_events = None, "null"


def _usage_contradictory(draft: Draft, _: Params) -> None:
    draft.reply.usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 20},
    }


def _usage_malformed(draft: Draft, _: Params) -> None:
    draft.reply.usage = {"prompt_tokens": "10", "completion_tokens": -5, "total_tokens": 1.5}


def _usage_every_chunk(draft: Draft, _: Params) -> None:
    draft.reply.usage_events = "every"


def _usage_zeros_first(draft: Draft, _: Params) -> None:
    draft.reply.usage_events = "zeros"


def _finish_reason(draft: Draft, params: Params) -> None:
    draft.reply.finish_reason = params.text("value")


def _no_finish_reason(draft: Draft, _: Params) -> None:
    draft.reply.finish_reason = None


def _cut_by_length(draft: Draft, params: Params) -> None:
    draft.reply.pieces = draft.reply.pieces[: params.whole("after_pieces")]
    draft.reply.finish_reason = "length"


def _wrong_model(draft: Draft, params: Params) -> None:
    draft.reply.model = params.text("name")


def _no_model(draft: Draft, _: Params) -> None:
    draft.reply.model = None


def _wrong_config_hash(draft: Draft, params: Params) -> None:
    draft.headers["x-sr-bench-config-hash"] = params.text("value")


def _no_config_hash(draft: Draft, _: Params) -> None:
    draft.headers.pop("x-sr-bench-config-hash", None)
    draft.headers.pop("x-vsr-config-hash", None)


def _receipt(draft: Draft, text: str) -> None:
    """Puts `text` wherever this router's receipt travels; in a header when it has none."""
    name = "x-vsr-model-usage"
    (draft.trailers if name in draft.trailers else draft.headers)[name] = text


def _receipt_malformed(draft: Draft, params: Params) -> None:
    _receipt(draft, params.text("value"))


def _receipt_incomplete(draft: Draft, _: Params) -> None:
    _receipt(draft, '{"version":1,"complete":false,"calls":[]}')


def _receipt_contradictory(draft: Draft, _: Params) -> None:
    draft.headers["x-vsr-inference-call-count"] = "7"


def _receipt_oversized(draft: Draft, params: Params) -> None:
    filler = "m" * params.whole("bytes")
    _receipt(draft, orjson.dumps({"version": 1, "complete": True, "calls": [{"model": filler, "usage": {}}]}).decode())


def _receipt_missing(draft: Draft, _: Params) -> None:
    draft.headers.pop("x-vsr-model-usage", None)
    draft.trailers.pop("x-vsr-model-usage", None)
    draft.headers.pop("x-vsr-inference-call-count", None)


def _no_done(draft: Draft, _: Params) -> None:
    draft.reply.done = False


def _error_event(draft: Draft, params: Params) -> None:
    draft.reply.cut_after = params.whole("after_pieces")
    draft.reply.extra.append(event({"error": {"message": params.text("message"), "type": "server_error", "code": 500}}))


def _malformed_json(draft: Draft, params: Params) -> None:
    draft.reply.cut_after = params.whole("after_pieces")
    draft.reply.extra.append(b'data: {"choices":[{"index":0,"delta":{"content":"cut \n\n')


def _null_choices(draft: Draft, _: Params) -> None:
    draft.reply.extra.append(event({"object": "chat.completion.chunk", "choices": None, "usage": None}))


def _unicode_error(draft: Draft, params: Params) -> None:
    draft.reply.cut_after = params.whole("after_pieces")
    draft.reply.extra.append(b'data: {"choices":[{"index":0,"delta":{"content":"\xff\xfe"}}]}\n\n')


def _empty_answer(draft: Draft, _: Params) -> None:
    draft.reply.pieces = ()
    draft.reply.reasoning = ()


def _repetition_loop(draft: Draft, params: Params) -> None:
    period = "".join(chr(ord("a") + index % 26) for index in range(params.whole("period")))
    draft.reply.pieces = [period] * max(1, params.whole("chars") // max(1, len(period)))
    draft.reply.reasoning = ()


def _huge_event(draft: Draft, params: Params) -> None:
    draft.reply.pieces = ["x" * params.whole("bytes"), *draft.reply.pieces]


def _many_events(draft: Draft, params: Params) -> None:
    draft.reply.pieces = [*([" word"] * params.whole("count")), *draft.reply.pieces]


def _echo_authorization(draft: Draft, _: Params) -> None:
    draft.reply.pieces = [f"Your header was: {draft.authorization}\n", *draft.reply.pieces]
    draft.headers["x-echo"] = draft.authorization


REPLY_FAULTS = (
    Fault(name="usage_missing", sentence="No usage is sent although it was asked for.", on_reply=_usage_missing),
    Fault(name="usage_null", sentence="Every chunk says `usage: null` and none has numbers.", on_reply=_usage_null),
    Fault(name="usage_contradictory", sentence="Usage whose numbers exclude each other.", on_reply=_usage_contradictory),
    Fault(name="usage_malformed", sentence="Usage with text, negative and fractional counts.", on_reply=_usage_malformed),
    Fault(name="usage_every_chunk", sentence="The final usage in every chunk.", on_reply=_usage_every_chunk),
    Fault(
        name="usage_zeros_first", sentence="Zeros in the first chunk, the numbers in the last.", on_reply=_usage_zeros_first
    ),
    Fault(
        name="finish_reason",
        sentence="Another finish reason, such as `content_filter`.",
        defaults={"value": "content_filter"},
        on_reply=_finish_reason,
    ),
    Fault(name="no_finish_reason", sentence="No finish reason, but the end marker.", on_reply=_no_finish_reason),
    Fault(
        name="cut_by_length",
        sentence="The answer stops after some pieces with finish reason `length`.",
        defaults={"after_pieces": 3},
        on_reply=_cut_by_length,
    ),
    Fault(
        name="wrong_model",
        sentence="Another model's name in the answer.",
        defaults={"name": "imposter"},
        on_reply=_wrong_model,
    ),
    Fault(name="no_model", sentence="No model name in the answer.", on_reply=_no_model),
    Fault(
        name="wrong_config_hash",
        sentence="A router acknowledges another configuration.",
        defaults={"value": "0" * 64},
        on_reply=_wrong_config_hash,
    ),
    Fault(name="no_config_hash", sentence="A router acknowledges no configuration.", on_reply=_no_config_hash),
    Fault(
        name="receipt_malformed",
        sentence="A usage receipt that is not JSON.",
        defaults={"value": "{not json"},
        on_reply=_receipt_malformed,
    ),
    Fault(name="receipt_incomplete", sentence="A usage receipt that says it is incomplete.", on_reply=_receipt_incomplete),
    Fault(
        name="receipt_contradictory",
        sentence="A call count that differs from the receipt's.",
        on_reply=_receipt_contradictory,
    ),
    Fault(
        name="receipt_oversized",
        sentence="A usage receipt beyond 12,288 bytes.",
        defaults={"bytes": 20_000},
        on_reply=_receipt_oversized,
    ),
    Fault(name="receipt_missing", sentence="Neither a usage receipt nor a call count.", on_reply=_receipt_missing),
    Fault(name="no_done", sentence="The stream ends without `[DONE]`.", on_reply=_no_done),
    Fault(
        name="error_event",
        sentence="An error event after some pieces, then a clean end.",
        defaults={"after_pieces": 3, "message": "the engine is overloaded"},
        on_reply=_error_event,
    ),
    Fault(
        name="malformed_json",
        sentence="An event that is cut in the middle of its JSON.",
        defaults={"after_pieces": 3},
        on_reply=_malformed_json,
    ),
    Fault(name="null_choices", sentence="A chunk with `choices: null`, which harms nothing.", on_reply=_null_choices),
    Fault(
        name="invalid_utf8",
        sentence="An event with bytes that are not UTF-8.",
        defaults={"after_pieces": 3},
        on_reply=_unicode_error,
    ),
    Fault(name="empty_answer", sentence="An answer without content.", on_reply=_empty_answer),
    Fault(
        name="repetition_loop",
        sentence="The same text of a given period over and over.",
        defaults={"period": 7, "chars": 20_000},
        on_reply=_repetition_loop,
    ),
    Fault(name="huge_event", sentence="One event of very many bytes.", defaults={"bytes": 4_000_000}, on_reply=_huge_event),
    Fault(
        name="many_events",
        sentence="Very many events before the answer.",
        defaults={"count": 20_000},
        on_reply=_many_events,
    ),
    Fault(
        name="echo_authorization",
        sentence="The request's Authorization header comes back in content and in a header.",
        on_reply=_echo_authorization,
    ),
)
