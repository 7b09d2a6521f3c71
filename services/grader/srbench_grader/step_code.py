"""Finds the code of one step in an answer: the block that defines what the step asks for, in all spellings of fences."""

from __future__ import annotations

import ast
import re

from srbench_grader.code_blocks import blocks_of
from srbench_grader.final_text import final_text

_NAME = re.compile(r"^\s*(?:async\s+def|def|class)\s+(\w+)", re.MULTILINE)


def step_code(text: str, header: str) -> str:
    """The code in `text` for the step with the function `header`; empty when it holds none.

    Of the blocks marked as Python (else those without a mark) the last one that defines the function, so that a corrected
    version wins over a draft, and an example of its use is passed over. All of them together where that defines more:
    helpers in blocks of their own. Text without a fence counts when it is itself Python that defines the function.
    """
    final = final_text(text)
    blocks = [block for block in blocks_of(final) if block.text.strip()]
    texts = [block.text for block in blocks if block.python] or [block.text for block in blocks if not block.info]
    name = _NAME.search(header)
    wanted = name[1] if name else ""
    if not texts:
        return final.strip() if wanted in _defined(final) else ""
    chosen = next((each for each in reversed(texts) if wanted in _defined(each)), texts[-1])
    together = "\n".join(texts)
    return together if _defined(together) > _defined(chosen) else chosen


def _defined(code: str) -> frozenset[str]:
    """What `code` defines at its top; nothing when it is no Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))
