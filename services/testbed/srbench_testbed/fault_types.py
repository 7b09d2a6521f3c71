"""What a fault is: a name, a sentence, its parameters, and a change to the reply or to the exchange."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from srbench_kit.values import Json

from srbench_testbed.exchange import Exchange
from srbench_testbed.reply import Reply


@dataclass(slots=True, kw_only=True)
class Draft:
    """A reply on its way out, with what faults may need to know.

    Attributes:
        headers: what the answer will carry, router headers included.
        trailers: likewise, after the body.
        authorization: value of the request's header; empty when there was none.
    """

    reply: Reply
    headers: dict[str, str]
    trailers: dict[str, str] = field(default_factory=dict)
    authorization: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Checked parameters of a fault."""

    values: Mapping[str, Json]

    def number(self, name: str) -> float:
        """A number."""
        value = self.values[name]
        assert isinstance(value, int | float)
        return value

    def whole(self, name: str) -> int:
        """A whole number."""
        return int(self.number(name))

    def text(self, name: str) -> str:
        """A text."""
        value = self.values[name]
        assert isinstance(value, str)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One kind of fault. `defaults` names its parameters; a default's type is the parameter's type."""

    name: str
    sentence: str
    defaults: Mapping[str, Json] = field(default_factory=dict)
    on_reply: Callable[[Draft, Params], None] | None = None
    on_wire: Callable[[Exchange, Params], None] | None = None
