"""The final channel of an answer: what is left when reasoning is taken out."""

from __future__ import annotations

import re

# Judging looks at no more than this from the end: a bound on time for hostile outputs. Ordinary limits on output
# (131,072 characters) lie far below it.
MAX_CHARS = 400_000

_TAG = re.compile(r"[<◁](/?)(?:think|thinking)[>▷]|\[(/?)THINK\]", re.IGNORECASE)
_FINAL_CHANNEL = "<|channel|>final<|message|>"


def final_text(text: str) -> str:
    """`text` without its reasoning, at most its last `MAX_CHARS` characters.

    A closing tag without an opening one ends reasoning that began before the text. An opening tag without a closing one
    means that the model never came to an answer: nothing is left.
    """
    start = text.rfind(_FINAL_CHANNEL)
    if start >= 0:
        text = text[start + len(_FINAL_CHANNEL) :]
    if not _TAG.search(text):
        return text[-MAX_CHARS:]
    kept: list[str] = []
    start, inside = 0, False
    for tag in _TAG.finditer(text):
        closes = bool(tag[1] or tag[2])
        if not closes and not inside:
            kept.append(text[start : tag.start()])
            inside = True
        elif closes:
            if not inside:
                kept.clear()
            start, inside = tag.end(), False
    if inside:
        return ""
    kept.append(text[start:])
    return "".join(kept)[-MAX_CHARS:]
