"""The values that pass between graders and the service: a case's reference in, a judgement out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

if TYPE_CHECKING:
    from srbench_grader.workshop import Workshop

PARSED, UNPARSED, AMBIGUOUS = "parsed", "unparsed", "ambiguous"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """What a judge model said: its final text and why it stopped.

    Attributes:
        failure_reason, failure_message: why there is no whole reply; empty when there is one.
    """

    text: str
    finish_reason: str = ""
    failure_reason: str = ""
    failure_message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What an answer is judged by.

    Attributes:
        case_id: `benchmark/identity`, for messages.
        answer: the reference answer as the task file holds it.
        metadata: the case's metadata, hidden tests included.
        choice_count: how many options the case offers; 0 when it is silent.
        question: the text of the last message that the model was asked with.
        options: the benchmark's frozen options.
    """

    case_id: str = ""
    benchmark: str = ""
    answer: Json = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    choice_count: int = 0
    question: str = ""
    options: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCall:
    """A model call that a grader needs before it can judge. `option` is the benchmark option that names whom to ask."""

    messages: tuple[tuple[str, str], ...]
    request_fields: Mapping[str, Json] = field(default_factory=dict)
    option: str = "judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """One judgement.

    Attributes:
        correct: whether the answer is right; None when there is no judgement: `judge_call` or `failure_reason` is set then.
        status: `parsed`, `unparsed` or `ambiguous`.
        extracted: what was read from the text; None when nothing was.
        strict_format: whether the text is nothing but the answer; None where the grader has no such form.
        details: more facts, JSON only.
        failure_reason, failure_message: why the answer could not be judged, a stable word and a sentence; else empty.
    """

    correct: bool | None
    status: str
    extracted: Json = None
    strict_format: bool | None = None
    details: Mapping[str, Json] = field(default_factory=dict)
    judge_call: JudgeCall | None = None
    failure_reason: str = ""
    failure_message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """An answer to be judged.

    Attributes:
        text: its final channel; of several answers the last.
        parts: the final channels of all answers of a case with several questions; just `text` for one.
        replies: what judges said so far.
    """

    text: str
    parts: tuple[str, ...] = ()
    replies: tuple[JudgeReply, ...] = ()


Judge: TypeAlias = Callable[[str, Case, tuple[JudgeReply, ...]], Grading]
Run: TypeAlias = Callable[[Submission, Case, "Workshop"], Awaitable[Grading]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader:
    """A grader: a name that benchmarks use, the version that goes into every grade, and one of two ways to judge.

    `judge` is a pure function; `run` is for graders that run programs. Both raise `InvalidInput` when the reference cannot
    be used; that is a failure to grade, never a wrong answer.
    """

    name: str
    version: str
    judge: Judge | None = None
    run: Run | None = None

    def __post_init__(self) -> None:
        if (self.judge is None) == (self.run is None):
            raise InvalidInput("BAD_GRADER", f"the grader {self.name!r} needs either judge or run")
