"""What is right and what is wrong for each prompt: made from a frozen dataset's cases, read by the testbed.

`python -m srbench_testbed.answer_key --cases cases.jsonl --hidden STORE/hidden --out key.jsonl`
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import click
import orjson
from srbench_kit.blobs import BlobStore
from srbench_kit.documents import load_json
from srbench_kit.errors import EXIT_CODES, InvalidInput, NotFound, SrBenchError
from srbench_kit.values import Json

from srbench_testbed.fields import Fields
from srbench_testbed.hidden_answers import Answers, answers_of
from srbench_testbed.synthetic_programs import programs_in

_OPTION = re.compile(r"^([A-Z])\. ", re.MULTILINE)
_KINDS = ("choice", "grid", "text", "dialogue", "commands")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One prompt's answers: a letter, a list of grids, a text, a conversation's script, or the commands that do a task in a
    terminal; `wrong` has at least one."""

    prompt_sha256: str
    kind: str
    right: Json
    wrong: tuple[Json, ...]
    benchmark: str = ""
    stratum: str = ""
    case_id: str = ""

    def document(self) -> dict[str, Json]:
        """As a line of the key file."""
        return {
            "prompt_sha256": self.prompt_sha256,
            "kind": self.kind,
            "right": self.right,
            "wrong": list(self.wrong),
            "benchmark": self.benchmark,
            "stratum": self.stratum,
            "case_id": self.case_id,
        }


def prompt_text(messages: Json) -> str:
    """The text of the last user message; of the last message when there is none; empty when it has no text."""
    if not isinstance(messages, list):
        return ""
    chosen: Json = None
    for message in messages:
        if isinstance(message, dict) and (message.get("role") == "user" or chosen is None):
            chosen = message
    content = chosen.get("content") if isinstance(chosen, dict) else None
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def prompt_sha256(text: str) -> str:
    """The digest by which a prompt is looked up."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# Gives the hidden part of a case by its SHA-256.
Hidden: TypeAlias = Callable[[str], bytes]
# Gives the program that solves a step, by the step's number; None when it is not known.
Program: TypeAlias = Callable[[str], str | None]
# Gives the script that solves a terminal task, by the task's name; None when there is none.
Solution: TypeAlias = Callable[[str], str | None]


def entry_of_case(case: Mapping[str, Json], hidden: Hidden | None = None, solution: Solution | None = None) -> Entry | None:
    """The entry of one case of `cases.jsonl`; None for a case that no answer is known to.

    A conversation has no prompt of its own: it is named by the digest of its case's id.
    """
    text = prompt_text(case.get("messages"))
    answer = case.get("answer")
    metadata = case.get("metadata")
    facts = metadata if isinstance(metadata, dict) else {}
    stratum, part = facts.get("stratum"), facts.get("hidden_sha256")
    found: Answers | None = None
    if text and answer is not None:
        found = _answers(case, text, answer)
    elif text and solution is not None and (script := solution(str(facts.get("task")))) is not None:
        found = "commands", [script], (["true"],)
    elif hidden is not None and isinstance(part, str):
        found = answers_of(str(case.get("benchmark")), hidden(part))
    if found is None:
        return None
    kind, right, wrong = found
    return Entry(
        prompt_sha256=prompt_sha256(text or str(case.get("id"))),
        kind=kind,
        right=right,
        wrong=wrong,
        benchmark=str(case.get("benchmark") or ""),
        stratum=str(stratum or ""),
        case_id=str(case.get("id") or ""),
    )


def step_entries(case: Mapping[str, Json], program: Program) -> Iterator[Entry]:
    """An entry for each step of a problem in steps whose program is known: its prompt, and the program in a fence."""
    case_id = str(case.get("id") or "")
    asked = [
        message.get("content")
        for message in _list(case.get("messages"))
        if isinstance(message, dict) and message.get("role") == "user"
    ]
    for place, text in enumerate(asked, 1):
        code = program(f"{case_id.partition('/')[2]}.{place}")
        if code is not None and isinstance(text, str):
            wrong = f"```python\n{code.rpartition(chr(10))[0]}\n    return None\n```"
            yield Entry(
                prompt_sha256=prompt_sha256(text),
                kind="text",
                right=f"```python\n{code}\n```",
                wrong=(wrong,),
                benchmark=str(case.get("benchmark") or ""),
                case_id=case_id,
            )


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _answers(case: Mapping[str, Json], text: str, answer: Json) -> Answers:
    if isinstance(answer, str) and len(answer) == 1 and answer.isalpha():
        return "choice", answer, tuple(letter for letter in _letters(case, text) if letter != answer)
    if isinstance(answer, list) and answer and all(isinstance(item, list) for item in answer):
        return "grid", answer, tuple(_spoilt(answer))
    shown = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
    return "text", shown, ("I do not know.",)


def _letters(case: Mapping[str, Json], text: str) -> str:
    """The letters of a case's options: told by `choices`, else by the lines of its prompt, else A to D."""
    choices = case.get("choices")
    if isinstance(choices, list) and 2 <= len(choices) <= 26:
        return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(choices)]
    letters = "".join(dict.fromkeys(_OPTION.findall(text)))
    expected = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(letters)]
    return letters if len(letters) >= 2 and letters == expected else "ABCD"


