"""Sentences for people that programs can tell by a code: texts as any other, with what they were made from."""

from __future__ import annotations


class Saying(str):
    """A sentence.

    Attributes:
        code: stable, in capitals; the text may be reworded.
        facts: what it mentions, as text.
    """

    __slots__ = ("code", "facts")
    code: str
    facts: dict[str, str]

    def __new__(cls, code: str, text: str, **facts: object) -> Saying:
        made = super().__new__(cls, text)
        made.code = code
        made.facts = {key: str(value) for key, value in facts.items()}
        return made

    def __reduce__(self) -> tuple[object, ...]:
        # A copy, also in another process, keeps code and facts.
        return _again, (self.code, str(self), self.facts)


def _again(code: str, text: str, facts: dict[str, str]) -> Saying:
    return Saying(code, text, **facts)
