"""Finds the program in an answer: the last fenced block that says it is Python, in all the ways models write fences."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from srbench_grader.final_text import final_text

_FENCE = re.compile(r"(?P<indent>[ \t]*(?:>[ \t]?)?)(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*?)[ \t]*")
# A fence that says Python opens a block behind prose, a tag or the mark of a list, too.
_LATE = re.compile(r"[^`~]{1,400}?(?P<indent>)(?P<mark>`{3,}|~{3,})[ \t]?(?P<info>(?:python|py)3?)[ \t]*", re.IGNORECASE)
_WORD = re.compile(r"[+#.:-]*\w[\w+#.:-]*")
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


def program_in(text: str, function: str = "") -> str | None:
    """The program of an answer; `None` when it holds none.

    The last block marked as Python that holds code, else the last one without any mark; where a `function` is asked for,
    the last of them that defines it, so that an example of its use is passed over. Blocks of other languages are none, and
    neither is text outside of blocks. A last fence that is never closed reaches to the end.
    """
    blocks = [block for block in blocks_of(final_text(text)) if _says_something(block.text)]
    found = [block.text for block in blocks if block.python] or [block.text for block in blocks if not block.info]
    defines = re.compile(rf"\b(?:def\s+{re.escape(function)}\b|{re.escape(function)}\s*=(?!=))")
    chosen = [each for each in found if function and defines.search(each)] or found
    return chosen[-1] if chosen else None


def _says_something(code: str) -> bool:
    """Whether `code` is more than blanks and comments."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in code.split("\n"))


def blocks_of(text: str) -> Iterator[Block]:
    """The fenced blocks of `text` in order. A fence with a language inside an open block opens a new one."""
    opened: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        fence = _FENCE.fullmatch(line)
        if opened is None:
            opened, lines = fence or _LATE.fullmatch(line), []
        elif fence and _ends(opened, fence):
            yield _block(opened, lines)
            # ```python right inside an open block: the one before was never closed.
            opened, lines = (fence, []) if _PYTHON.match(fence["info"]) else (None, [])
        else:
            lines.append(line)
    if opened is not None:
        yield _block(opened, _without_closer(opened, lines))


def _ends(opened: re.Match[str], fence: re.Match[str]) -> bool:
    same = fence["mark"][0] == opened["mark"][0] and len(fence["mark"]) >= len(opened["mark"])
    # "```" and a word inside a block is text of the program; "``` This prints it." or "```</answer>" ends the block.
    return same and (not _WORD.fullmatch(fence["info"]) or bool(_PYTHON.match(fence["info"])))


def _without_closer(opened: re.Match[str], lines: list[str]) -> list[str]:
    """The lines of a block that no fence ends, without one that stands behind its last line of code."""
    place = next((place for place in reversed(range(len(lines))) if lines[place].strip()), -1)
    if place < 0 or not lines[place].rstrip().endswith(opened["mark"]):
        return lines
    return [*lines[:place], lines[place].rstrip().rstrip(opened["mark"][0])]


def _block(opened: re.Match[str], lines: list[str]) -> Block:
    """A block without the indentation (or quotation mark) that its fence had."""
    indent = opened["indent"]
    kept = [line[len(indent) :] if indent and line.startswith(indent) else line for line in lines]
    # What is indented as a whole is part of a list.
    return Block(opened["info"], textwrap.dedent("\n".join(kept)).rstrip("\n") + "\n")