def _spoilt(answer: Json) -> Iterator[Json]:
    """Copies of a grid, or list of grids, with one cell changed, or with a row too many."""
    yield _changed(answer, lambda row: [(row[0] + 1) % 10, *row[1:]], first=True)
    yield _changed(answer, lambda row: [*row[:-1], (row[-1] + 3) % 10], first=False)


def _changed(answer: Json, change: object, first: bool) -> Json:
    value = orjson.loads(orjson.dumps(answer))
    holder = value
    while isinstance(holder[0 if first else -1], list) and isinstance(holder[0 if first else -1][0], list):
        holder = holder[0 if first else -1]
    index = 0 if first else -1
    holder[index] = change(holder[index])  # type: ignore[operator]
    return value  # type: ignore[no-any-return]


def make_key(
    lines: Iterable[bytes],
    hidden: Hidden | None = None,
    solution: Solution | None = None,
    program: Program | None = None,
) -> dict[str, Entry]:
    """Entries by prompt digest; `hidden` gives the hidden parts that cases name, `solution` the scripts of terminal tasks,
    `program` the programs of steps.

    Raises: `InvalidInput` (`PROMPT_TWICE`) when one prompt has two right answers.
    """
    entries: dict[str, Entry] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        case = load_json(line, f"line {number} of the cases")
        if not isinstance(case, dict):
            raise InvalidInput("BAD_CASE", f"line {number} of the cases is no object", line=number)
        if program is not None and case.get("benchmark") == "scicode":
            entries |= {entry.prompt_sha256: entry for entry in step_entries(case, program)}
            continue
        entry = entry_of_case(case, hidden, solution)
        if entry is None:
            continue
        known = entries.get(entry.prompt_sha256)
        if known is not None and known.right != entry.right:
            raise InvalidInput("PROMPT_TWICE", f"{known.case_id} and {entry.case_id} ask the same and answer differently")
        entries[entry.prompt_sha256] = entry
    return entries


def read_key(path: Path) -> dict[str, Entry]:
    """The entries of a key file by prompt digest.

    Raises: `NotFound` (`NO_SUCH_FILE`), `InvalidInput` with the line at fault.
    """
    return {entry.prompt_sha256: entry for entry in map(_read_line, *_numbered(path))}


def _numbered(path: Path) -> tuple[list[int], list[bytes]]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise NotFound("NO_SUCH_FILE", f"{path} cannot be read: {error.strerror}") from error
    kept = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    return [number for number, _ in kept], [line for _, line in kept]


def _read_line(number: int, line: bytes) -> Entry:
    fields = Fields(load_json(line, f"line {number} of the answer key"), f"line {number} of the answer key")
    entry = Entry(
        prompt_sha256=fields.text("prompt_sha256"),
        kind=fields.text("kind", "choice", _KINDS),
        right=fields.any("right"),
        wrong=tuple(fields.items("wrong")),
        benchmark=fields.text("benchmark", ""),
        stratum=fields.text("stratum", ""),
        case_id=fields.text("case_id", ""),
    )
    fields.finish()
    if entry.right is None or not entry.wrong:
        raise InvalidInput("BAD_FIELD", f"line {number} of the answer key needs right and at least one wrong", line=number)
    return entry


def solutions_in(folder: Path) -> Solution:
    """The solutions of the tasks in `folder`, as Terminal-Bench lays them out."""

    def find(task: str) -> str | None:
        path = folder / task / "solution/solve.sh"
        return path.read_text() if task and path.is_file() else None

    return find


@click.command()
@click.option(
    "--cases", "cases", required=True, multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--hidden", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of hidden parts, STORE/hidden."
)
@click.option(
    "--tasks",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of terminal tasks with solutions.",
)
@click.option(
    "--programs", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="SciCode task file with its code."
)
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path))
def main(cases: tuple[Path, ...], hidden: Path | None, tasks: Path | None, programs: Path | None, out: Path) -> None:
    """Writes the answer key of frozen cases, one JSON line a prompt."""
    try:
        lines = (line for path in cases for line in path.read_bytes().splitlines())
        entries = make_key(
            lines,
            BlobStore(str(hidden)).get if hidden else None,
            solutions_in(tasks) if tasks else None,
            dict(programs_in(programs)).get if programs else None,
        )
    except SrBenchError as error:
        print(f"{error.reason}: {error.message}", file=sys.stderr)
        sys.exit(EXIT_CODES.get(error.kind, 1))
    out.write_bytes(b"".join(orjson.dumps(entry.document()) + b"\n" for entry in entries.values()))
    print(f"{len(entries)} prompts", file=sys.stderr)


if __name__ == "__main__":
    main()
