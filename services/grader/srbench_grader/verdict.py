"""Reads a judge's verdict from what it wrote. Strict: whatever is not clearly one verdict is none."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from srbench_grader.final_text import final_text

CORRECT, INCORRECT, NOT_ATTEMPTED = "correct", "incorrect", "not_attempted"
VERDICTS = (CORRECT, INCORRECT, NOT_ATTEMPTED)
MAX_EXPLANATION = 2000

# Where an object of ours could begin. Braces of formulas are followed by something else.
_OBJECT = re.compile(r'\{\s*"')
# A backslash that begins no escape of JSON that prose needs: formulas that a judge wrote as they are, `\(x\)` or `\frac`.
_ESCAPE = re.compile(r"""\\(?:["\\/nrt]|u[0-9a-fA-F]{4})|\\""")
_LOOSE_COMMA = re.compile(r",(\s*\})")
_FENCE = re.compile(r"`{3,}[ \t]*\w*|~{3,}[ \t]*\w*")
_WORD = r"(?P<verdict>not[ _-]?attempted|incorrect|correct)"
# A text, or its last line, that is nothing but the verdict, perhaps with a label: "INCORRECT", "**Grade:** CORRECT."
_ALONE = re.compile(rf"[\s\W_]*{_WORD}[\s\W_]*", re.IGNORECASE)
_LABELLED = re.compile(
    rf"[\s\W_]*(?:(?:my|the|final|overall)\s+){{0,2}}(?:verdict|grade|judge?ment)[\W_]{{0,4}}[:=][\s\W_]*{_WORD}[\s\W_]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One of `VERDICTS`, and why, in the judge's words."""

    verdict: str
    explanation: str = ""


def read_verdict(text: str) -> Verdict | None:
    """The verdict in `text`; `None` when it states none, several that differ, or one in a broken or doubled form.

    Formulas in an explanation may hold backslashes that JSON would have doubled, and a comma may stand before a brace.

    A JSON object may stand alone or in a fence; in prose only with its explanation, for prose may quote what the candidate
    wrote. Objects that do not decode are no prose: half a reply could hold such a quotation, too. Without any object a lone
    word counts, or a labelled last line.
    """
    final = final_text(text).strip()
    if _OBJECT.search(final):
        return _from_objects(final)
    return _from_words(final)


def _from_objects(text: str) -> Verdict | None:
    found: list[Verdict] = []
    around: list[str] = []
    decoder = json.JSONDecoder(object_pairs_hook=_unique, strict=False)
    text = _ESCAPE.sub(lambda match: match[0] if len(match[0]) > 1 else "\\\\", text)
    text = _LOOSE_COMMA.sub(r"\1", text)
    place = 0
    while match := _OBJECT.search(text, place):
        around.append(text[place : match.start()])
        try:
            value, place = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict) or "verdict" not in value:
            continue
        verdict = _verdict(value)
        if verdict is None:
            return None
        found.append(verdict)
    around.append(text[place:])
    prose = _FENCE.sub("", "\n".join(around)).strip()
    if len({each.verdict for each in found}) != 1 or (prose and not found[-1].explanation):
        return None
    return found[-1]


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _verdict(value: dict[str, object]) -> Verdict | None:
    said = value["verdict"]
    word = _normal(said.rstrip(" .!")) if isinstance(said, str) else ""
    if word not in VERDICTS:
        return None
    explanation = value.get("explanation")
    return Verdict(word, explanation[:MAX_EXPLANATION] if isinstance(explanation, str) else "")


def _from_words(text: str) -> Verdict | None:
    alone = _ALONE.fullmatch(text) if len(text) <= 100 else None
    if alone:
        return Verdict(_normal(alone["verdict"]))
    lines = [line for line in text.splitlines() if line.strip()]
    labelled = [match for line in lines if len(line) <= 200 and (match := _LABELLED.fullmatch(line))]
    if not labelled or len({_normal(match["verdict"]) for match in labelled}) != 1:
        return None
    if not _LABELLED.fullmatch(lines[-1]):
        return None
    return Verdict(_normal(labelled[-1]["verdict"]), "\n".join(lines[:-1])[:MAX_EXPLANATION])


def _normal(word: str) -> str:
    plain = re.sub(r"[ _-]+", "_", word.strip().lower())
    return NOT_ATTEMPTED if plain == "notattempted" else plain
