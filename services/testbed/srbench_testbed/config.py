"""What the testbed pretends to be: models with skill, price and pace, and routers over them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

from srbench_kit.canonical import digest
from srbench_kit.documents import load_json, load_yaml
from srbench_kit.errors import InvalidInput, NotFound
from srbench_kit.values import Json

from srbench_testbed.faults import Rule, parse_rule
from srbench_testbed.fields import Fields

DIALECTS = ("openai", "openai_plain", "anthropic", "deepseek", "gemini")
USAGE_WHEN = ("asked", "always", "never")
REASONING = ("none", "reasoning_content", "reasoning", "think")
RECEIPTS = ("header", "trailer", "event", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens. The testbed charges nothing; targets files carry it."""

    input: float = 0.0
    cached_input: float = 0.0
    cache_write: float = 0.0
    output: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model.

    Attributes:
        skill: subject (`benchmark/stratum`, `benchmark` or `default`) to the share of cases it gets right, in [0, 1].
        ttft_ms, itl_ms: milliseconds before the first piece, and between pieces.
        chunks: pieces of text in an answer.
        bare_share: share of choice answers that are nothing but the letter, in one piece.
        usage: shape of the usage object; `usage_when`: whether it comes when asked for, always or never.
        cached_share: share of prompt tokens said to come from a cache, in [0, 1].
        reasoning: how reasoning is sent, if at all.
        response_mode: `json` answers with one document even when a stream was asked for.
        response_model: the name in answers, when it is another than `id`.
    """

    id: str
    skill: Mapping[str, float] = field(default_factory=dict)
    price: Price = field(default_factory=Price)
    ttft_ms: float = 0.0
    itl_ms: float = 0.0
    chunks: int = 20
    bare_share: float = 0.0
    usage: str = "openai"
    usage_when: str = "asked"
    cached_share: float = 0.0
    reasoning: str = "none"
    response_mode: str = "sse"
    response_model: str = ""

    def skill_in(self, benchmark: str, stratum: str) -> float:
        """The share of cases of a subject that it gets right."""
        for subject in (f"{benchmark}/{stratum}", benchmark, "default"):
            if subject in self.skill:
                return self.skill[subject]
        return 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A routing rule; all conditions that are set must hold. `calls` are the models called, the last one answers."""

    decision: str
    calls: tuple[str, ...]
    subject: str = ""
    keyword: str = ""
    share: float = 1.0
    plugins: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        """The model that answers."""
        return self.calls[-1]


