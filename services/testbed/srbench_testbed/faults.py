"""Which faults there are, and when they strike."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_testbed.fault_types import Fault, Params
from srbench_testbed.fields import Fields
from srbench_testbed.reply_faults import REPLY_FAULTS
from srbench_testbed.wire_faults import WIRE_FAULTS

CATALOGUE: Mapping[str, Fault] = {fault.name: fault for fault in (*REPLY_FAULTS, *WIRE_FAULTS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One fault and the requests that it strikes.

    Attributes:
        model, prompt_substring: what a request must have; empty means any.
        nth: only the n-th such request, from 1; 0 means any.
        every: each n-th such request; 0 means any.
        probability: share of such requests, decided by `seed` and their number.
        times: most strikes; 0 means no limit.
    """

    fault: Fault
    params: Params
    model: str = ""
    prompt_substring: str = ""
    nth: int = 0
    every: int = 0
    probability: float = 1.0
    seed: int = 0
    times: int = 0

    def document(self) -> dict[str, Json]:
        """As a document that `parse_rule` reads back."""
        match: dict[str, Json] = {
            "model": self.model, "prompt_substring": self.prompt_substring, "nth": self.nth, "every": self.every,
            "probability": self.probability, "seed": self.seed, "times": self.times,
        }  # fmt: skip
        return {"fault": self.fault.name, "match": match, "params": dict(self.params.values)}


def parse_rule(item: Json, name: str) -> Rule:
    """The rule that a document describes.

    Raises: `InvalidInput` (`NO_SUCH_FAULT`, `UNKNOWN_FIELD`, `BAD_FIELD`).
    """
    fields = Fields(item, name)
    fault = _fault(fields.text("fault"))
    match = fields.inner("match")
    rule = Rule(
        fault=fault,
        params=_params(fault, fields.inner("params")),
        model=match.text("model", ""),
        prompt_substring=match.text("prompt_substring", ""),
        nth=match.whole("nth", 0),
        every=match.whole("every", 0),
        probability=match.number("probability", 1.0, 0.0, 1.0),
        seed=match.whole("seed", 0),
        times=match.whole("times", 0),
    )
    match.finish()
    fields.finish()
    return rule


def _fault(name: str) -> Fault:
    if name not in CATALOGUE:
        near = difflib.get_close_matches(name, CATALOGUE, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidInput("NO_SUCH_FAULT", f"there is no fault named {name!r}{hint}", value=name)
    return CATALOGUE[name]


def _params(fault: Fault, fields: Fields) -> Params:
    values: dict[str, Json] = {}
    for key, default in fault.defaults.items():
        match default:
            case int():
                values[key] = fields.whole(key, default)
            case float():
                values[key] = fields.number(key, default, -1.0)
            case _:
                values[key] = fields.text(key, str(default))
    fields.finish()
    return Params(values=values)


class Injector:
    """Decides for each request which fault strikes it: the first rule that matches. Counts per rule."""

    def __init__(self, rules: tuple[Rule, ...] = ()) -> None:
        self.replace(rules)

    def replace(self, rules: tuple[Rule, ...]) -> None:
        """Takes `rules` in place of those before, with fresh counts."""
        self.rules = list(rules)
        self.seen = [0] * len(rules)
        self.struck = [0] * len(rules)

    def add(self, rule: Rule) -> None:
        """Adds a rule behind the others."""
        self.rules.append(rule)
        self.seen.append(0)
        self.struck.append(0)

    def strike(self, model: str, prompt: str) -> Rule | None:
        """The rule that strikes this request."""
        for index, rule in enumerate(self.rules):
            if (rule.model and rule.model != model) or rule.prompt_substring not in prompt:
                continue
            self.seen[index] += 1
            number = self.seen[index]
            if (rule.nth and number != rule.nth) or (rule.every and number % rule.every):
                continue
            if (rule.times and self.struck[index] >= rule.times) or not _drawn(rule, number):
                continue
            self.struck[index] += 1
            return rule
        return None


def _drawn(rule: Rule, number: int) -> bool:
    if rule.probability >= 1:
        return True
    data = f"{rule.seed}/{rule.fault.name}/{number}".encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=7).digest(), "big") / 2**56 < rule.probability


def catalogue_json() -> list[Json]:
    """Every fault with its sentence and its parameters' defaults."""
    return [
        {"name": fault.name, "sentence": fault.sentence, "params": dict(fault.defaults)} for fault in CATALOGUE.values()
    ]
