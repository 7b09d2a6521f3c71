"""Chat completions: from a request's body to what will be written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import orjson
from srbench_kit.errors import Conflict, InvalidInput, NotFound
from srbench_kit.values import Json

from srbench_testbed import judging
from srbench_testbed import router as routing
from srbench_testbed.answer_key import Entry, prompt_sha256, prompt_text
from srbench_testbed.answers import Answer, Speaker
from srbench_testbed.config import Config, Model, Router
from srbench_testbed.dialogues import Dialogues
from srbench_testbed.exchange import CHUNKED, Exchange, chunk, document
from srbench_testbed.fault_types import Draft
from srbench_testbed.faults import Injector, Rule
from srbench_testbed.ledger import Row
from srbench_testbed.management import Routers
from srbench_testbed.reply import DONE, PLACE, Reply, Template, event, stream_events, template, usage_event, whole
from srbench_testbed.usage import Tokens, usage_object

_STREAM_TYPE = ("content-type", "text/event-stream; charset=utf-8")
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    b"x-request-id: %b\r\n%btransfer-encoding: chunked\r\n\r\n"
)
_ENDING = chunk(DONE) + b"0\r\n\r\n"


class Request(NamedTuple):
    """A chat request, read."""

    model: str
    messages: Json
    prompt: str
    prompt_sha256: str
    stream: bool
    include_usage: bool
    body_bytes: int


def read_request(body: bytes) -> Request:
    """The request in `body`.

    Raises: `InvalidInput` (`BAD_JSON`, `BAD_FIELD`).
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidInput("BAD_JSON", f"the body is not JSON: {error.msg}") from None
    model = value.get("model") if isinstance(value, dict) else None
    messages = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(model, str) or not isinstance(messages, list) or not messages:
        raise InvalidInput("BAD_FIELD", "the body needs model, a text, and messages, a list with at least one message")
    options = value.get("stream_options")
    prompt = prompt_text(messages)
    return Request(
        model=model,
        messages=messages,
        prompt=prompt,
        prompt_sha256=prompt_sha256(prompt),
        stream=value.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        body_bytes=len(body),
    )


def identity(request: Request) -> str:
    """Digest of model and messages: the same for two requests that ask a model the same."""
    return hashlib.sha256(orjson.dumps([request.model, request.messages], option=orjson.OPT_SORT_KEYS)).hexdigest()


