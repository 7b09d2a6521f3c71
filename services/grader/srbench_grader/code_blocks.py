"""Finds the program in an answer: the last fenced block that says it is Python, in all the ways models write fences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from srbench_grader.final_text import final_text

_FENCE = re.compile(r"(?P<indent>[ \t]*(?:>[ \t]?)?)(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*?)[ \t]*")
_PYTHON = re.compile(r"\{?\.?(?:python|py|pypy|ipython|cpython)(?:[ -]?[23](?:\.\d+)?)?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: what stands behind its opening fence, and its text."""

    info: str
    text: str

    @property
    def python(self) -> bool:
        """Whether the fence says Python."""
        return bool(_PYTHON.match(self.info))


def program_in(text: str) -> str | None:
    """The program of an answer; `None` when it holds none.

    The last block marked as Python that is not blank, else the last one without any mark. Blocks of other languages are
    none, and neither is text outside of blocks. A last fence that is never closed reaches to the end.
    """
    blocks = [block for block in blocks_of(final_text(text)) if block.text.strip()]
    for wanted in (lambda block: block.python, lambda block: not block.info):
        found = [block for block in blocks if wanted(block)]
        if found:
            return found[-1].text
    return None


def blocks_of(text: str) -> Iterator[Block]:
    """The fenced blocks of `text` in order. A fence with a language inside an open block opens a new one."""
    opened: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        fence = _FENCE.fullmatch(line)
        if opened is None:
            if fence:
                opened, lines = fence, []
        elif fence and _ends(opened, fence):
            yield _block(opened, lines)
            # ```python right inside an open block: the one before was never closed.
            opened, lines = (fence, []) if fence["info"] else (None, [])
        else:
            lines.append(line)
    if opened is not None:
        yield _block(opened, lines)


def _ends(opened: re.Match[str], fence: re.Match[str]) -> bool:
    same = fence["mark"][0] == opened["mark"][0] and len(fence["mark"]) >= len(opened["mark"])
    return same and (not fence["info"] or bool(_PYTHON.match(fence["info"])))


def _block(opened: re.Match[str], lines: list[str]) -> Block:
    """A block without the indentation (or quotation mark) that its fence had."""
    indent = opened["indent"]
    kept = [line[len(indent) :] if indent and line.startswith(indent) else line for line in lines]
    return Block(opened["info"], "\n".join(kept).rstrip("\n") + "\n")
