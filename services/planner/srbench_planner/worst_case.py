"""The most a plan can cost: every call that its cells can make, at the dearest price and the longest request of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from srbench_kit.values import Json

from srbench_planner import sampling, targets
from srbench_planner.benchmark_options import ROLES, step_prompts
from srbench_planner.cells import CellMatrix
from srbench_planner.ports import HarnessSpec

BYTES_PER_MESSAGE = 64
BYTES_PER_REQUEST = 256
# No character has more UTF-8 bytes, and no tokenizer makes more tokens than bytes.
BYTES_PER_CHAR = 4
# What a token of one model stands for; another model's tokenizer makes at most a token of each byte.
BYTES_PER_TOKEN = 4
# What a judge reads beside question, reference and answer: its instructions, the frame of the object, a schema of replies.
JUDGE_FRAME_BYTES = 4096
# A judge is shown no more of an answer, and no character takes more than an escape of six bytes. The grader's bounds;
# a test holds the two together.
JUDGED_CHARS = 20_100
BYTES_PER_ESCAPE = 6
# Graders of ours that ask nobody. What others ask is theirs to say.
ASK_NOBODY = frozenset({"choice", "grid", "code", "scicode", "harness", "tau3"})


class Asked(Protocol):
    """What the calls of a benchmark follow from."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def driver(self) -> str:
        """How the executor talks to the model."""

    @property
    def grader(self) -> str:
        """Name of the grader."""

    @property
    def harness(self) -> HarnessSpec | None:
        """Who runs its cases, where a harness does."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Gap:
    """Why a figure is unknown: a stable reason, what it concerns (empty for all), and a sentence."""

    reason: str
    benchmark: str = ""
    target_id: str = ""
    message: str


@dataclass(frozen=True, slots=True)
class Spend:
    """What calls cost.

    Attributes:
        picodollars: `None` when that is unknown.
        calls: how many there are at most.
        gaps: why it is unknown; empty when it is known.
    """

    picodollars: int | None
    calls: int
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class Planned:
    """What is asked of whom: a frozen manifest, its cases, and the benchmarks by id."""

    manifest: Mapping[str, Json]
    cases: Sequence[Mapping[str, Json]]
    specs: Mapping[str, Asked]

    def part(self, name: str) -> dict[str, Json]:
        """An object of the manifest, empty where it has none."""
        value = self.manifest.get(name)
        return value if isinstance(value, dict) else {}

    @property
    def targets(self) -> list[dict[str, Json]]:
        """What is compared."""
        found = self.manifest["targets"]
        assert isinstance(found, list)
        return [target for target in found if isinstance(target, dict)]

    def helper(self, benchmark: str, role: str) -> dict[str, Json] | None:
        """The target that is judge or simulator of `benchmark`; `None` when the options name none."""
        options = self.part("benchmark_options").get(benchmark)
        return self.named(options.get(role) if isinstance(options, dict) else None)

    def named(self, name: Json) -> dict[str, Json] | None:
        """The target with this id, compared or not."""
        known = [*self.targets, *self.part("auxiliary_targets").values()]
        return next((target for target in known if isinstance(target, dict) and target["id"] == name), None)

    def limit(self, name: str) -> int:
        """A whole number among the limits."""
        value = self.part("limits")[name]
        assert isinstance(value, int)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What one call of a target costs at most. Tokens; picodollars a token.

    Attributes:
        inference_calls: most inference calls behind a request.
        own: prompt tokens of the target's own fields.
        again: prompt tokens of an answer that is read again.
        window: most prompt tokens of an inference call; `None` when it is not registered.
    """

    target_id: str
    inference_calls: int
    own: int
    again: int
    window: int | None
    prompt_rate: int
    output: int
    output_rate: int

    def call(self, prompt: int | None) -> int:
        """The most that a call with `prompt` tokens costs; `None` for one that fills the window."""
        bounds = [] if prompt is None else [prompt + self.own + (self.inference_calls - 1) * self.again]
        bounds += [] if self.window is None else [self.window]
        return self.inference_calls * (min(bounds) * self.prompt_rate + self.output * self.output_rate)


