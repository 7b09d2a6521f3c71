"""Reading a letter, or several, at a given place of a text, and telling it from prose."""
# ruff: noqa: RUF001  (the characters that models write)

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from srbench_grader.final_text import MAX_CHARS

_WRAPPED = re.compile(r"(\*\*|__|\*|`|\$)[ \t]{0,3}[(\[]?([A-Za-z])[)\]]?[.):]?[ \t]{0,3}\1")
_LATEX = re.compile(
    r"\\(?:[()\[\],;:! ]|(?:text|math)(?:bf|rm|it|sf|tt|normal|bb|cal|up)?(?![a-zA-Z])"
    r"|(?:left|right|Large|large|huge|bf|rm|displaystyle|quad|boldsymbol|operatorname|mbox)(?![a-zA-Z]))"
)
_TAGS = re.compile(r"</?(?:b|strong|i|em|u|p|br|span|code|mark|h[1-6]|div|final)\s{0,2}/?>", re.IGNORECASE)
_ANSWER_TAG = re.compile(r"<(/?)(?:final[_-]?)?(?:answer|choice)>", re.IGNORECASE)
_TRANSLATION = str.maketrans(
    {
        "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "【": "[", "】": "]", "「": "[", "」": "]",
        "『": "[", "』": "]", "〔": "[", "〕": "]", "《": "[", "》": "]", "İ": "I", "\u200b": "", "\u200c": "",
        "\u200d": "", "\u2060": "", "\ufeff": "", "\u00a0": " ", "⇒": "→", "⟹": "→", "⟶": "→", "➜": "→", "➔": "→", "➡": "→",
    }
)  # fmt: skip

_STRUCK_OUT = re.compile(r"~~[^~\n]{1,200}~~")
_PICTURES = re.compile("[\u2600-\u27bf\u2b00-\u2bff\ufe0f\u20e3\U0001f300-\U0001faff]")

_OPEN = re.compile(
    r"""["'\s_|({\[<>]{0,16}
    (?:(?:(?:the|la|le|el|il|die|der)\s+)?
       (?:option|choice|letter|alternative|answer|letra|lettre|lettera|opción|opcion|opção|opzione|buchstabe|alternativa)
       ["']?[\s:#]{1,4}["'\s({\[]{0,6})?""",
    re.IGNORECASE | re.VERBOSE,
)
_LETTER = re.compile(r"[A-Za-z](?![A-Za-z0-9_])")
_RUN = re.compile(r"[A-Z]{2,26}(?![A-Za-z0-9_])")
_CLOSE = re.compile(r"[\"'_|)}\]>]{0,8}")
_ALTERNATIVE = re.compile(
    r"""(?P<gap>["'\s_|)}\]>({]{0,10})
    (?P<separator>[.;,]\s*(?:or|alternatively|possibly|maybe|perhaps)\b,?|(?:,\s*)?(?:and\s*/\s*or|and|or|und|oder|ou|et|o|y|e|of|eller|и|или|nor|vs\.?|versus)\b|[,;/&|、–—]|或者?|和|또는|)
    [\s{}]{0,6}(?:(?:maybe|possibly|perhaps|probably|potentially|also|even|else|either|could|might|may|is|be|it|the|option|choice
    |answer|letter)\b\s{0,4}){0,5}
    ["'\s_({\[]{0,6}""",
    re.IGNORECASE | re.VERBOSE,
)
_VERB = re.compile(
    r"(?:is|was|are|were|seems?|looks?|appears?|might|may|could|would|can|cannot|can't|isn't|has|have|had|does|doesn't|did"
    r"|will|won't|should|must|think|thought|believe|am|do|don't|guess|know)\b",
    re.IGNORECASE,
)
_AFFIRMED = re.compile(
    r"is\s+(?:also\s+|clearly\s+|indeed\s+|definitely\s+)?(?:the\s+)?(?:correct|right|best|answer|most)\b", re.IGNORECASE
)
_WIDE_DENIAL = re.compile(r"(?:项|項|选项|選項)?(?:是|並|并|では|じゃ|가|이)?\s?(?:不|错|錯|誤|误|ない|ありません|아니)")
_WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")
# Words that may follow a bare letter that is an answer.
_CONTINUATIONS = frozenset(
    re.findall(
        r"\w+",
        """because since as which due for given based according from by that this it so with and or but after
        when if in on at per thanks i we not rather instead where therefore thus hence here then while
        although though weil denn da porque pues car parce puisque omdat perché poiché""",
    )
)


@dataclass(frozen=True, slots=True)
class Letters:
    """Letters that were stated together, in capitals, without repeats, and where the statement ends."""

    letters: tuple[str, ...]
    end: int


