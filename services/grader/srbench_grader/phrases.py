"""The words that announce an answer to a choice question, in the languages that models answer in."""
# ruff: noqa: RUF001  (the characters that models write)

from __future__ import annotations

import re

# Each regular expression is matched at one place, is bounded, and cannot backtrack beyond its bounds.
_FLAGS = re.IGNORECASE | re.VERBOSE

_ADVERB = r"""
    (?:(?:therefore|thus|hence|then|so|clearly|definitely|certainly|indeed|simply|just|actually|obviously|probably|likely|
      most\ likely|maybe|perhaps|possibly|still|now|surely|presumably|given\ by|as\ follows)\b[\s,:]*){0,3}"""

# From the end of "answer" to where the letter is expected.
ENGLISH_LINK = re.compile(
    r"""s?
    (?:[\s_]+(?:letter|choice|option|key))?
    (?:\s*\([^()\n]{0,40}\))?
    (?:\s+(?:to|for|of|in|here|that|i|we)\b[^.:;,\n?!]{0,80}?)?
    ["'_)\]|]{0,4}\s{0,4}
    (?P<link>:+|=>?(?!=)|-+>|→|-(?=\s)|–|—|'s\b|\b(?:is|was|would\s(?:then\s)?be|should\sbe|must\sbe|will\sbe|has\sto\sbe|remains
      |(?:seems|appears|proves|turns\sout|comes\sout)\sto\sbe|can\sonly\sbe|ends\sup\sbeing)\b\s?:?)
    \s{0,8}"""
    + _ADVERB,
    _FLAGS,
)
FOREIGN_LINK = re.compile(
    r"""\w{0,3}(?:\s+\w{1,14}){0,2}?["'_)\]|]{0,4}\s{0,4}
    (?P<link>:+|=>?|-+>|→|-(?=\s)|–|—
      |\b(?:ist|lautet|is|est|es|é|è|e|sera|será|sarà|är|er|on|jest|to|là|adalah|это|является|είναι|هو|هي|है)\b\s?:?)
    \s{0,8}
    (?:(?:la|le|el|il|die|der|das|den|det|de|a|o|l'|lettre|letra|lettera|buchstabe|opción|opcion|opção|opzione|option
      |alternativa|chữ)\s+){0,2}""",
    _FLAGS,
)
CHINESE_LINK = re.compile(
    r"\s?(?:应该|應該|应|應|显然|就|明显)?\s?(?P<link>是|为|為|选择|选|選|\]\s?:?|:)\s{0,4}[:]?\s{0,4}(?:选项|選項)?"
)
CHINESE_PICK = re.compile(r"(?:择|擇|项|項)?\s{0,2}(?P<link>(?:是|为|為)?\s?:?)\s{0,4}(?:选项|選項)?")
JAPANESE_LINK = re.compile(r"\s?(?P<link>は|が|:|=)\s{0,4}[、:]?\s{0,4}(?:選択肢)?")
KOREAN_LINK = re.compile(r"\s?(?P<link>은|는|이|:|=)\s{0,4}[:]?\s{0,4}")

# "I choose B", "I would go with B".
PICK_LINK = re.compile(r"(?:s|ed|ing)?\s{0,4}(?P<link>:)?\s{0,4}(?:answer\s+)?", _FLAGS)