@dataclass(frozen=True, slots=True)
class Prompts:
    """Upper bounds of the prompt tokens of a case: of each call of its subject, and of a call of its judge."""

    subject: tuple[int, ...]
    judge: int


def worst_case(planned: Planned, matrix: CellMatrix) -> Spend:
    """The most that the cells of `matrix` cost. Calls that were provably not accepted cost nothing.

    Each call costs `k * (I * p_in + O * p_out)`: `k` inference calls behind it, `I` the UTF-8 bytes of its request, for no
    tokenizer makes more tokens, `O` its output cap, `p` the dearest price of the target's models. A model that reads its
    own answer again makes at most `O` tokens of it; another model behind a router at most `4 * O`, a token a byte, which
    is no less than what is reserved for it. A registered context window bounds `I`.
    Source: the reservation rule of the sr-bench 1.0 protocol.
    """
    if planned.manifest["mode"] != "live":
        return Spend(0, 0)
    total, calls = 0, 0
    gaps: set[Gap] = set()
    seen = -1
    asked = Prompts((), 0)
    rates = [rates_of(planned, target) for target in planned.targets]
    helpers: dict[str, list[Rates | Gap]] = {}
    for cell in range(len(matrix)):
        place, index = matrix.pair(cell)
        case = planned.cases[place]
        spec = planned.specs[str(case["benchmark"])]
        if spec.id not in helpers:
            helpers[spec.id] = [*helpers_of(planned, spec)]
        if place != seen:
            seen, asked = place, _prompts(planned, spec, case)
        made = _cell(planned, spec, asked, rates[index], helpers[spec.id])
        calls += made.calls
        total += made.picodollars or 0
        gaps.update(made.gaps)
    return Spend(None if gaps else total, calls, tuple(sorted(gaps)))


def _prompts(planned: Planned, spec: Asked, case: Mapping[str, Json]) -> Prompts:
    if spec.harness is not None:
        return Prompts((), 0)
    return Prompts(tuple(prompts_of(case, spec.driver)), judge_prompt(case, planned.limit("max_output_chars")))


def _cell(planned: Planned, spec: Asked, prompts: Prompts, own: Rates | Gap, helpers: Sequence[Rates | Gap]) -> Spend:
    gaps = [rates for rates in (own, *helpers) if isinstance(rates, Gap)]
    known = [rates for rates in (own, *helpers) if isinstance(rates, Rates)]
    if spec.harness is not None:
        # Its calls are shared out among the roles as it likes.
        most = planned.limit("max_calls_per_case")
        gaps += [_unbounded(spec, rates) for rates in known if rates.window is None]
        return Spend(None, most, tuple(gaps)) if gaps else Spend(most * max(rates.call(None) for rates in known), most)
    calls = len(prompts.subject) + len(helpers)
    if gaps or not isinstance(own, Rates):
        return Spend(None, calls, tuple(gaps))
    total = sum(own.call(prompt + number * own.again) for number, prompt in enumerate(prompts.subject))
    return Spend(total + sum(rates.call(prompts.judge) for rates in known[1:]), calls)


def _unbounded(spec: Asked, rates: Rates) -> Gap:
    message = (
        f"the harness of {spec.id} writes its requests as long as it likes, and native_limits of the target "
        f"{rates.target_id} name no context window"
    )
    return Gap(reason="AGENT_PROMPT_UNBOUNDED", benchmark=spec.id, target_id=rates.target_id, message=message)


def helpers_of(planned: Planned, spec: Asked) -> Iterator[Rates | Gap]:
    """The judges and simulators that may be asked beside the subject, or why what they cost is unknown."""
    if spec.harness is not None:
        roles: tuple[str, ...] = tuple(role for role in ROLES if planned.helper(spec.id, role) is not None)
    elif spec.grader == "judge":
        second = planned.helper(spec.id, "second_judge")
        roles = ("judge",) if second is None else ("judge", "second_judge")
    elif spec.grader not in ASK_NOBODY and any(planned.helper(spec.id, role) for role in ROLES):
        message = f"what the grader {spec.grader!r} of {spec.id} asks its judges is not known"
        yield Gap(reason="GRADER_UNKNOWN", benchmark=spec.id, message=message)
        return
    else:
        return
    for role in roles:
        helper = planned.helper(spec.id, role)
        if helper is None:
            message = f"the options name no judge of {spec.id}"
            yield Gap(reason="JUDGE_NOT_NAMED", benchmark=spec.id, message=message)
        else:
            yield rates_of(planned, helper)


