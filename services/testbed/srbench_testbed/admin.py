"""Everything that is not a chat completion: the ledger, faults, models, and a router's own API."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import orjson
from srbench_kit.documents import load_json
from srbench_kit.errors import InvalidInput, NotFound, Unauthenticated
from srbench_kit.values import Json

from srbench_testbed import router as routing
from srbench_testbed.answer_key import prompt_sha256, prompt_text
from srbench_testbed.chat import Chat, Request
from srbench_testbed.config import Config
from srbench_testbed.exchange import Exchange, document
from srbench_testbed.faults import Injector, catalogue_json, parse_rule
from srbench_testbed.ledger import Ledger, Row
from srbench_testbed.management import SECTIONS, Routers

_PAGE = 1000
_MOST_ROWS = 100_000


class Admin:
    """Answers by method and path."""

    def __init__(
        self, config: Config, chat: Chat, injector: Injector, ledger: Ledger, routers: Routers, token: str
    ) -> None:
        self._config, self._chat, self._injector, self._ledger = config, chat, injector, ledger
        self._managed, self._token = routers, token
        self._routes = {
            ("GET", "/v1/models"): self._models,
            ("GET", "/testbed/ledger"): self._rows,
            ("GET", "/testbed/counts"): self._counts,
            ("GET", "/testbed/faults"): self._faults,
            ("POST", "/testbed/faults"): self._set_faults,
            ("DELETE", "/testbed/faults"): self._clear_faults,
            ("POST", "/testbed/reset"): self._reset,
            ("GET", "/api/v1/config/hash"): self._config_hash,
            ("GET", "/api/v1/config"): self._config_document,
            ("GET", "/api/v1/config/schema"): self._config_schema,
            ("GET", "/api/v1/config/versions"): self._config_versions,
            ("GET", "/api/v1/config/recipes"): self._config_recipes,
            ("POST", "/api/v1/config/validate"): self._config_validate,
            ("POST", "/api/v1/config/plan"): self._config_plan,
            ("PATCH", "/api/v1/config"): self._config_merge,
            ("PUT", "/api/v1/config"): self._config_replace,
            ("POST", "/api/v1/config/rollback"): self._config_rollback,
            ("POST", "/api/v1/router/restart"): self._restart,
            ("POST", "/api/v1/routing/preview"): self._preview,
        }

    def answer(self, method: str, target: str, body: bytes, row: Row) -> Exchange:
        """The answer to a request.

        Raises: `NotFound` (`NO_SUCH_PATH`), `InvalidInput`, `Conflict`.
        """
        url = urlsplit(target)
        handle = self._routes.get((method, url.path))
        if handle is None:
            raise NotFound("NO_SUCH_PATH", f"there is no {method} {url.path} here")
        if self._token and url.path.startswith("/api/v1/") and row.header(b"authorization") != f"Bearer {self._token}":
            raise Unauthenticated("BAD_TOKEN", "the router's API needs its management token")
        return handle({key: values[-1] for key, values in parse_qs(url.query).items()}, body, row)

    def _models(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        names = [model.id for model in self._config.models] + [router.id for router in self._config.routers]
        data: Json = [{"id": name, "object": "model", "created": 0, "owned_by": "testbed"} for name in names]
        return _json({"object": "list", "data": data})

    def _rows(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        after, limit = _whole(query, "after", 0, 2**53), _whole(query, "limit", _PAGE, _MOST_ROWS)
        lines = [orjson.dumps(each.document()) + b"\n" for each in self._ledger.after(after, limit)]
        return document(200, b"".join(lines), "application/jsonl")

    def _counts(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        return _json(self._ledger.counts())

    def _faults(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        active: list[Json] = [
            rule.document() | {"seen": seen, "struck": struck}
            for rule, seen, struck in zip(self._injector.rules, self._injector.seen, self._injector.struck, strict=True)
        ]
        return _json({"catalogue": catalogue_json(), "active": active})

    def _set_faults(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        """One rule is added to those there are; a list of rules takes their place."""
        given = load_json(body, "the body")
        if isinstance(given, list):
            self._injector.replace(tuple(parse_rule(item, f"body[{index}]") for index, item in enumerate(given)))
        else:
            self._injector.add(parse_rule(given, "body"))
        return _json({"active": len(self._injector.rules)})

    def _clear_faults(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        self._injector.replace(())
        return _json({"active": 0})

    def _reset(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        """Forgets the ledger, and with `faults=1` the faults, too."""
        self._ledger.reset()
        if query.get("faults") == "1":
            self._injector.replace(())
        return _json({"reset": True})

    def _config_hash(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        return _json(self._managed.hashes(query.get("router", "")))

    def _config_document(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        return self._tagged(query, self._managed.state(query.get("router", "")).saved.document)

    def _config_schema(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        return _json({"sections": list(SECTIONS)})

    def _config_versions(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        return _json(self._managed.versions(query.get("router", "")))

    def _config_recipes(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        saved = self._managed.state(query.get("router", "")).saved.document
        return _json({"recipes": saved.get("recipes"), "entrypoints": saved.get("entrypoints")})

    def _config_validate(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        return _json(self._managed.validate(query.get("router", ""), load_json(body, "the body")))

    def _config_plan(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        return self._tagged(query, self._managed.plan(query.get("router", ""), load_json(body, "the body")))

    def _config_merge(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        return self._mutated(query, body, row, "merge")

    def _config_replace(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        return self._mutated(query, body, row, "replace")

    def _config_rollback(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        given, tag = load_json(body, "the body"), row.header(b"if-match")
        status, answer = self._managed.rollback(query.get("router", ""), given, tag)
        return self._tagged(query, answer, status)

    def _restart(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        given, tag = load_json(body, "the body"), row.header(b"if-match")
        status, answer = self._managed.restart(query.get("router", ""), given, tag)
        return self._tagged(query, answer, status)

    def _mutated(self, query: dict[str, str], body: bytes, row: Row, mode: str) -> Exchange:
        given, tag = load_json(body, "the body"), row.header(b"if-match")
        status, answer = self._managed.change(query.get("router", ""), given, mode, tag)
        return self._tagged(query, answer, status)

    def _tagged(self, query: dict[str, str], answer: Json, status: int = 200) -> Exchange:
        exchange = document(status, orjson.dumps(answer))
        exchange.set_header("etag", f'"{self._managed.state(query.get("router", "")).saved.source_hash}"')
        return exchange

    def _preview(self, query: dict[str, str], body: bytes, row: Row) -> Exchange:
        given = load_json(body, "the body")
        model, messages = routing.check_preview(given)
        router = self._managed.state(model).active
        self._ledger.previews += 1
        expected = row.header(b"x-sr-bench-expected-config-hash")
        if expected and expected != router.config_hash:
            raise InvalidInput("CONFIG_HASH_MISMATCH", f"the active configuration is {router.config_hash}, not {expected}")
        text = prompt_text(messages)
        request = Request(
            model=model, messages=messages, prompt=text, prompt_sha256=prompt_sha256(text), stream=False,
            include_usage=False, body_bytes=len(body),
        )  # fmt: skip
        context = given.get("preview_context") if isinstance(given, dict) else None
        seed = context.get("sampling_seed") if isinstance(context, dict) else None
        decision = self._chat.decide(router, request, router.max_inference_calls)
        return _json(routing.preview(router, decision, seed, request.prompt_sha256))


def _json(value: Json) -> Exchange:
    return document(200, orjson.dumps(value))


def _whole(query: dict[str, str], name: str, default: int, most: int) -> int:
    text = query.get(name, str(default))
    if not text.isdecimal() or int(text) > most:
        raise InvalidInput("BAD_FIELD", f"{name} is {text!r}; expected a whole number from 0 to {most}", field=name)
    return int(text)