class Chat:
    """Answers chat requests.

    `paced` false leaves out every delay of the models' own; those of faults stay.
    """

    def __init__(self, config: Config, key: Mapping[str, Entry], injector: Injector, paced: bool, routers: Routers) -> None:
        self._models = {model.id: model for model in config.models}
        self._routers = routers
        self._seed, self._key, self._injector, self._paced = config.seed, key, injector, paced
        self._speaker = Speaker(config.seed)
        self._dialogues = Dialogues(key.values())

    def answer(self, body: bytes, row: Row, record: Callable[[Row], None]) -> bytes | Exchange:
        """What to write for the request in `body`: bytes when they can go out at once, else a plan.

        `row` gets what is found out; `record` is called with it before anything is answered, so that even a request that
        cannot be read, or that a fault swallows, is on record.
        Raises: `InvalidInput`, `NotFound` (`NO_SUCH_MODEL`), `Conflict` (`CONFIG_HASH_MISMATCH`).
        """
        try:
            request = read_request(body)
            row.model, row.prompt_sha256, row.identity = request.model, request.prompt_sha256, identity(request)
        finally:
            record(row)
        rule = self._injector.strike(request.model, request.prompt)
        row.fault = rule.fault.name if rule else ""
        model = self._models.get(request.model)
        if model is not None:
            return self._single(model, request, row, rule)
        router = self._routers.get(request.model)
        if router is None:
            known = ", ".join([*self._models, *self._routers])
            raise NotFound("NO_SUCH_MODEL", f"there is no model named {request.model!r}; there are {known}")
        return self._routed(router, request, row, rule)

    def _single(self, model: Model, request: Request, row: Row, rule: Rule | None) -> bytes | Exchange:
        said = self._say(model, request, row)
        usage = _usage(model, request, said)
        asked = model.usage_when == "always" or (
            model.usage_when == "asked" and (request.include_usage or not request.stream)
        )
        reply = self._reply(row, model.response_model or model.id, model, said, usage if asked else None)
        draft = Draft(reply=reply, headers={}, authorization=row.header(b"authorization") if rule else "")
        return self._written(draft, said, model, request, row, rule)

    def _routed(self, router: Router, request: Request, row: Row, rule: Rule | None) -> bytes | Exchange:
        expected = row.header(b"x-sr-bench-expected-config-hash")
        if expected and expected != router.config_hash:
            raise Conflict("CONFIG_HASH_MISMATCH", f"the active configuration is {router.config_hash}, not {expected}")
        most = row.header(b"x-sr-bench-max-inference-calls")
        decision = self.decide(router, request, int(most) if most.isdecimal() else router.max_inference_calls)
        model = self._models[decision.route.model]
        row.selected_model = model.id
        said = self._say(model, request, row)
        calls = [(name, _usage(self._models[name], request, said)) for name in decision.calls]
        name = router.id if router.response_model == "router" else (model.response_model or model.id)
        usage = calls[-1][1] if request.include_usage or not request.stream else None
        reply = self._reply(row, name, model, said, usage)
        debug = row.header(b"x-vsr-debug").lower() == "true"
        draft = Draft(
            reply=reply,
            headers=routing.headers(router, decision, reply.id.decode(), debug),
            authorization=row.header(b"authorization") if rule else "",
        )
        _place_receipt(router.receipt, draft, routing.receipt(calls))
        return self._written(draft, said, model, request, row, rule)

    def _written(
        self, draft: Draft, said: Answer, model: Model, request: Request, row: Row, rule: Rule | None
    ) -> bytes | Exchange:
        """The draft as bytes where nothing has to wait and nothing goes wrong, else as a plan."""
        plain = rule is None and request.stream and model.response_mode == "sse"
        if plain and not self._delays(model) and not draft.trailers and not draft.reply.extra:
            return _at_once(draft, said, row)
        return self._exchange(draft, said, model, request, rule)

    def decide(self, router: Router, request: Request, most_calls: int) -> routing.Decision:
        """What `router` does with a request."""
        entry = self._entry(request)
        # All turns of a conversation go the same way.
        sha256 = entry.prompt_sha256 if entry else request.prompt_sha256
        return routing.decide(router, self._seed, request.prompt, sha256, entry, most_calls)

    def _entry(self, request: Request) -> Entry | None:
        return self._key.get(request.prompt_sha256) or self._dialogues.entry_of(request.messages)

    def _say(self, model: Model, request: Request, row: Row) -> Answer:
        verdict = judging.verdict(request.prompt)
        if verdict is not None:
            return Answer(pieces=(verdict,))
        entry = self._entry(request)
        if entry is not None and entry.kind == "dialogue":
            said = self._speaker.turn(model, request.messages, entry)
        elif entry is not None and entry.kind == "commands":
            said = self._speaker.commands(model, request.messages, entry)
        else:
            said = self._speaker.answer(model, request.prompt, request.prompt_sha256, entry)
        row.answer_right = said.right
        return said

    @staticmethod
    def _reply(row: Row, name: str, model: Model, said: Answer, usage: Json) -> Reply:
        channel = "reasoning" if model.reasoning == "reasoning" else "reasoning_content"
        return Reply(
            id=b"%012x" % row.sequence,
            model=name,
            pieces=said.pieces,
            reasoning=said.reasoning,
            reasoning_field=channel,
            calls=said.calls,
            finish_reason="tool_calls" if said.calls else "stop",
            usage=usage,
        )

    def _delays(self, model: Model) -> bool:
        return self._paced and (model.ttft_ms > 0 or model.itl_ms > 0)

    def _exchange(self, draft: Draft, said: Answer, model: Model, request: Request, rule: Rule | None) -> Exchange:
        spoilt = rule is not None and rule.fault.on_reply is not None
        if rule is not None and rule.fault.on_reply is not None:
            rule.fault.on_reply(draft, rule.params)
        headers = [("x-request-id", draft.reply.id.decode()), *draft.headers.items()]
        ttft, itl = (model.ttft_ms / 1000, model.itl_ms / 1000) if self._paced else (0.0, 0.0)
        if request.stream and model.response_mode == "sse":
            exchange = Exchange(
                headers=[_STREAM_TYPE, ("cache-control", "no-cache"), *headers],
                parts=_timed(
                    stream_events(draft.reply) if spoilt else _kept_events(draft.reply, said),
                    len(draft.reply.pieces) + len(draft.reply.reasoning),
                    ttft,
                    itl,
                ),
                trailers=list(draft.trailers.items()),
                framing=CHUNKED,
            )
        else:
            exchange = document(200, orjson.dumps(whole(draft.reply)))
            exchange.headers += headers + list(draft.trailers.items())
            exchange.head_delay_s = ttft + itl * (len(draft.reply.pieces) - 1)
        if rule is not None and rule.fault.on_wire is not None:
            rule.fault.on_wire(exchange, rule.params)
        exchange.fault = rule.fault.name if rule else ""
        return exchange