# keyword (lower case), what follows it, and its kind.
KEYWORDS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("answer", ENGLISH_LINK, "answer"),
    ("ans:", re.compile(r"(?P<link>)\s{0,8}"), "answer"),
    ("ans.", re.compile(r"(?P<link>)\s{0,8}"), "answer"),
    ("solution", ENGLISH_LINK, "answer"),
    ("boxed", re.compile(r"(?P<link>)\s{0,4}"), "boxed"),
    ("framebox", re.compile(r"(?P<link>)\s{0,4}"), "boxed"),
    ("fbox", re.compile(r"(?P<link>)\s{0,4}"), "boxed"),
    ("option", ENGLISH_LINK, "option"),
    ("choice", ENGLISH_LINK, "option"),
    ("alternative", ENGLISH_LINK, "option"),
    ("selection", ENGLISH_LINK, "option"),
    ("letter", ENGLISH_LINK, "option"),
    ("prediction", ENGLISH_LINK, "option"),
    ("choose", PICK_LINK, "pick"),
    ("pick", PICK_LINK, "pick"),
    ("select", PICK_LINK, "pick"),
    ("go with", PICK_LINK, "pick"),
    ("antwort", FOREIGN_LINK, "answer"),
    ("antwoord", FOREIGN_LINK, "answer"),
    ("reponse", FOREIGN_LINK, "answer"),
    ("respuesta", FOREIGN_LINK, "answer"),
    ("resposta", FOREIGN_LINK, "answer"),
    ("risposta", FOREIGN_LINK, "answer"),
    ("jawaban", FOREIGN_LINK, "answer"),
    ("cevap", FOREIGN_LINK, "answer"),
    ("svar", FOREIGN_LINK, "answer"),
    ("vastaus", FOREIGN_LINK, "answer"),
    ("jibu", FOREIGN_LINK, "answer"),
    ("idahun", FOREIGN_LINK, "answer"),
)
# Looked for only in texts that are not plain ASCII.
WIDE_KEYWORDS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("réponse", FOREIGN_LINK, "answer"),
    ("lösung", FOREIGN_LINK, "answer"),
    ("ответ", FOREIGN_LINK, "answer"),
    ("відповідь", FOREIGN_LINK, "answer"),
    ("odpowiedź", FOREIGN_LINK, "answer"),
    ("odpověď", FOREIGN_LINK, "answer"),
    ("đáp án", FOREIGN_LINK, "answer"),
    ("válasz", FOREIGN_LINK, "answer"),
    ("răspuns", FOREIGN_LINK, "answer"),
    ("απάντηση", FOREIGN_LINK, "answer"),
    ("الإجابة", FOREIGN_LINK, "answer"),
    ("الجواب", FOREIGN_LINK, "answer"),
    ("उत्तर", FOREIGN_LINK, "answer"),
    ("উত্তর", FOREIGN_LINK, "answer"),
    ("ค\u0e4dาตอบ", FOREIGN_LINK, "answer"),  # as NFKC writes it
    ("ìdáhùn", FOREIGN_LINK, "answer"),
    ("תשובה", FOREIGN_LINK, "answer"),
    ("پاسخ", FOREIGN_LINK, "answer"),
    ("جواب", FOREIGN_LINK, "answer"),
    ("答案", CHINESE_LINK, "answer"),
    ("选", CHINESE_PICK, "chinese pick"),
    ("選", CHINESE_PICK, "chinese pick"),
    ("答", re.compile(r"复?(?P<link>:)\s{0,4}"), "answer"),
    ("答え", JAPANESE_LINK, "answer"),
    ("正解", JAPANESE_LINK, "answer"),
    ("解答", JAPANESE_LINK, "answer"),
    ("回答", JAPANESE_LINK, "answer"),
    ("정답", KOREAN_LINK, "answer"),
    ("답변", KOREAN_LINK, "answer"),
    ("답", KOREAN_LINK, "answer"),
)

