"""What is right and what is wrong for each prompt: made from a frozen dataset's cases, read by the testbed.

`python -m srbench_testbed.answer_key --cases cases.jsonl --out key.jsonl`
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import orjson
from srbench_kit.documents import load_json
from srbench_kit.errors import EXIT_CODES, InvalidInput, NotFound, SrBenchError
from srbench_kit.values import Json

from srbench_testbed.fields import Fields

_OPTION = re.compile(r"^([A-Z])\. ", re.MULTILINE)
_KINDS = ("choice", "grid", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One prompt's answers: a letter, a list of grids, or a text; `wrong` has at least one."""

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


def entry_of_case(case: Mapping[str, Json]) -> Entry | None:
    """The entry of one case of `cases.jsonl`; None for a case without messages or answer."""
    text = prompt_text(case.get("messages"))
    answer = case.get("answer")
    if not text or answer is None:
        return None
    metadata = case.get("metadata")
    stratum = metadata.get("stratum") if isinstance(metadata, dict) else None
    kind, right, wrong = _answers(case, text, answer)
    return Entry(
        prompt_sha256=prompt_sha256(text),
        kind=kind,
        right=right,
        wrong=wrong,
        benchmark=str(case.get("benchmark") or ""),
        stratum=str(stratum or ""),
        case_id=str(case.get("id") or ""),
    )


def _answers(case: Mapping[str, Json], text: str, answer: Json) -> tuple[str, Json, tuple[Json, ...]]:
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


def make_key(lines: Iterable[bytes]) -> dict[str, Entry]:
    """Entries by prompt digest.

    Raises: `InvalidInput` (`PROMPT_TWICE`) when one prompt has two right answers.
    """
    entries: dict[str, Entry] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        case = load_json(line, f"line {number} of the cases")
        if not isinstance(case, dict):
            raise InvalidInput("BAD_CASE", f"line {number} of the cases is no object", line=number)
        entry = entry_of_case(case)
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


@click.command()
@click.option(
    "--cases", "cases", required=True, multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path))
def main(cases: tuple[Path, ...], out: Path) -> None:
    """Writes the answer key of frozen cases, one JSON line a prompt."""
    try:
        entries = make_key(line for path in cases for line in path.read_bytes().splitlines())
    except SrBenchError as error:
        print(f"{error.reason}: {error.message}", file=sys.stderr)
        sys.exit(EXIT_CODES.get(error.kind, 1))
    out.write_bytes(b"".join(orjson.dumps(entry.document()) + b"\n" for entry in entries.values()))
    print(f"{len(entries)} prompts", file=sys.stderr)


if __name__ == "__main__":
    main()