def request_bytes(case: Mapping[str, Json]) -> int:
    """Upper bound of the prompt tokens of a case without its target's own fields: UTF-8 bytes of its JSON, and a margin."""
    messages = case.get("messages")
    sent = {key: value for key, value in case.items() if key not in ("id", "benchmark", "answer", "metadata", "choices")}
    count = len(messages) if isinstance(messages, list) else 0
    return json_bytes(sent) + BYTES_PER_MESSAGE * count + BYTES_PER_REQUEST


def prompts_of(case: Mapping[str, Json], driver: str) -> list[int]:
    """Upper bounds of the prompt tokens of a case's calls, without the answers that later steps read again."""
    if driver != "scicode":
        return [request_bytes(case)]
    # Between two questions stands an answer, as a message of its own.
    steps = enumerate(step_prompts(case))
    return [request_bytes({**case, "messages": messages}) + BYTES_PER_MESSAGE * number for number, messages in steps]


def judge_prompt(case: Mapping[str, Json], max_output_chars: int) -> int:
    """Upper bound of the prompt tokens of a judge of the case: question, reference and what it is shown of the answer."""
    shown = min(max_output_chars, JUDGED_CHARS) * BYTES_PER_ESCAPE
    told = json.dumps([case.get("messages"), case.get("answer")], ensure_ascii=False)
    # Marks that could mean something to a chat template are escaped.
    escaped = (BYTES_PER_ESCAPE - 1) * (told.count("<") + told.count("["))
    frame = JUDGE_FRAME_BYTES + 2 * BYTES_PER_MESSAGE + BYTES_PER_REQUEST
    return frame + len(told.encode("utf-8", "replace")) + escaped + shown


def rates_of(planned: Planned, target: Mapping[str, Json]) -> Rates | Gap:
    """What the calls of `target` cost at most, or that it has no prices."""
    prices = target.get("prices")
    if not isinstance(prices, dict) or not prices:
        return Gap(reason="NO_PRICES", target_id=str(target["id"]), message=f"the target {target['id']} has no prices")
    params = target.get("request_params")
    sent = sampling.effective(planned.part("sampling"), params if isinstance(params, dict) else {})
    fields: dict[str, Json] = {"model": target["model"], "stream": True, "stream_options": {"include_usage": True}, **sent}
    calls = target.get("max_inference_calls", 1)
    assert isinstance(calls, int)
    output = sampling.output_cap(sent) or planned.limit("max_output_tokens")
    most = planned.limit("max_output_chars") * BYTES_PER_CHAR
    # Behind a router another model may read the answer, and its tokenizer make more tokens of it.
    answer = output if target["kind"] == "single" else output * BYTES_PER_TOKEN
    return Rates(
        target_id=str(target["id"]),
        inference_calls=calls,
        own=json_bytes(fields),
        again=min(answer, most),
        window=_window(target, prices),
        prompt_rate=max(_dearest(price, (*targets.PRICE_KEYS[:3], targets.LONG_WRITE_KEY)) for price in prices.values()),
        output=output,
        output_rate=max(_dearest(price, ("output",)) for price in prices.values()),
    )


def _window(target: Mapping[str, Json], prices: Mapping[str, Json]) -> int | None:
    native = target.get("native_limits")
    if not isinstance(native, dict) or not native or (target["kind"] != "single" and not prices.keys() <= native.keys()):
        return None
    windows = [limit["context_window"] for limit in native.values() if isinstance(limit, dict)]
    return max(window for window in windows if isinstance(window, int))


def json_bytes(value: Json) -> int:
    """UTF-8 bytes of `value` as JSON."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _dearest(price: Json, keys: tuple[str, ...]) -> int:
    assert isinstance(price, dict)
    return max(targets.price_picodollars(price[key], key) for key in keys if key in price)