@dataclass(frozen=True, kw_only=True)
class Router:
    """A Mixture of Models.

    Attributes:
        routes: tried in order; the last one must hold always.
        receipt: where the usage receipt travels.
        activation_s: seconds from a change of the configuration to its being in force.
        response_model: `selected` puts the selected model's name into answers, `router` the router's own.
        config: the router's configuration as its API shows it; its digest is the configuration hash.
    """

    id: str
    routes: tuple[Route, ...]
    receipt: str = "header"
    max_inference_calls: int = 8
    response_model: str = "selected"
    activation_s: float = 0.0
    config: Mapping[str, Json] = field(default_factory=dict)

    @cached_property
    def config_hash(self) -> str:
        """64 hex digits that change with anything that changes routing."""
        return digest(self.document)

    @cached_property
    def source_hash(self) -> str:
        """Digest of the configuration's text, the tag of its document."""
        return hashlib.sha256(digest({"source": self.document}).encode()).hexdigest()

    @property
    def document(self) -> dict[str, Json]:
        """The configuration, with the routes in it."""
        decisions: list[Json] = [
            {
                "name": route.decision,
                "calls": list(route.calls),
                "subject": route.subject,
                "keyword": route.keyword,
                "share": route.share,
                "plugins": list(route.plugins),
            }
            for route in self.routes
        ]
        base: dict[str, Json] = {
            "recipes": [{"name": "default", "decisions": [route.decision for route in self.routes]}],
            "entrypoints": [{"model": self.id, "recipe": "default"}],
            "evaluation": {},
            "routing": {"decisions": decisions},
            "global": {"router": {"learning": {"enabled": False}}},
            "listeners": [{"name": "http", "timeout_s": 300}],
        }
        return base | dict(self.config)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All of it. Names of models and routers are unique."""

    seed: int = 20260918
    models: tuple[Model, ...] = ()
    routers: tuple[Router, ...] = ()
    faults: tuple[Rule, ...] = ()


def read_config(path: Path | None) -> Config:
    """The configuration in `path`, or the built-in one.

    Raises: `NotFound` (`NO_SUCH_FILE`), `InvalidInput`.
    """
    if path is None:
        return DEFAULT
    try:
        text = path.read_bytes()
    except OSError as error:
        raise NotFound("NO_SUCH_FILE", f"{path} cannot be read: {error.strerror}") from error
    load = load_json if path.suffix == ".json" else load_yaml
    return parse_config(load(text, path.name))


def parse_config(document: Json) -> Config:
    """The configuration that `document` describes; every unknown member is refused."""
    fields = Fields(document, "config")
    config = Config(
        seed=fields.whole("seed", 20260918),
        models=tuple(_model(item, f"models[{index}]") for index, item in enumerate(fields.items("models"))),
        routers=tuple(_router(item, f"routers[{index}]") for index, item in enumerate(fields.items("routers"))),
        faults=tuple(parse_rule(item, f"faults[{index}]") for index, item in enumerate(fields.items("faults"))),
    )
    fields.finish()
    _check(config)
    return config


def check_routes(router: Router, models: Collection[str]) -> None:
    """Refuses routes that call what is no model, or that leave a prompt without one.

    Raises: `InvalidInput` (`NO_SUCH_MODEL`, `NO_DEFAULT_ROUTE`).
    """
    for route in router.routes:
        for call in route.calls:
            if call not in models:
                raise InvalidInput(
                    "NO_SUCH_MODEL", f"route {route.decision!r} of {router.id!r} calls {call!r}, which is no model"
                )
    last = router.routes[-1]
    if last.subject or last.keyword or last.share < 1:
        raise InvalidInput(
            "NO_DEFAULT_ROUTE", f"the last route of {router.id!r} has a condition; expected one that always holds"
        )


def _check(config: Config) -> None:
    names = [model.id for model in config.models] + [router.id for router in config.routers]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput("LISTED_TWICE", f"the name {name!r} is given to two models or routers", value=name)
    if not config.models:
        raise InvalidInput("NO_MODELS", "config.models is empty; expected at least one model")
    known = {model.id for model in config.models}
    for router in config.routers:
        check_routes(router, known)


def _model(item: Json, name: str) -> Model:
    fields = Fields(item, name)
    skill = fields.inner("skill")
    skills = {key: skill.number(key, 0.0, 0.0, 1.0) for key in skill.members}
    price = fields.inner("price")
    prices = Price(**{key: price.number(key, 0.0) for key in ("input", "cached_input", "cache_write", "output")})
    price.finish()
    model = Model(
        id=fields.text("id"),
        skill=skills,
        price=prices,
        ttft_ms=fields.number("ttft_ms", 0.0),
        itl_ms=fields.number("itl_ms", 0.0),
        chunks=fields.whole("chunks", 20, 1, 1_000_000),
        bare_share=fields.number("bare_share", 0.0, 0.0, 1.0),
        usage=fields.text("usage", "openai", DIALECTS),
        usage_when=fields.text("usage_when", "asked", USAGE_WHEN),
        cached_share=fields.number("cached_share", 0.0, 0.0, 1.0),
        reasoning=fields.text("reasoning", "none", REASONING),
        response_mode=fields.text("response_mode", "sse", ("sse", "json")),
        response_model=fields.text("response_model", ""),
    )
    fields.finish()
    return model


def _router(item: Json, name: str) -> Router:
    fields = Fields(item, name)
    router = Router(
        id=fields.text("id"),
        routes=tuple(_route(route, f"{name}.routes[{index}]") for index, route in enumerate(fields.items("routes"))),
        receipt=fields.text("receipt", "header", RECEIPTS),
        max_inference_calls=fields.whole("max_inference_calls", 8, 1, 256),
        response_model=fields.text("response_model", "selected", ("selected", "router")),
        activation_s=fields.number("activation_s", 0.0),
        config=fields.inner("config").members,
    )
    fields.finish()
    if not router.routes:
        raise InvalidInput("NO_ROUTES", f"{name}.routes is empty; expected at least one route")
    return router


def with_document(router: Router, document: Json) -> Router:
    """`router` under another configuration, in the form that its API shows.

    Raises: `InvalidInput` for what the configuration must not say.
    """
    fields = Fields(document, "config")
    routing = fields.inner("routing")
    decisions = routing.items("decisions")
    routing.finish()
    if not decisions:
        raise InvalidInput("NO_ROUTES", "config.routing.decisions is empty; expected at least one decision")
    routes = tuple(_decision(item, f"config.routing.decisions[{index}]") for index, item in enumerate(decisions))
    others = {key: value for key, value in fields.members.items() if key != "routing"}
    return replace(router, routes=routes, config=others)


def _decision(item: Json, name: str) -> Route:
    fields = Fields(item, name)
    route = Route(
        decision=fields.text("name"),
        calls=fields.texts("calls"),
        subject=fields.text("subject", ""),
        keyword=fields.text("keyword", ""),
        share=fields.number("share", 1.0, 0.0, 1.0),
        plugins=fields.texts("plugins"),
    )
    fields.finish()
    if not route.calls:
        raise InvalidInput("BAD_FIELD", f"{name}.calls is empty; expected the models that it calls", field=f"{name}.calls")
    return route


def _route(item: Json, name: str) -> Route:
    fields = Fields(item, name)
    calls = fields.texts("calls")
    if fields.has("model") and calls:
        raise InvalidInput("BAD_FIELD", f"{name} has both model and calls; expected one of them", field=name)
    route = Route(
        decision=fields.text("decision"),
        calls=calls or (fields.text("model"),),
        subject=fields.text("subject", ""),
        keyword=fields.text("keyword", ""),
        share=fields.number("share", 1.0, 0.0, 1.0),
        plugins=fields.texts("plugins"),
    )
    if calls:
        fields.any("model")
    fields.finish()
    return route


def config_json(config: Config) -> dict[str, Json]:
    """`config` as a document that `parse_config` reads back."""
    document: dict[str, Json] = asdict(config)
    document["routers"] = [
        {
            **asdict(router),
            "routes": [
                {**asdict(route), "calls": list(route.calls), "plugins": list(route.plugins)} for route in router.routes
            ],
        }
        for router in config.routers
    ]
    document["models"] = [asdict(model) for model in config.models]
    document["faults"] = [rule.document() for rule in config.faults]
    return document


DEFAULT = Config(
    models=(
        Model(
            id="small",
            skill={"default": 0.45, "mmlu-pro": 0.55, "gpqa-diamond": 0.35, "arc-agi-2": 0.1},
            price=Price(input=0.1, cached_input=0.01, cache_write=0.1, output=0.4),
            ttft_ms=60, itl_ms=3, cached_share=0.25,
        ),
        Model(
            id="medium",
            skill={"default": 0.6, "mmlu-pro": 0.7, "gpqa-diamond": 0.55, "arc-agi-2": 0.3},
            price=Price(input=0.6, cached_input=0.06, cache_write=0.6, output=2.4),
            ttft_ms=120, itl_ms=5, cached_share=0.25,
        ),
        Model(
            id="large",
            skill={"default": 0.75, "mmlu-pro": 0.82, "gpqa-diamond": 0.72, "arc-agi-2": 0.5},
            price=Price(input=3.0, cached_input=0.3, cache_write=3.75, output=15.0),
            ttft_ms=220, itl_ms=8, cached_share=0.25,
        ),
    ),
    routers=(
        Router(
            id="router",
            routes=(
                Route(decision="puzzles", calls=("large",), subject="arc-agi-2"),
                Route(decision="hard-science", calls=("large",), subject="gpqa-diamond"),
                Route(decision="numbers", calls=("large",), subject="mmlu-pro/math"),
                Route(decision="doubtful", calls=("small", "large"), share=0.2),
                Route(decision="everyday", calls=("medium",)),
            ),
        ),
    ),
)  # fmt: skip