def plain(text: str) -> str:
    """`text` with marks of emphasis, LaTeX, HTML and width taken off, so that one set of rules reads them all."""
    if not text.isascii():
        text = _PICTURES.sub(" ", unicodedata.normalize("NFKC", text.translate(_TRANSLATION))[-MAX_CHARS:])
    if "<" in text:
        text = _TAGS.sub("", text)
        text = _ANSWER_TAG.sub(lambda tag: "\n" if tag[1] else "\nanswer: ", text)
    if "\\" in text:
        text = _LATEX.sub("", text)
    if "~~" in text:
        text = _STRUCK_OUT.sub("", text)
    if any(mark in text for mark in "*`$_"):
        text = _WRAPPED.sub(r"(\2)", text)
        text = text.replace("*", "").replace("`", "").replace("$", "")
    return text


def read_letters(text: str, position: int, after_colon: bool = False) -> Letters | None:
    """The letters stated at `position`; None when what stands there is prose, mathematics or a question."""
    opening = _OPEN.match(text, position)
    assert opening is not None  # every part of it is optional
    run = _RUN.match(text, opening.end())
    if run:
        together = dict.fromkeys(run[0])
        ends = len(together) > 1 and _ends(text, run.end(), "Z", False, False)
        return Letters(tuple(together), run.end()) if ends else None
    if not _LETTER.match(text, opening.end()):
        return None
    bracketed = any(mark in opening[0][-3:] for mark in "([\"'")
    first = text[opening.end()]
    found, end = [first], opening.end() + 1
    while len(found) < 27:
        further = _further(text, end)
        if further is None:
            break
        found.append(text[further])
        end = further + 1
    if len(found) == 1 and not _ends(text, end, first, bracketed, after_colon):
        return None
    return Letters(tuple(dict.fromkeys(letter.upper() for letter in found)), end)


def _further(text: str, end: int) -> int | None:
    """Where one more letter stands that is offered beside the one that ends at `end`."""
    match = _ALTERNATIVE.match(text, end)
    if match is None or not _LETTER.match(text, match.end()):
        return None
    letter = text[match.end()]
    if not match["separator"]:
        # "A B", "(A)(B)", "A|B": only capitals side by side on one line.
        if letter.islower() or not match["gap"] or "\n" in match[0]:
            return None
        if not text[end - 1].isupper():
            return None
        # "D) A and B only": the text of an option that speaks of others.
        if ")" in match["gap"] and match["gap"][-1:].isspace() and text[match.end() + 1 : match.end() + 2] != ")":
            return None
    if letter.islower() and text[end - 1].isupper():
        return None
    bracketed = any(mark in match[0][-2:] for mark in "([\"'")
    # "B or C?" offers both.
    asked = match["separator"] and letter.isupper() and text[match.end() + 1 : match.end() + 2] == "?"
    return match.end() if asked or _ends(text, match.end() + 1, letter, bracketed, False) else None


def _ends(text: str, end: int, letter: str, bracketed: bool, after_colon: bool) -> bool:
    """Whether a letter that ends at `end` stands for itself and is not the beginning of prose or a formula."""
    closing = _CLOSE.match(text, end)
    assert closing is not None
    if closing[0].startswith("'") and text[closing.end() : closing.end() + 1].isalpha():
        return False
    bracketed = bracketed or closing[0] not in ("", "_")
    position = closing.end()
    following = text[position : position + 1]
    article = letter in "ai" and not bracketed
    if following in ("", "\n", "\r"):
        return not article or not text[position : position + 400].strip()
    if following in " \t":
        return _ends_before(text[position : position + 64].lstrip(" \t"), letter, bracketed, after_colon)
    after = text[position + 1 : position + 2]
    if following == ".":
        return (bracketed or not (after.isalpha() and after.isascii())) and not (article and after.strip() != "")
    if following == "!" and after == "?":
        return False
    if following in ",;:!。、…":
        return not article and not (letter == "I" and following == "," and not bracketed)
    if following == "-":
        return bracketed or not after.strip()
    if following in "–—<\\":
        return not article
    if ord(following) >= 0x2E80:
        return letter.isupper() and not _WIDE_DENIAL.match(text, position)
    return bracketed and following not in "?=+/^"


def _ends_before(rest: str, letter: str, bracketed: bool, after_colon: bool) -> bool:
    """`_ends` for a letter that is followed by a space and `rest`."""
    article = letter in "ai" and not bracketed
    first = rest[:1]
    if first in ("", "\n", "\r"):
        return not article
    if _VERB.match(rest):
        return bool(_AFFIRMED.match(rest)) and not article
    if rest.startswith("->"):
        return False
    if first in "?=+^*/<>≈%&~\\→":
        return bracketed and first in "<>"
    if bracketed:
        return True
    if article:
        return False
    if first.isdigit() or not (first.isalpha() or first == "_"):
        return True
    if ord(first) >= 0x2E80:
        return letter.isupper() and not _WIDE_DENIAL.match(rest)
    word = _WORD.match(rest)
    if word and word[0].lower() in _CONTINUATIONS:
        return not (letter == "A" and word[0].lower() == "not")
    # "Answer: B Photosynthesis": the option's text follows its letter. "A Tale of Two Cities" is prose.
    return after_colon and letter.isupper() and letter not in "AI" and first.isupper()
