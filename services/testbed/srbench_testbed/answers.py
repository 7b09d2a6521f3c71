"""What a model says to a prompt: right or wrong by its skill, decided by seed, model and case alone."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field

import orjson
from srbench_kit.values import Json

from srbench_testbed import dialogues
from srbench_testbed.answer_key import Entry
from srbench_testbed.config import Model

# Neutral words: no letter stands alone, and nothing announces an answer.
_WORDS = (
    " Considering", " the", " given", " data,", " each", " step", " follows", " from", " what", " came", " before;",
    " comparing", " both", " sides", " gives", " one", " consistent", " result.",
)  # fmt: skip
_CHOICE_TAILS = (
    "\n\nAnswer: {0}",
    "\n\n**Answer:** {0}",
    "\n\nThe answer is {0}.",
    "\n\n{0}",
    "\n\n\\boxed{{{0}}}",
    "\n\nFinal answer: ({0})",
)
_GRID_FRAMES = (("", ""), ("```json\n", "\n```"), ("The output follows.\n\n```\n", "\n```"), ("Result: ", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is said, in pieces, and what is thought before it.

    Attributes:
        calls: tool calls, (name, arguments as JSON text) each.
        right: whether it is the key's answer; None for a prompt that the key does not know.
        cache: rendered forms by name of the model, kept with the answer because most answers come again and again.
    """

    pieces: tuple[str, ...]
    reasoning: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    right: bool | None = None
    cache: dict[str, object] = field(default_factory=dict, compare=False)

    @property
    def text(self) -> str:
        """The whole content."""
        return "".join(self.pieces)


def unit(seed: int, *parts: str) -> float:
    """A number in [0, 1) that depends on nothing but its arguments."""
    data = "\x00".join((str(seed), *parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=7).digest(), "big") / 2**56


class Speaker:
    """Answers prompts. Pure but for a bounded memory of choice answers that were put together before."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._choices: dict[tuple[str, str, int, bool | None], Answer] = {}

    def answer(self, model: Model, prompt: str, prompt_sha256: str, entry: Entry | None) -> Answer:
        """What `model` says."""
        # Only the wording depends on it, so it need not be as even as `unit`, which costs more.
        form = zlib.crc32(prompt_sha256.encode() + model.id.encode(), self._seed & 0xFFFFFFFF) / 2**32
        if entry is None:
            letter = "ABCD"[zlib.crc32(prompt.encode("utf-8", "surrogatepass")) % 4]
            return self._choice(model, letter, form, None)
        right = self.is_right(model, prompt_sha256, entry)
        said = (
            entry.right
            if right
            else entry.wrong[int(unit(self._seed, "wrong", model.id, prompt_sha256) * len(entry.wrong))]
        )
        if entry.kind == "choice":
            return self._choice(model, str(said), form, right)
        return self._text(model, said, entry.kind, form, right)

    def turn(self, model: Model, messages: Json, entry: Entry) -> Answer:
        """What `model` says next in a conversation with tools. Its skill decides once for the whole conversation."""
        said = dialogues.turn(entry, messages, self.is_right(model, entry.prompt_sha256, entry))
        if said.tool:
            call = (said.tool, orjson.dumps(said.arguments or {}).decode())
            return Answer(pieces=(), calls=(call,), right=said.right)
        return Answer(pieces=_split(said.text, model.chunks), right=said.right)

    def commands(self, model: Model, messages: Json, entry: Entry) -> Answer:
        """What `model` does next at a task in a terminal: one command a turn, then a word. Its skill decides once."""
        right = self.is_right(model, entry.prompt_sha256, entry)
        script = entry.right if right else entry.wrong[0]
        listed = messages if isinstance(messages, list) else []
        taken = sum(isinstance(message, dict) and message.get("role") == "assistant" for message in listed)
        if isinstance(script, list) and taken < len(script):
            return Answer(pieces=(), calls=(("terminal", orjson.dumps({"command": script[taken]}).decode()),), right=right)
        return Answer(pieces=("Done.",), right=right)

    def is_right(self, model: Model, prompt_sha256: str, entry: Entry) -> bool:
        """Whether `model` gets this case right."""
        return unit(self._seed, "skill", model.id, prompt_sha256) < model.skill_in(entry.benchmark, entry.stratum)

    def _choice(self, model: Model, letter: str, form: float, right: bool | None) -> Answer:
        bare = form < model.bare_share or model.chunks == 1
        tail = -1 if bare else int(form * 7919) % len(_CHOICE_TAILS)
        key = (model.id, letter, tail, right)
        known = self._choices.get(key)
        if known is None:
            pieces = (letter,) if bare else (*_prose(model.chunks - 1), _CHOICE_TAILS[tail].format(letter))
            known = _with_reasoning(model, pieces, letter, right)
            self._choices[key] = known
        return known

    def _text(self, model: Model, said: Json, kind: str, form: float, right: bool) -> Answer:
        if kind == "grid":
            before, after = _GRID_FRAMES[int(form * 7919) % len(_GRID_FRAMES)]
            text = before + orjson.dumps(said).decode() + after
        else:
            text = said if isinstance(said, str) else orjson.dumps(said).decode()
        return _with_reasoning(model, _split(text, model.chunks), text, right)


def _with_reasoning(model: Model, pieces: tuple[str, ...], answer: str, right: bool | None) -> Answer:
    """Moves prose into the reasoning channel of models that have one, so that a piece stays a piece."""
    if model.reasoning == "none":
        return Answer(pieces=pieces, right=right)
    thoughts = _prose(max(1, model.chunks - 1))
    if model.reasoning == "think":
        return Answer(pieces=("<think>", *thoughts, "</think>", f"\n\n{answer}"), right=right)
    return Answer(pieces=(answer,), reasoning=thoughts, right=right)


def _prose(count: int) -> tuple[str, ...]:
    return tuple(_WORDS[index % len(_WORDS)] for index in range(count))


def _split(text: str, count: int) -> tuple[str, ...]:
    """`text` in at most `count` pieces of about the same size."""
    size = max(1, -(-len(text) // count))
    return tuple(text[start : start + size] for start in range(0, len(text), size)) or ("",)
