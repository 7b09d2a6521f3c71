"""Which part of an answer is the program."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from srbench_grader.code_blocks import program_in

from tests.waiting import PATIENCE_S

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

FOUND |= {
    "a mark of the end behind the fence": f"```python\n{RIGHT}```<|im_end|>",
    "another mark": f"```python\n{RIGHT}```</s>",
    "words behind the fence": f"```python\n{RIGHT}``` This prints the square.",
    "a tag behind the fence": f"<answer>\n```python\n{RIGHT}```</answer>",
    "a full stop behind the fence": f"```python\n{RIGHT}```.",
    "closed on the last line of code": "```python\nprint(int(input())**2)```",
    "words before the fence": f"Here is the code: ```python\n{RIGHT}```",
    "a tag before the fence": f"<answer>```python\n{RIGHT}```</answer>",
    "an entry of a list": f"- ```python\n  {RIGHT}  ```",
    "a numbered entry": f"1. ```python\n   {RIGHT}   ```",
    "a block of comments behind": f"```python\n{RIGHT}```\nUsage:\n```python\n# input 3\n# output 9\n```",
    "a byte order mark": f"\ufeff```python\n{RIGHT}```",
    "a tag that is spoken of": f"I need no `<think>` for this.\n```python\n{RIGHT}```",
    "the final channel": f"<|channel|>analysis<|message|>hm<|end|><|channel|>final<|message|>```python\n{RIGHT}```",
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


def test_of_a_function_the_block_that_defines_it_is_the_program() -> None:
    solution, use = "class Solution:\n    def area(self, r):\n        return r * r\n", "s = Solution()\nprint(s.area(2))\n"
    text = f"```python\n{solution}```\nUse it so:\n```python\n{use}```"
    assert program_in(text, "area") == solution
    assert program_in(text) == use
    assert program_in(text, "perimeter") == use


SCRAPS = ["```python\n", "```\n", "```", "x = 1\n", "    y\n", "# c\n", "\n", "- ", "~~~", "words "]


@given(st.lists(st.sampled_from(SCRAPS)))
@settings(max_examples=120, deadline=None)
def test_scraps_of_blocks_never_break_the_reader_and_no_fence_is_part_of_a_program(scraps: list[str]) -> None:
    program = program_in("".join(scraps))
    if program is not None and "```" not in program and "~~~" not in program:
        assert program_in(f"```python\n{program}```") == program


def test_deeper_lines_keep_their_indentation() -> None:
    assert program_in("  ```python\n  def f():\n      return 1\n  ```") == "def f():\n    return 1\n"


def test_hostile_texts_are_read_to_their_end() -> None:
    began = time.process_time()
    for text in ("```\n" * 100_000, "`" * 300_000, "```python\n" * 100_000, " " * 300_000 + "```"):
        program_in(text)
    assert time.process_time() - began < PATIENCE_S
