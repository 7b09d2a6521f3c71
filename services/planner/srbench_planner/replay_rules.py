"""When saved single answers may stand in for what a router would have answered. Pure; everything that speaks against it
is said at once, run by run and case by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from srbench.v1 import plan_pb2, target_pb2
from srbench_kit.canonical import digest, folded_digest
from srbench_kit.values import Json, object_of

from srbench_planner import sampling
from srbench_planner.cells import CellMatrix
from srbench_planner.ports import BenchmarkSpec

DETERMINISTIC_METHODS = ("static", "single", "route_action")
REPLAYABLE_KINDS = ("multiple-choice", "grid", "judge")
# Plugins that write down what happened and change neither request nor answer.
HARMLESS_PLUGINS = frozenset({"router_replay"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A run with its plan and its cases in plan order."""

    run_id: str
    status: str
    plan: plan_pb2.Plan
    options: Mapping[str, Json]
    cases: Sequence[Mapping[str, Json]]
    matrix: CellMatrix


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCall:
    """A subject's call that an endpoint accepted. `status` as in `srbench.v1.CallStatus`, in small letters."""

    status: str
    model: str
    request_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedAnswer:
    """What the ledger holds of one baseline cell; `correct` is `None` without a grade."""

    status: str
    correct: bool | None
    calls: tuple[SavedCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Something that speaks against the replay; see `srbench.v1.ReplayRejection`."""

    code: str
    message: str
    case_id: str = ""
    target_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One cell of the replay and the baseline cell whose answer it takes."""

    cell: int
    case: int
    target: int
    source_cell: int
    model: str
    decision: str
    config_hash: str


@dataclass(frozen=True, slots=True)
class Checked:
    """All rejections, or the choices when there are none."""

    rejections: tuple[Rejection, ...]
    choices: tuple[Choice, ...]


# The digest of the request that a target was sent for a case, worked out again from the plan: (target, case) → SHA-256.
RequestDigest = Callable[[target_pb2.Target, Mapping[str, Json]], str]


def check_runs(baseline: Side, preview: Side, specs: Mapping[str, BenchmarkSpec]) -> list[Rejection]:
    """What speaks against it from the two plans alone."""
    return [*_plans(baseline, preview), *_cases(baseline, preview, specs)]


def check_cells(
    baseline: Side,
    preview: Side,
    saved: Mapping[int, SavedAnswer],
    routed: Mapping[int, Json],
    request_sha256: RequestDigest,
) -> Checked:
    """What speaks against single cells; `saved` and `routed` (routing documents) are by cell of their runs.

    The two sides have the same cases, though perhaps in another order, and whole matrices.
    """
    at = {str(case["id"]): index for index, case in enumerate(baseline.cases)}
    singles = _Singles(baseline)
    asked_with = [_effective(preview.plan, target) for target in preview.plan.targets]
    rejections: list[Rejection] = []
    choices: list[Choice] = []
    for cell in range(len(preview.matrix)):
        case, target = preview.matrix.pair(cell)
        case_id, router = str(preview.cases[case]["id"]), preview.plan.targets[target]
        found = list(_routing(routed.get(cell)))
        document = routed.get(cell)
        picked: int | str = "model_missing"
        if isinstance(document, dict) and not found:
            picked = singles.pick(str(document.get("selected_model") or ""), asked_with[target])
            if isinstance(picked, str):
                found.append((picked, _PICK_SENTENCES[picked].format(model=document.get("selected_model"))))
        if isinstance(picked, int) and isinstance(document, dict):
            source = at[case_id] * len(baseline.plan.targets) + picked
            single = baseline.plan.targets[picked]
            expected = request_sha256(single, baseline.cases[at[case_id]])
            found.extend(_saved(saved.get(source), single, expected))
            if not found:
                choices.append(_choice(cell, case, target, source, document))
        rejections.extend(Rejection(code=c, message=m, case_id=case_id, target_id=router.id) for c, m in found)
    return Checked(tuple(rejections), () if rejections else tuple(choices))


def _plans(baseline: Side, preview: Side) -> Iterator[Rejection]:
    b, p = baseline.plan, preview.plan
    if "native" in (b.output_policy, p.output_policy):
        yield Rejection(code="native_output_not_replayable", message="a run with output_policy native cannot be replayed")
    if b.mode != "live" or baseline.status != "completed":
        yield Rejection(
            code="baseline_not_completed_live",
            message=f"run {baseline.run_id} is {baseline.status} in mode {b.mode}; expected a completed live run",
        )
    if p.mode != "preview" or preview.status != "completed":
        yield Rejection(
            code="preview_not_completed",
            message=f"run {preview.run_id} is {preview.status} in mode {p.mode}; expected a completed preview",
        )
    if b.version != p.version:
        yield Rejection(code="version_mismatch", message=f"the protocols differ: {b.version} and {p.version}")
    for side in (baseline, preview):
        if side.matrix.picked is not None:
            yield Rejection(
                code="partial_matrix", message=f"run {side.run_id} has only some cells; expected every case and target"
            )
    if not any(target.kind == target_pb2.TARGET_KIND_SINGLE for target in b.targets):
        yield Rejection(code="model_missing", message=f"run {baseline.run_id} has no single model whose answers were saved")


def _cases(baseline: Side, preview: Side, specs: Mapping[str, BenchmarkSpec]) -> Iterator[Rejection]:
    for side in (baseline, preview):
        ids = Counter(str(case["id"]) for case in side.cases)
        for name in (name for name, count in ids.items() if count > 1):
            yield Rejection(
                code="duplicate_case_ids", message=f"run {side.run_id} has the case {name!r} twice", case_id=name
            )
        if digest([dict(case) for case in side.cases]) != side.plan.case_sha256:
            yield Rejection(
                code="case_receipt_mismatch",
                message=f"the cases of run {side.run_id} are not those that its plan was frozen with",
            )
    saved = {str(case["id"]): case for case in baseline.cases}
    asked = {str(case["id"]): case for case in preview.cases}
    for name in sorted(saved.keys() ^ asked.keys()):
        where = "baseline" if name in saved else "preview"
        yield Rejection(code="case_set_mismatch", message=f"the case {name!r} is only in the {where}", case_id=name)
    for name, case in asked.items():
        # By digest: to Python 1, 1.0 and true are equal.
        if name in saved and digest(dict(saved[name])) != digest(dict(case)):
            yield Rejection(
                code="case_content_mismatch", message=f"the case {name!r} differs between the two runs", case_id=name
            )
    yield from _graders(baseline, preview, specs)


def _graders(baseline: Side, preview: Side, specs: Mapping[str, BenchmarkSpec]) -> Iterator[Rejection]:
    for name in sorted({str(case["benchmark"]) for case in preview.cases}):
        spec = specs.get(name)
        if spec is None or spec.kind not in REPLAYABLE_KINDS or spec.driver != "single_turn":
            yield Rejection(
                code="benchmark_not_replayable",
                message=f"{name} is not answered by one call that is graded by itself, so saved answers cannot stand in",
            )
        versions = baseline.plan.adapter_versions.get(name), preview.plan.adapter_versions.get(name)
        options = baseline.options.get(name), preview.options.get(name)
        if versions[0] != versions[1] or (options[1] and options[0] != options[1]):
            yield Rejection(
                code="grader_protocol_mismatch",
                message=f"{name} is graded differently in the two runs: {versions[0]} and {versions[1]}, or other options",
            )


def _routing(document: Json) -> Iterator[tuple[str, str]]:
    """What a routing document itself says against it: (code, sentence)."""
    if not isinstance(document, dict):
        yield "preview_rows_incomplete", "the preview has no answer for this case"
        return
    provenance = document.get("selection_provenance")
    known = provenance if isinstance(provenance, dict) else {}
    if known and known.get("state_dependent") is not False:
        mode = known.get("mode")
        yield "state_dependent_preview", f"the choice depends on the router's learned state (mode {mode}); live may differ"
    status, method = document.get("selection_status"), document.get("selection_method")
    if status != "selected" or method not in DETERMINISTIC_METHODS or known.get("sampled") is True:
        reason = document.get("selection_reason")
        yield (
            "route_not_deterministic",
            f"the selection is {status} by {method}{': ' + str(reason) if reason else ''}; expected one model, "
            f"selected by {' or '.join(DETERMINISTIC_METHODS)} without sampling",
        )
    plugins = _plugins(document.get("decision_result"))
    if plugins:
        yield "plugins_not_replayable", f"the decision has plugins that may change the answer: {', '.join(plugins)}"


def _plugins(result: Json) -> list[str]:
    """The plugins that may change an answer; one that says it is off does not."""
    if not isinstance(result, dict):
        return ["unknown, because the preview shows no decision"]
    listed = result.get("plugins")
    if listed is not None and not isinstance(listed, list):
        return ["unknown"]
    found: list[str] = []
    for item in listed or []:
        name, on = (item, True) if isinstance(item, str) else _plugin(item)
        if on and name not in HARMLESS_PLUGINS:
            found.append(name)
    return found


def _plugin(item: Json) -> tuple[str, bool]:
    if not isinstance(item, dict):
        return "unknown", True
    settings = item.get("configuration")
    switch = item.get("enabled", settings.get("enabled") if isinstance(settings, dict) else None)
    return str(item.get("type") or item.get("name") or "unknown"), switch is not False


_PICK_SENTENCES = {
    "model_missing": "the preview selects the model {model!r}, whose answers the baseline does not have",
    "sampling_mismatch": "the baseline asked the model {model!r} with other generation parameters than the router would",
    "baseline_models_not_unique": "the baseline asked the model {model!r} twice with the same parameters; which is meant?",
}


class _Singles:
    """The single models of a baseline by name, each with a digest of the parameters it was asked with."""

    def __init__(self, baseline: Side) -> None:
        self._found: dict[str, list[tuple[int, str]]] = {}
        for index, target in enumerate(baseline.plan.targets):
            if target.kind == target_pb2.TARGET_KIND_SINGLE:
                self._found.setdefault(target.model, []).append((index, _effective(baseline.plan, target)))

    def pick(self, model: str, parameters: str) -> int | str:
        """The position of the one target that asked `model` with `parameters`; else the code that says why not."""
        candidates = self._found.get(model, [])
        fitting = [index for index, own in candidates if own == parameters]
        if len(fitting) == 1:
            return fitting[0]
        if not candidates:
            return "model_missing"
        return "baseline_models_not_unique" if fitting else "sampling_mismatch"


def _effective(plan: plan_pb2.Plan, target: target_pb2.Target) -> str:
    return folded_digest(dict(sampling.effective(object_of(plan.sampling), object_of(target.request_params))))


def _saved(answer: SavedAnswer | None, single: target_pb2.Target, expected_sha256: str) -> Iterable[tuple[str, str]]:
    """What the saved answer says against it."""
    calls = [call for call in answer.calls if call.status == "completed"] if answer is not None else []
    if answer is None or len(answer.calls) != 1 or len(calls) != 1:
        yield "saved_generation_incomplete", f"{single.id} has no single completed answer to this case"
        return
    if answer.status != "completed" or answer.correct is None:
        yield "saved_grade_missing", f"the saved answer of {single.id} has no grade"
    call = calls[0]
    if call.request_sha256 != expected_sha256:
        yield (
            "saved_prompt_mismatch",
            f"what {single.id} was sent is not this case's prompt under the plan's parameters: its digest is another one",
        )
        yield "saved_request_parameters_mismatch", f"the digest of {single.id}'s saved request covers its parameters, too"
    names = {single.model, single.expected_response_model} | {
        name for name, model in single.model_aliases.items() if model == single.model
    }
    if not call.model or call.model not in names:
        yield "saved_model_mismatch", f"the saved answer names the model {call.model!r}; expected {single.model!r}"


def _choice(cell: int, case: int, target: int, source: int, document: Mapping[str, Json]) -> Choice:
    result = document.get("decision_result")
    name = result.get("decision_name") if isinstance(result, dict) else None
    decision = name or document.get("routing_decision")
    return Choice(
        cell=cell,
        case=case,
        target=target,
        source_cell=source,
        model=str(document.get("selected_model")),
        decision=decision if isinstance(decision, str) else "",
        config_hash=str(document.get("config_hash") or ""),
    )
