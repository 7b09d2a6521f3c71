"""The words models read. A change here changes answers: raise the normalizer and the adapter versions with it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from srbench_kit.values import Json

LETTERS = "ABCDEFGHIJ"


def multiple_choice(question: str, options: Sequence[str]) -> str:
    """Question, lettered options, and the request for a letter alone. Outer blanks of each text are dropped."""
    lines = [f"{letter}. {option.strip()}" for letter, option in zip(LETTERS, options, strict=False)]
    last = LETTERS[len(options) - 1]
    ask = f"Which option is correct? Reply with one letter from A to {last} and nothing else."
    return "\n\n".join([question.strip(), "\n".join(lines), ask])


def program(problem: str, starter_code: str = "") -> str:
    """A programming problem and in which form its solution is wanted: a whole program, or the starter code filled in."""
    if starter_code.strip():
        ask = (
            "Solve the problem in Python by completing the code below. Keep the names and the parameters that it has, "
            "and do not read input or print anything."
        )
        end = "Reply with the completed code in one Python code block."
        return "\n\n".join([problem.strip(), ask, f"```python\n{starter_code.rstrip()}\n```", end])
    ask = (
        "Solve the problem with a Python program that reads from standard input and writes the answer to standard output, "
        "in exactly the format that the problem asks for. Reply with the whole program in one Python code block."
    )
    return f"{problem.strip()}\n\n{ask}"


def step_rules(dependencies: str) -> str:
    """The rules of a problem that is solved step by step: what each message brings, what is in place, what is wanted."""
    return (
        "You solve a scientific programming problem in steps. Each message brings one step: what its code is to do, the "
        "header that its function must have, and the line that the function ends with. The code of your earlier steps "
        "stays in place and may be called.\n\n"
        f"These imports are in place, too. Use no other package, and do not write imports yourself:\n"
        f"```python\n{dependencies.strip()}\n```\n\n"
        "Answer each step with one Python code block that holds the code of that step alone, under a comment with the "
        "scientific background it needs. Write no tests and no example of its use."
    )


def step(number: int, count: int, description: str, header: str, last_line: str) -> str:
    """One step of a problem: its description, the function's header, and the line that the function ends with."""
    parts = [f"Step {number} of {count}.", description.strip(), f"Function header:\n```python\n{header.rstrip()}\n```"]
    if last_line.strip():
        parts.append(f"Last line of the function:\n```python\n{last_line.rstrip()}\n```")
    return "\n\n".join(parts)


def grids(train: Json, test_inputs: list[Json]) -> str:
    """The task of a grid puzzle: what to do in a line or two, then the pairs and inputs as compact JSON on a last line."""
    count = len(test_inputs)
    outputs = "the one output grid" if count == 1 else f"the {count} output grids in the order of the inputs"
    task: dict[str, Json] = {"train": train, "test": test_inputs}
    return (
        "Each training pair below turns its input grid into its output grid by the same hidden rule. "
        "Find the rule and apply it to every test input.\n"
        f"Answer with a JSON array that holds {outputs}: "
        "a grid is an array of rows, a row an array of integers from 0 to 9. Write nothing else.\n\n"
        + json.dumps(task, separators=(",", ":"))
    )


def options_in(text: str) -> tuple[str, ...]:
    """The options a multiple-choice prompt shows, for cases that do not list them; empty when there are none."""
    start = text.rfind("\n\nA. ")
    if start < 0:
        return ()
    block = text[start + 2 :].rsplit("\n\n", 1)[0]
    parts = re.split(r"(?:^|\n)([A-J])\. ", "\n" + block)
    letters, texts = parts[1::2], parts[2::2]
    if "".join(letters) != LETTERS[: len(letters)] or len(letters) < 2:
        return ()
    return tuple(text.strip() for text in texts)


def grids_in(text: str) -> Json:
    """The `train` pairs and `test` inputs on the last line of a grid prompt; `None` when there are none."""
    line = text.rstrip().rpartition("\n")[2]
    if not line.startswith("{"):
        return None
    try:
        task = json.loads(line)
    except ValueError:
        return None
    if not isinstance(task, dict) or not isinstance(task.get("train"), list) or not isinstance(task.get("test"), list):
        return None
    return {"train": task["train"], "test": [_input_alone(item) for item in task["test"]]}


def _input_alone(item: Json) -> Json:
    """The grid of a test entry, whether it stands alone or under `input`."""
    return item.get("input") if isinstance(item, dict) else item