# In the clause before a keyword: the statement is denied, supposed, or about a wrong answer.
DENIED = re.compile(
    r"\b(?:not|never|if|whether|unless|suppos\w{1,6}|assum\w{1,6}|cannot|nor|neither|i\s+doubt|doubtful|unlikely|wrong"
    r"|incorrect|tempting|distractor|eliminate\w?|example|format)\b|n't\b|[不别勿]\s*$",
    re.IGNORECASE,
)
CLAUSE_BREAK = re.compile(r"[.,;:!?\n。,]|\b(?:but|however|so|therefore|thus|hence|although)\b", re.IGNORECASE)
# What makes "option", "choice" or "letter" mean the answer.
DECISIVE = re.compile(
    r"\b(?:correct|right|best|final|my|our|appropriate|suitable|accurate|chosen|selected|likely|valid|proper|true|closest|nearest"
    r"|matching|only)[\s_]*(?:answer[\s_]+)?(?:multiple[- ])?$",
    re.IGNORECASE,
)
FIRST_PERSON = re.compile(
    r"(?:^|\b(?:i|we)(?:'ll|'d|'m\s+going\s+to|\s+(?:will|would|must|should|shall|have\s+to|am\s+going\s+to))?"
    r"(?:\s+(?:therefore|thus|hence|then|finally))?\s+)$",
    re.IGNORECASE,
)
# A final statement that gives no letter.
NO_LETTER = re.compile(
    r"""["'(\[]*(?:none\b|i\s+(?:do\s+not|don'?t|cannot|can'?t)\s+(?:know|say|tell|determine|decide)|i(?:'m|\s+am)\s+not\s+sure
    |unknown|undetermined|indeterminate|cannot\s+be|can'?t\s+be|not\s+(?:sure|certain|known|enough|possible|determinable)
    |unsure|unclear|n/a\b|no\s+answer)""",
    _FLAGS,
)
NEGATED_LETTER = re.compile(
    r"""s?(?:\s+\w+){0,2}?\s+(?:is\s+(?:definitely\s+|certainly\s+|clearly\s+)?not|isn't|cannot\s+be|can't\s+be|not)\s+
    (?:the\s+)?(?:option\s+|choice\s+)?["'(\[]{0,2}([A-Z])(?!\w)""",
    _FLAGS,
)
NOT_BUT = re.compile(
    r"""not\s+(?:option\s+)?["'(\[]{0,2}[A-Z]["')\]]{0,2}\s*,?\s*(?:but|rather|instead)\s+(?:rather\s+|instead\s+)?""",
    _FLAGS,
)
HEDGE = re.compile(r"(?:either|both|between|one\s+of|among|any\s+of)\s+", _FLAGS)
# Ends right before a keyword: "B is the correct ".
LETTER_BEFORE = re.compile(
    r"""(?P<more>[A-Z]["')\]]?\s*(?:or|and|/|,|&)\s*)?
    (?<![\w'])["'(\[]{0,2}(?P<letter>[A-Z])["')\].]{0,2}\s+
    (?:is|must\sbe|would\sbe|should\sbe|was|remains)\s+(?:(?:clearly|therefore|thus|indeed|definitely|hence|probably)\s+)?
    (?:the|my|our)\s+(?:(?:only|one|single|correct|right|best|final|most|likely|accurate|appropriate|suitable|valid|true|actual)\s+){0,4}$""",
    re.VERBOSE,
)
# Asserts a letter without naming the answer; counts only when nothing better is said and only one letter is asserted.
IS_CORRECT = re.compile(
    r"(?:^|[\n.;:]|\b(?i:option|choice|answer|so|therefore|thus|hence)\b,?)[ \t]{0,4}"
    r"[\"'(\[]{0,2}([A-Z])[\"')\]]{0,2}[ \t]{1,4}"
    r"(?:is|must be)[ \t]{1,4}(?:(?:clearly|indeed|definitely|the)[ \t]{1,4})?(?:correct|right)\b",
)
# "This corresponds to option B.": as weak as the form before. "So option B is wrong." goes on and says nothing.
IS_MEANT = re.compile(
    r"(?i:\b(?:corresponds?\s(?:\w{1,12}ly\s|best\s)?(?:to|with)|match(?:es|ing)(?:\s\w{1,12}ly|\sbest)?(?:\swith)?"
    r"|agrees\swith|points\sto|(?:i\.e\.|namely|so|hence|thus|therefore),?|(?:that|this|which|it)(?:\sis|'s)"
    r"|(?:i|we)(?:\s(?:would|will|must)|'d|'ll))\s(?:exactly\s|given\sby\s)?(?:the\s)?(?:answer\s)?(?:option|choice|answer|letter)\s)"
    r"[\"'(\[]{0,2}([A-Z])[\"')\]]{0,2}(?=[ \t]{0,3}(?:[.,;:!(\n]|\Z|(?i:because|since|as)\b))"
)
# The same in Chinese, Japanese and Korean, which put no blanks between words.
WIDE_IS_CORRECT = re.compile(
    r"(?<![A-Za-z非不])([A-Z])\s?(?:选项|選項|项|項)?\s?(?:才|就)?(?:是|为|為|が|가|이)?\s?(?:唯一|最)?"
    r"(?:正确|正確|对的|對的|正解|正しい|정답|맞)"
)
ASSERTED = (IS_CORRECT, IS_MEANT)
# "Therefore, B." or "Actually, it's C." at the end of a line.
CONCLUSION = re.compile(
    r"\b(?:therefore|thus|hence|so|it's|it is|must be|actually|correction|rather|i think|i believe|i'd say|i say)\b"
    r"[,:]?[ \t]{1,4}"
    r"(?:(?:it's|it is|it must be|that|the answer is|option|choice|is|must be|no,?)[ \t]{1,4}){0,2}"
    r"[\"'(\[]{0,2}([A-Za-z])[\"')\]]{0,2}[ \t]{0,4}[.!]?[ \t]{0,4}$",
    re.IGNORECASE | re.MULTILINE,
)
