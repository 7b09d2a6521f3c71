"""Which part of an answer is the program."""

from __future__ import annotations

import time

import pytest
from srbench_grader.code_blocks import program_in

RIGHT = "print(int(input())**2)\n"

FOUND = {
    "plain": f"```python\n{RIGHT}```",
    "capital tag, CRLF": "```Python\r\nprint(int(input())**2)\r\n```\r\n",
    "py": f"Text.\n```py\n{RIGHT}```\nMore.",
    "python3": f"```python3\n{RIGHT}```",
    "Python 3": f"```Python 3\n{RIGHT}```",
    "pypy3": f"```pypy3\n{RIGHT}```",
    "with a title": f'```python title="a.py"\n{RIGHT}```',
    "braces": f"```{{.python}}\n{RIGHT}```",
    "bare": f"```\n{RIGHT}```",
    "tildes": f"~~~python\n{RIGHT}~~~",
    "four marks": f"````python\n{RIGHT}````",
    "unclosed": f"```python\n{RIGHT}",
    "indented": "1. So:\n   ```python\n   print(int(input())**2)\n   ```",
    "draft then final": f"First idea:\n```python\nprint(int(input())*3+1)\n```\nFinal:\n```python\n{RIGHT}```\n",
    "stray closer": f"```python\n{RIGHT}```\nThis squares the input.\n```\n",
    "stray closer, prose behind": f"```python\n{RIGHT}```\nThis squares.\n```\nand so on\n",
    "sample output behind": f"```python\n{RIGHT}```\nOutput:\n```\n9\n```",
    "another language behind": f"```python\n{RIGHT}```\n```cpp\nint main() {{}}\n```",
    "another language before": f"```cpp\nint main() {{}}\n```\n```python\n{RIGHT}```",
    "empty block behind": f"```python\n{RIGHT}```\n```python\n\n```",
    "opened twice": f"```python\nprint(\n```python\n{RIGHT}```",
    "after reasoning": f"<think>```python\nprint(0)\n```</think>\n```python\n{RIGHT}```",
}

NONE = [
    "Use n squared.",
    "",
    "```cpp\nint main() {}\n```",
    "```json\n{}\n```",
    "```python\n\n```",
    "<think>```python\nprint(1)\n```",
    "print(int(input())**2)",
]


@pytest.mark.parametrize("label", FOUND)
def test_the_last_python_block_is_the_program(label: str) -> None:
    assert program_in(FOUND[label]) == RIGHT


@pytest.mark.parametrize("text", NONE)
def test_an_answer_without_a_block_has_no_program(text: str) -> None:
    assert program_in(text) is None


def test_deeper_lines_keep_their_indentation() -> None:
    assert program_in("  ```python\n  def f():\n      return 1\n  ```") == "def f():\n    return 1\n"


def test_hostile_texts_take_no_time() -> None:
    began = time.monotonic()
    for text in ("```\n" * 100_000, "`" * 300_000, "```python\n" * 100_000, " " * 300_000 + "```"):
        program_in(text)
    assert time.monotonic() - began < 5
