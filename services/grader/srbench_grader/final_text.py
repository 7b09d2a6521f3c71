"""The final channel of an answer: what is left when reasoning is taken out."""
# ruff: noqa: RUF001  (the characters that models write)

from __future__ import annotations

import re

# Judging looks at no more than this from the end: a bound on time for hostile outputs. Ordinary limits on output
# (131,072 characters) lie far below it.
MAX_CHARS = 400_000

# What models put around their reasoning: Qwen, DeepSeek, GLM; Kimi; EXAONE; Seed; Magistral; Command A.
_TAG = re.compile(
    r"[<◁](/?)(?:seed:|mm:)?(?:think|thinking|thought|reasoning)[>▷]|\[(/?)THINK\]|<\|(?:START|(END))_THINKING\|>",
    re.IGNORECASE,
)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>final\s?(?:<\|constrain\|>\w{0,20})?<\|message\|>")
_OTHER_CHANNEL = re.compile(r"\s{0,20}(?:<\|start\|>assistant)?<\|channel\|>")
_QUOTES = frozenset("`'\"")
# The marks of an end of turn that a server forgot to take off.
_ENDS = re.compile(
    r"(?:\s*(?:</s>|<(?:end_of_turn|eos)>|<\|(?:im_end|end|return|eot_id|eom_id|endoftext|end_of_text|end_of_turn|user)\|>"
    r"|<｜end▁of▁sentence｜>|<\|END_(?:RESPONSE|OF_TURN_TOKEN)\|>))+\s*\Z",
    re.IGNORECASE,
)
_MAX_END_CHARS = 400


def final_text(text: str) -> str:
    """`text` without its reasoning and the marks of its end, at most its last `MAX_CHARS` characters.

    A closing tag without an opening one ends reasoning that began before the text. An opening tag without a closing one
    means that the model never came to an answer: nothing is left; only `<reasoning>`, which prompts ask for as a part of an
    answer, may stay open. A tag in quotes is only spoken of.
    """
    final = max((match.end() for match in _FINAL_CHANNEL.finditer(text)), default=0)
    if not final and _OTHER_CHANNEL.match(text):
        # Channels of reasoning, and none of an answer.
        return ""
    text = text[final:]
    return _without_ends(_without_reasoning(text.removeprefix("\ufeff")))[-MAX_CHARS:]


def _without_ends(text: str) -> str:
    end = _ENDS.search(text, max(0, len(text) - _MAX_END_CHARS)) if text.rstrip().endswith(">") else None
    return text[: end.start()] if end else text


def _without_reasoning(text: str) -> str:
    kept: list[str] = []
    start, inside = 0, ""
    for tag in _TAG.finditer(text):
        if _spoken_of(text, tag):
            continue
        closes = bool(tag[1] or tag[2] or tag[3])
        if not closes and not inside:
            kept.append(text[start : tag.start()])
            start, inside = tag.end(), tag[0].lower()
        elif closes:
            if not inside:
                kept.clear()
            start, inside = tag.end(), ""
    if inside and "reasoning" not in inside:
        return ""
    kept.append(text[start:])
    return "".join(kept)


def _spoken_of(text: str, tag: re.Match[str]) -> bool:
    before, behind = text[max(0, tag.start() - 2) : tag.start()], text[tag.end() : tag.end() + 1]
    # Three backticks are a fence.
    return behind in _QUOTES and before[-1:] == behind and before != behind * 2