def _timed(events: list[bytes], pieces: int, ttft: float, itl: float) -> list[tuple[float, bytes]]:
    """Events with the delay before each: the role goes out with the first piece, the finish with the last."""
    timed = [(0.0, data) for data in events]
    if (ttft or itl) and timed:
        timed[0] = (ttft, events[0])
        for index in range(2, min(pieces + 1, len(events))):
            timed[index] = (itl, events[index])
    return timed


def _usage(model: Model, request: Request, said: Answer) -> dict[str, Json]:
    """Counts that depend on the request and the answer alone: a token is four bytes of prompt, or one piece of output.

    A tool call counts four bytes a token, as prompts do.
    """
    prompt = max(1, request.body_bytes // 4)
    reasoning = len(said.reasoning)
    tokens = Tokens(
        prompt=prompt,
        cached=int(prompt * model.cached_share),
        output=len(said.pieces) + reasoning + sum(-(-len(name + text) // 4) for name, text in said.calls),
        reasoning=reasoning,
    )
    return usage_object(model.usage, tokens)


def _template(reply: Reply, said: Answer) -> Template:
    """The answer's events, kept with it."""
    kept = said.cache.get(reply.model or "")
    if not isinstance(kept, Template):
        kept = template(reply)
        said.cache[reply.model or ""] = kept
    return kept


def _kept_events(reply: Reply, said: Answer) -> list[bytes]:
    """`stream_events` of a reply that no fault changed."""
    usage = usage_event(reply)
    events = [*_template(reply, said).events, *([usage] if usage else []), *reply.extra, DONE]
    return [data.replace(PLACE, reply.id) for data in events]


def _at_once(draft: Draft, said: Answer, row: Row) -> bytes:
    """A whole streamed answer in one piece."""
    kept = _template(draft.reply, said)
    row.sent_parts, row.status = len(kept.events), 200
    last = usage_event(draft.reply)
    added = "".join(f"{name}: {value}\r\n" for name, value in draft.headers.items()).encode("latin-1", "replace")
    body = kept.joined + chunk(last) if last else kept.joined
    return _HEAD % (draft.reply.id, added) + body.replace(PLACE, draft.reply.id) + _ENDING


def _place_receipt(where: str, draft: Draft, text: str) -> None:
    match where:
        case "header":
            draft.headers[routing.RECEIPT] = text
        case "trailer":
            draft.trailers[routing.RECEIPT] = text
        case "event":
            draft.reply.extra.append(
                event({"object": "vsr.model_usage", "choices": [], "x_vsr_model_usage": orjson.loads(text)})
            )
