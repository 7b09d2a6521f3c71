"""The cases of a plan in memory, once for all runs that share them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from srbench.v1 import grader_service_pb2, plan_pb2, work_queue_service_pb2
from srbench_kit.canonical import digest
from srbench_kit.errors import InvalidInput, NotFound
from srbench_kit.values import Json, fill_value

from srbench_planner import case_rules, worst_case
from srbench_planner.ports import HARNESS_PREFIX, BenchmarkSpec, HarnessSpec
from srbench_planner.presence import ENGINE, SANDBOX
from srbench_planner.public_view import PublicView, public_view
from srbench_planner.reference_rules import choice_count

# Graders that run programs.
SANDBOX_GRADERS = frozenset({"code", "scicode"})


class CaseSet:
    """Cases with what is made of them, each made once."""

    def __init__(self, case_sha256: str, cases: list[dict[str, Json]], specs: Mapping[str, BenchmarkSpec]) -> None:
        self.case_sha256 = case_sha256
        self.cases = cases
        self._specs = specs
        self._payloads: list[bytes | None] = [None] * len(cases)
        self._positions: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.cases)

    def case_id(self, index: int) -> str:
        """The id of the case at `index`."""
        return str(self.cases[index]["id"])

    def public(self, case_id: str) -> PublicView:
        """What a reader may see of a case. Raises: `NotFound` (`NO_SUCH_CASE`)."""
        if not self._positions:
            self._positions = {self.case_id(index): index for index in range(len(self.cases))}
        index = self._positions.get(case_id)
        if index is None:
            raise NotFound("NO_SUCH_CASE", f"the run has no case {case_id[:200]!r}", case_id=case_id[:200])
        return public_view(self.cases[index])

    def drivers(self) -> list[str]:
        """The driver of each case; of a harness with the name of its runner."""
        return [driver_of(self._spec(case)) for case in self.cases]

    def needs(self, options: Mapping[str, Json]) -> list[str]:
        """What the grader of each case must have, empty for nothing. `options`: the plan's options by benchmark."""
        return [_need(self._spec(case), options) for case in self.cases]

    def graders(self) -> list[str]:
        """The grader of each case."""
        return [self._spec(case).grader for case in self.cases]

    def token_counts(self) -> list[int]:
        """The prompt tokens that each case reserves, an upper bound."""
        return [worst_case.request_bytes(case) for case in self.cases]

    def lease_payload(self, index: int) -> bytes:
        """A serialized `Lease` with all that is constant over the leases of a case; the rest is set on top."""
        payload = self._payloads[index]
        if payload is None:
            case = self.cases[index]
            spec = self._spec(case)
            lease = work_queue_service_pb2.Lease(driver=driver_of(spec), grader=spec.grader)
            fill_public_case(lease.public_case, case)
            if spec.harness is not None:
                fill_value(lease.task, task_of(case, spec.harness))
            payload = self._payloads[index] = lease.SerializeToString()
        return payload

    def references(self) -> Iterator[grader_service_pb2.Reference]:
        """What each case is graded by, in order. For graders only."""
        for index, case in enumerate(self.cases):
            reference = grader_service_pb2.Reference(case_index=index, case_id=self.case_id(index))
            reference.benchmark = str(case["benchmark"])
            fill_value(reference.answer, case.get("answer"))
            fill_value(reference.metadata, case.get("metadata"))
            reference.choice_count = choice_count(case, self._spec(case).grader)
            reference.question = question_of(case)
            yield reference

    def sealed(self, *, digests_only: bool) -> Iterator[plan_pb2.SealedCase]:
        """Each case in full with its digest, in order; the content only for development cases. For accounting only.

        Raises: `InvalidInput` (`HOLDOUT`) before the first case when one of them is not for development.
        """
        for index, case in enumerate(self.cases if not digests_only else ()):
            metadata = case.get("metadata")
            split = metadata.get("split") if isinstance(metadata, dict) else None
            if split != "dev":
                sentence = f"case {self.case_id(index)} has the split {split!r}; only dev cases are ever given out in full"
                raise InvalidInput("HOLDOUT", sentence, case_id=self.case_id(index))
        for index, case in enumerate(self.cases):
            sealed = plan_pb2.SealedCase(index=index, case_id=self.case_id(index), sha256=digest(dict(case)))
            if not digests_only:
                fill_value(sealed.content, dict(case))
            yield sealed

    def _spec(self, case: Mapping[str, Json]) -> BenchmarkSpec:
        return self._specs[str(case["benchmark"])]


def driver_of(spec: BenchmarkSpec) -> str:
    """The driver as leases name it."""
    return f"{HARNESS_PREFIX}{spec.harness.runner}" if spec.harness is not None else spec.driver


def task_of(case: Mapping[str, Json], harness: HarnessSpec) -> dict[str, Json]:
    """The part of a case's metadata that its runner is given."""
    metadata = case.get("metadata")
    found = metadata if isinstance(metadata, dict) else {}
    return {name: found[name] for name in harness.task_fields if name in found}


def fill_public_case(public: plan_pb2.PublicCase, case: Mapping[str, Json]) -> None:
    """Writes the part of `case` that a model may see: messages and request fields, nothing else."""
    public.case_id = str(case["id"])
    public.benchmark = str(case["benchmark"])
    messages = case.get("messages")
    for message in messages if isinstance(messages, list) else []:
        assert isinstance(message, dict)
        chat = public.messages.add(role=str(message["role"]))
        fill_value(chat.content, message.get("content"))
        extra: dict[str, Json] = {key: value for key, value in message.items() if key not in ("role", "content")}
        if extra:
            fill_value(chat.extra, extra)
    fields: dict[str, Json] = {key: case[key] for key in case_rules.REQUEST_FIELDS if key in case}
    if "request_metadata" in case:
        fields["metadata"] = case["request_metadata"]
    if fields:
        fill_value(public.request_fields, fields)


def question_of(case: Mapping[str, Json]) -> str:
    """The text of the case's last message, as a judge sees it; parts that are no text are left out."""
    messages = case.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, dict) else None
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _need(spec: BenchmarkSpec, options: Mapping[str, Json]) -> str:
    if spec.grader not in SANDBOX_GRADERS:
        return ""
    given = options.get(spec.id)
    return ENGINE if isinstance(given, dict) and given.get("sandbox_image") else SANDBOX
