"""Judges answers to choice questions: the last explicit final statement counts; prose letters never do."""
# ruff: noqa: RUF001  (the characters that models write)

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from srbench_kit import reference_answers
from srbench_kit.errors import InvalidInput
from srbench_kit.reference_answers import DEFAULT_OPTIONS

from srbench_grader import phrases
from srbench_grader.final_text import final_text
from srbench_grader.grading import AMBIGUOUS, PARSED, UNPARSED, Case, Grader, Grading, JudgeReply
from srbench_grader.letters import Letters, plain, read_letters

VERSION = "sr-bench-choice-v2"
# Places looked at, from the end; a text with more of them is hostile.
_MAX_HITS = 4000
_MAX_LINES = 20_000

_STRICT = re.compile(r"(?:answer:\s*)?(?:\(([A-Za-z])\)|([A-Za-z]))\.?", re.IGNORECASE)
_ALONE = re.compile(
    r"[\s>#*\-•+|\"'_(\[{]{0,12}(?:(?:=>|→|∴)\s?)?(?:\d{1,3}[.)]\s{1,3})?"
    r"(?P<word>(?:(?:the|final|correct|my)\s+){0,3}(?:answer|option|choice|letter|(?:final|correct|selected)(?=:))\s{0,3}[:=\-|]{0,2}\s{0,3})?"
    r"[\s(\[{\"'<]{0,8}(?P<letter>[A-Za-z])[\s)\]}\"'>_|]{0,8}[.,!:;。]?[\s)\]}\"'|]{0,8}",
    re.IGNORECASE,
)
_LED = re.compile(
    r"[ \t>\-•]{0,6}(?:(?P<word>option|choice|alternative)\s+)?[(\[]?(?P<letter>[A-Za-z])"
    r"(?P<mark>,? (?:because|since)| it is|\)|\]|\.|:|,| -| –| —)\s*\S",
    re.IGNORECASE,
)
_OPTION = re.compile(r"\b([A-Z])\)")
_INITIALS = re.compile(r"[A-Z]\.\s*[A-Z]\.\s*[A-Z][a-z]|[A-Z]\.[A-Za-z]")
# Latin names of species are written with a capital and a full stop, too.
_SPECIES = re.compile(
    r"[A-J]\.\s(?:coli|elegans|difficile|botulinum|albicans|diphtheriae|burnetii|thaliana|melanogaster|subtilis|anthracis|cereus"
    r"|pertussis|fragilis|jejuni|perfringens|tetani|neoformans|rerio|gallopavo|faecalis|histolytica|baumannii|fumigatus|"
    r"trachomatis|dubliniensis|duodenalis|lamblia|influenzae|pylori|discoideum|bassiana|carolinensis)\b"
)
_OR = re.compile(r"\W{0,8}(?:or|and|oder|ou|或|和)\W{0,8}", re.IGNORECASE)
_BLANK = re.compile(r"[\W_]*")
_SAME_STATEMENT = re.compile(
    r"[\W_]{0,8}(?:or|and|/)[\W_]{0,4}(?:(?:maybe|possibly|perhaps|the|final|my)\s+){0,3}\\?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a text says.

    Attributes:
        letter: the chosen option in capitals; None when the text chooses none or several.
        status: `parsed`, `unparsed` or `ambiguous`.
        strict: whether the text is nothing but the letter.
    """

    letter: str | None
    status: str
    strict: bool = False


_NOTHING = Choice(letter=None, status=UNPARSED)
_SEVERAL = Choice(letter=None, status=AMBIGUOUS)


def judge(text: str, case: Case, _replies: tuple[JudgeReply, ...] = ()) -> Grading:
    """Judges `text` against the case's letter.

    Raises: `InvalidInput` (`BAD_REFERENCE`) when the reference is no letter of the case's options.
    """
    options = case.choice_count or DEFAULT_OPTIONS
    reference = reference_answers.letter(case.answer, options)
    if reference is None:
        raise InvalidInput(
            "BAD_REFERENCE",
            f"the reference of {case.case_id or 'the case'} is not one of the letters of its {options} options",
            options=options,
        )
    choice = read_choice(text, options)
    return Grading(
        correct=choice.letter == reference,
        status=choice.status,
        extracted=choice.letter,
        strict_format=choice.strict,
    )


def read_choice(text: str, options: int = DEFAULT_OPTIONS) -> Choice:
    """What `text` chooses among `options` letters from A on.

    Order of trust: a last line that is only a letter; the last statement that names the answer ("Answer: B", a box, "B is
    the correct answer"); a first line that is only a letter; then weaker forms, if they agree ("B) text", "B is correct").
    """
    final = final_text(text).strip()
    strict = _STRICT.fullmatch(final)
    if strict:
        choice = _choice(((strict[1] or strict[2]).upper(),), options)
        return Choice(letter=choice.letter, status=choice.status, strict=choice.letter is not None)
    shown = plain(final)
    lines = _outer_lines(shown)
    if not lines:
        return _NOTHING
    last = _ALONE.fullmatch(lines[-1])
    if last and not last["word"]:
        return _bare(lines, last["letter"].upper(), options)
    stated = _last_statement(shown, options)
    if stated is not None:
        return _choice(stated, options)
    if last:
        return _choice((last["letter"].upper(),), options)
    first = _ALONE.fullmatch(lines[0])
    if first:
        return _choice((first["letter"].upper(),), options)
    return _weak(shown, lines, options)


def _bare(lines: list[str], letter: str, options: int) -> Choice:
    """A last line that is only a letter. Bare letters one below the other are a list, not a choice."""
    if len(lines) < 2:
        return _choice((letter,), options)
    if _OR.fullmatch(lines[-2]):
        return _SEVERAL
    before = _ALONE.fullmatch(lines[-2])
    return _choice(tuple(dict.fromkeys((before["letter"].upper(), letter))) if before else (letter,), options)


def _choice(letters: tuple[str, ...], options: int) -> Choice:
    if len(letters) > 1:
        return _SEVERAL
    if not letters or ord(letters[0]) - ord("A") >= options:
        return _NOTHING
    return Choice(letter=letters[0], status=PARSED)


def _outer_lines(text: str) -> list[str]:
    """The first and the last two lines that say something, in order, each of bounded length."""
    head = next((line for line in _lines(text) if not _BLANK.fullmatch(line)), None)
    if head is None:
        return []
    tail: list[str] = []
    for line in _lines_backwards(text):
        if not _BLANK.fullmatch(line):
            tail.append(line)
            if len(tail) == 2:
                break
    return [head, *tail[::-1]] if len(tail) == 2 else tail


def _lines(text: str) -> Iterator[str]:
    start = 0
    for _ in range(_MAX_LINES):
        end = text.find("\n", start)
        yield text[start : start + 4000] if end < 0 else text[start : min(end, start + 4000)]
        if end < 0:
            return
        start = end + 1


def _lines_backwards(text: str) -> Iterator[str]:
    end = len(text)
    for _ in range(_MAX_LINES):
        start = text.rfind("\n", 0, end)
        yield text[max(start + 1, end - 4000) : end]
        if start < 0:
            return
        end = start


def _last_statement(text: str, options: int) -> tuple[str, ...] | None:
    """The letters of the last statement that names the answer; an empty tuple when it names none; None without one."""
    denied: set[str] = set()
    for position, length, link, kind in _hits(text):
        found = _statement(text, position, length, link, kind, options, denied)
        if found is None:
            continue
        later = _conclusion(text, found.end, options)
        letters = later or _joined(text, position, found.letters, options)
        return () if len(letters) == 1 and letters[0] in denied else letters
    return _conclusion(text, 0, options)


def _hits(text: str) -> Iterator[tuple[int, int, re.Pattern[str], str]]:
    """The places of all keywords, last first."""
    lower = text.lower()
    keywords = phrases.KEYWORDS if text.isascii() else phrases.KEYWORDS + phrases.WIDE_KEYWORDS
    places = {index: lower.rfind(word) for index, (word, _, _) in enumerate(keywords) if word in lower}
    for _ in range(_MAX_HITS):
        if not places:
            return
        index = max(places, key=lambda each: places[each])
        word, link, kind = keywords[index]
        place = places[index]
        yield place, len(word), link, kind
        before = lower.rfind(word, 0, place)
        if before < 0:
            del places[index]
        else:
            places[index] = before


def _statement(
    text: str, position: int, length: int, link: re.Pattern[str], kind: str, options: int, denied: set[str]
) -> Letters | None:
    """What the keyword at `position` states. Letters that it denies are added to `denied`."""
    ahead = text[position + length : position + length + 240]
    before = text[max(0, position - 80) : position]
    if kind == "boxed":
        return _moved(read_letters(ahead, 0), position + length) if before.endswith("\\") else None
    if before[-1:].isalpha() and kind != "chinese pick" and ord(before[-1]) < 0x2E80 and not _capital(text, position):
        return None
    clause = phrases.CLAUSE_BREAK.split(before)[-1]
    if phrases.DENIED.search(clause):
        return None
    if kind == "pick":
        return _picked(ahead, before, position + length, link)
    # "Options:" and "Choices:" stand above a list of them.
    match = None if kind == "option" and ahead[:1] in "sS" else link.match(ahead)
    colon = match is not None and ":" in (match["link"] or "")
    if match and _decisive(kind, clause, before, colon):
        start = match.end()
        if kind == "answer" and phrases.NO_LETTER.match(ahead, start):
            return Letters((), position + length + start)
        instead = phrases.NOT_BUT.match(ahead, start)
        start = instead.end() if instead else start
        hedge = phrases.HEDGE.match(ahead, start)
        found = read_letters(ahead, hedge.end() if hedge else start, colon)
        if found and hedge:  # "either B ..." chooses nothing, however it goes on
            return Letters((*found.letters, "?"), position + length + found.end)
        if found and _names(found, ahead, options):
            return _moved(found, position + length)
    negated = phrases.NEGATED_LETTER.match(ahead) if kind in ("answer", "option") else None
    if negated:
        denied.add(negated[1].upper())
    return _beside(ahead, before, position, length, kind)


def _capital(text: str, position: int) -> bool:
    """Whether a word in the middle of another begins at `position`: `finalAnswer`."""
    return text[position].isupper() and text[position - 1].islower()


def _names(found: Letters, ahead: str, options: int) -> bool:
    """Whether a single lower-case letter beyond the options is taken for a variable, not for an answer."""
    return len(found.letters) > 1 or ord(found.letters[0]) - 65 < options or ahead[found.end - 1].isupper()


def _moved(found: Letters | None, by: int) -> Letters | None:
    return found and Letters(found.letters, found.end + by)


def _decisive(kind: str, clause: str, before: str, colon: bool) -> bool:
    if kind == "answer" or kind == "chinese pick":
        return True
    line_start = not before.strip(" \t\"'_#>(-{,").rpartition("\n")[2]
    return bool(phrases.DECISIVE.search(clause)) or (colon and line_start)


def _picked(ahead: str, before: str, offset: int, link: re.Pattern[str]) -> Letters | None:
    """What "I choose" and its like state."""
    line = phrases.CLAUSE_BREAK.split(before)[-1].lstrip()
    match = link.match(ahead)
    if match is None or not phrases.FIRST_PERSON.search(line):
        return None
    return _moved(read_letters(ahead, match.end()), offset)


def _beside(ahead: str, before: str, position: int, length: int, kind: str) -> Letters | None:
    """A letter right before a keyword ("B is the correct answer") or in brackets right after it ("Final answer (B)")."""
    if kind not in ("answer", "option"):
        return None
    match = phrases.LETTER_BEFORE.search(before[-72:])
    if match:
        letters = ("?", match["letter"]) if match["more"] else (match["letter"],)
        return Letters(letters, position + length)
    line_start = not before.rpartition("\n")[2].strip(" \t\"'_#>-")
    if kind == "answer" and re.match(r"\s{0,2}[(\[]", ahead) and (line_start or phrases.DECISIVE.search(before)):
        return _moved(read_letters(ahead, 0), position + length)
    return None


def _joined(text: str, position: int, letters: tuple[str, ...], options: int) -> tuple[str, ...]:
    """`letters`, with those of a statement that only "or" parts from them: "Answer: B or answer: C" chooses nothing."""
    head = text[max(0, position - 160) : position]
    for place, length, link, kind in _hits(head):
        found = _statement(head, place, length, link, kind, options, set())
        if found is not None:
            hedged = _SAME_STATEMENT.fullmatch(head[found.end :])
            return tuple(dict.fromkeys((*found.letters, *letters))) if hedged else letters
    return letters


def _conclusion(text: str, start: int, options: int) -> tuple[str, ...] | None:
    """The letter of a closing "Therefore, B." or "Actually, C." behind `start`, among the last 400 characters."""
    start = max(start, len(text) - 400)
    if len(text) - start < 4:
        return None
    found = None
    for match in phrases.CONCLUSION.finditer(text, start):
        if match[1].isupper() and ord(match[1]) - 65 < options:
            found = match[1]
    return (found,) if found else None


def _weak(text: str, lines: list[str], options: int) -> Choice:
    """Forms that count only when nothing better is said and they name one letter."""
    forms = phrases.ASSERTED if text.isascii() else (*phrases.ASSERTED, phrases.WIDE_IS_CORRECT)
    asserted = dict.fromkeys(match[1] for form in forms for match in islice(form.finditer(text), 200) if _meant(match))
    if asserted:
        return _choice(tuple(asserted), options)
    together = read_letters(lines[-1], 0)
    if together and len(together.letters) > 1:
        return _SEVERAL
    led = {_led_letter(lines[0]), _led_letter(lines[-1])} - {None}
    if len(led) != 1:
        return _NOTHING
    everywhere = {_led_letter(line) for line in _lines(text)} - {None}
    letter = led.pop()
    return _choice((letter,), options) if letter and everywhere == {letter} else _NOTHING


def _meant(match: re.Match[str]) -> bool:
    """Whether what is asserted is neither denied nor supposed in the clause before it."""
    before = match.string[max(0, match.start(1) - 80) : match.start(1)]
    return not phrases.DENIED.search(phrases.CLAUSE_BREAK.split(before)[-1])


def _led_letter(line: str) -> str | None:
    """The letter that leads a line such as "B) text" or "Option B: text"."""
    match = _LED.match(line)
    if match is None or len(set(_OPTION.findall(line[:400]))) > 2:
        # "(A) wrong (B) right (C) wrong" goes through the options.
        return None
    letter, mark = match["letter"], match["mark"]
    if not match["word"]:
        lone = line.lstrip(" \t>-•")
        prose = (
            mark in (",", " it is")
            or (mark in (".", ":", " -") and letter.upper() in ("I",))
            or (mark == ":" and letter == "A")
        )
        if prose or (letter.islower() and mark != ")") or _INITIALS.match(lone) or _SPECIES.match(lone):
            return None
    return letter.upper()


GRADER = Grader(name="choice", version=VERSION, judge=judge)
