"""The values that pass between graders and the service: a case's reference in, a judgement out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from srbench_kit.values import Json

PARSED, UNPARSED, AMBIGUOUS = "parsed", "unparsed", "ambiguous"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """What a judge model said: its final text and why it stopped."""

    text: str
    finish_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What an answer is judged by.

    Attributes:
        case_id: `benchmark/identity`, for messages.
        answer: the reference answer as the task file holds it.
        metadata: the case's metadata, hidden tests included.
        choice_count: how many options the case offers; 0 when it is silent.
    """

    case_id: str = ""
    benchmark: str = ""
    answer: Json = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    choice_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCall:
    """A model call that a grader needs before it can judge."""

    messages: tuple[tuple[str, str], ...]
    request_fields: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """One judgement.

    Attributes:
        correct: whether the answer is right; None when there is no judgement (`judge_call` is set then).
        status: `parsed`, `unparsed` or `ambiguous`.
        extracted: what was read from the text; None when nothing was.
        strict_format: whether the text is nothing but the answer; None where the grader has no such form.
        details: more facts, JSON only.
    """

    correct: bool | None
    status: str
    extracted: Json = None
    strict_format: bool | None = None
    details: Mapping[str, Json] = field(default_factory=dict)
    judge_call: JudgeCall | None = None


Judge: TypeAlias = Callable[[str, Case, tuple[JudgeReply, ...]], Grading]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader:
    """A grader: a name that benchmarks use, the version that goes into every grade, and a pure function.

    `judge` raises `InvalidInput` when the reference cannot be used; that is a failure to grade, never a wrong answer.
    """

    name: str
    version: str
    judge: Judge
