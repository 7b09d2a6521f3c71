"""Messages as the JSON that released clients know, over HTTP and from the command line, beyond the rules of `jsonview`."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import experiment_pb2, plan_pb2, recipe_pb2, replay_pb2, report_pb2, target_pb2
from srbench.v1 import planner_service_pb2 as planner

from srbench_kit import jsonview
from srbench_kit.jsonview import to_json
from srbench_kit.values import Json, from_value

Object = dict[str, Json]

# Texts (and lists) in which "empty" means unknown or none; they are shown as null.
NULL_WHEN_EMPTY: dict[str, frozenset[str]] = {
    "srbench.v1.Run": frozenset({"reason", "error", "parent_run_id"}),
    "srbench.v1.DatasetPreparation": frozenset({"reason", "error", "benchmark"}),
    "srbench.v1.SelectedBenchmark": frozenset({"reason"}),
    "srbench.v1.Cell": frozenset({"reason"}),
    "srbench.v1.Outcome": frozenset({"reason", "error", "model", "decision"}),
    "srbench.v1.Call": frozenset(
        {
            "reason",
            "error",
            "model",
            "selected_model",
            "decision",
            "config_hash",
            "finish_reason",
            "evidence_sha256",
            "evidence_error",
            "first_token_clock",
            "source_run_id",
            "source_call_id",
        }
    ),
    "srbench.v1.Metrics": frozenset({"accuracy_ci95", "estimated_accuracy_ci95"}),
    "srbench.v1.Judging": frozenset({"audit_id", "auditor"}),
    "srbench.v1.TargetProfile": frozenset({"config_hash"}),
    "srbench.v1.ExperimentLink": frozenset({"hypothesis"}),
    "srbench.v1.ReplayRejection": frozenset({"case_id", "target_id"}),
    "srbench.v1.RunRecipe": frozenset({"reason", "config_hash"}),
    "srbench.v1.RoutingFlowRow": frozenset({"decision", "model", "stratum"}),
    "srbench.v1.PairSide": frozenset({"status", "reason", "model", "decision", "call_id"}),
    "srbench.v1.SavingInterval": frozenset({"ci95_percent"}),
    "srbench.v1.RegretParts": frozenset({"decision"}),
    "srbench.v1.ComparisonTarget": frozenset({"config_hash"}),
    "srbench.v1.RegradedResult": frozenset({"reason", "answer_status", "grader_version"}),
    "srbench.v1.CallCorrection": frozenset({"reason", "evidence_sha256"}),
}
# What lists leave out of a call: texts, and what is as large as they are.
CALL_TEXTS = ("raw_usage", "final", "reasoning", "refusal", "tool_calls", "evidence_error", "request")
# What lists say of a manifest.
SUMMARY = (
    *("version", "name", "mode", "profile", "seed", "cost_policy", "output_policy", "sampling"),
    *("benchmark_weights", "adapter_versions", "plan_sha256", "case_sha256", "custom_subset"),
)
_MICRO = 10**6
# Messages whose JSON is a value of its own.
_LEAVES = frozenset({"srbench.v1.Value", "google.protobuf.Timestamp", "google.protobuf.Duration"})


def plain(message: Message) -> Object:
    """The JSON of `message` by the rules, its empty texts null where that is what they mean."""
    return blank(message.DESCRIPTOR.full_name, to_json(message))


def blank(name: str, shown: Object) -> Object:
    """`shown`, the JSON of a message called `name`, with its empty texts null where that is what they mean."""
    for field in NULL_WHEN_EMPTY.get(name, ()):
        if shown[field] in ("", []):
            shown[field] = None
    return shown


def deep(message: Message) -> Object:
    """As `plain`, in every message inside `message`, too."""
    shown = to_json(message)
    _blank_inside(message.DESCRIPTOR, shown)
    return shown


def _blank_inside(descriptor: Any, shown: Object) -> None:
    blank(descriptor.full_name, shown)
    for field in descriptor.fields:
        inner = field.message_type
        if inner is None or inner.GetOptions().map_entry or inner.full_name in _LEAVES:
            continue
        value = shown[jsonview.json_name(field)]
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                _blank_inside(inner, item)


def target(message: target_pb2.Target) -> Object:
    """A target as manifests write it: only what is set, prices in US dollars per million tokens."""
    everything = to_json(message)
    shown = {field.name: everything[field.name] for field, _ in message.ListFields()}
    if message.prices:
        shown["prices"] = {model: _price(price) for model, price in sorted(message.prices.items())}
    return shown


def _price(message: Any) -> Object:
    """One picodollar a token is one micro-dollar a million tokens."""
    return {
        field.name.removesuffix("_picodollars"): getattr(message, field.name) / _MICRO
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def catalog(message: planner.Catalog) -> Object:
    """The catalog; `purpose` is what released clients call a profile's description."""
    shown = to_json(message)
    shown["profiles"] = [{**to_json(profile), "purpose": profile.description} for profile in message.profiles]
    return shown


def preparation_options(message: planner.Catalog) -> Object:
    """What can be prepared."""
    return {
        "benchmarks": [
            {
                "id": item.id,
                "name": item.title,
                "profiles": {"smoke": item.smoke_count, "quick": item.quick_count, "standard": item.standard_count},
                "source_url": item.source_url,
                "revision": item.revision,
                "access_note": "The pinned revision is fetched by the planner; the source's own terms apply.",
                "dependencies": [],
                "available": item.available,
            }
            for item in message.benchmarks
        ]
    }


def dataset(message: planner.Dataset) -> Object:
    """A dataset as its manifest says it: sources by benchmark."""
    shown = to_json(message)
    shown["sources"] = {source.benchmark: to_json(source) for source in message.sources}
    return shown


def dataset_detail(message: planner.Dataset, titles: dict[str, str]) -> Object:
    """One dataset with its counts and where it comes from. `titles` are the benchmarks' by id."""
    shown = dataset(message)
    shown["benchmarks"] = [
        {"id": name, "title": titles.get(name, name), "count": message.counts.get(name, 0)} for name in message.benchmarks
    ]
    shown["provenance"] = {
        "sha256": message.sha256,
        "seed": message.seed,
        "selection": message.selection,
        "sources": [to_json(source) for source in message.sources],
    }
    return shown


def dataset_case(message: planner.DatasetCase) -> Object:
    """One question, without its answer."""
    shown = to_json(message)
    shown["messages"] = [{"role": item.role, "content": to_json(item)["content"]} for item in message.messages]
    return shown


def selection(message: planner.DatasetSelection) -> Object:
    """Which dataset serves each benchmark; `reason_code` is what released clients call the reason."""
    shown = to_json(message)
    shown["benchmarks"] = [
        {**plain(item), "id": item.benchmark, "reason_code": item.reason or None} for item in message.benchmarks
    ]
    return {**shown, "model_requests": 0}


def preparation(message: planner.DatasetPreparation) -> Object:
    """A preparation job; its dataset as datasets are shown."""
    shown = plain(message)
    shown["dataset"] = dataset(message.dataset) if message.HasField("dataset") else None
    return shown


def plan_checked(message: plan_pb2.Plan) -> Object:
    """The answer to a check of a manifest: the frozen manifest, to be sent again as it is."""
    members = message.manifest.object_value.members
    bound = any(member.key == "dataset" for member in members)
    manifest: Object = {m.key: from_value(m.value) for m in members if not (bound and m.key == "cases")}
    worst = message.worst_case_cost_picodollars
    return {
        "manifest": manifest,
        "plan_sha256": message.plan_sha256,
        "case_sha256": message.case_sha256,
        "total": message.total,
        "case_count": message.case_count,
        "case_counts": dict(sorted(message.case_counts.items())),
        "worst_case_cost_usd": jsonview.usd(worst) if message.HasField("worst_case_cost_picodollars") else None,
        "worst_case_gaps": [jsonview.to_json(gap) for gap in message.worst_case_gaps],
        "most_calls": message.most_calls,
        "status": "validated",
        "model_requests": 0,
    }


def plan_summary(message: plan_pb2.Plan) -> Object:
    """What a list says of a run's manifest: the short members of it, under their own names."""
    shown = to_json(message)
    summary: Object = {key: shown[key] for key in SUMMARY}
    summary["targets"] = [target(item) for item in message.targets]
    summary["limits"] = shown["limits"]
    if message.dataset_sha256:
        summary["dataset"] = {"sha256": message.dataset_sha256, "case_count": message.case_count}
    return summary


def run(message: planner.Run, manifest: Json) -> Object:
    """A run with `manifest` in place of its plan."""
    shown = plain(message)
    shown.pop("plan")
    shown["experiment_roles"] = [plain(link) for link in message.experiment_roles]
    return {**shown, "plan_sha256": message.plan.plan_sha256, "manifest": manifest}


def run_row(message: planner.Run) -> Object:
    """A run in a list."""
    return {**run(message, plan_summary(message.plan)), "manifest_summary": True}


def frozen_manifest(message: planner.Run) -> Object:
    """A run's manifest without its cases: they are large, never change, and hold the answers."""
    members = message.plan.manifest.object_value.members
    return {member.key: from_value(member.value) for member in members if member.key != "cases"}


def event(message: planner.RunEvent) -> Object:
    """An event; `at` and `kind` are what released clients call its time and type."""
    shown = to_json(message)
    return {**shown, "at": shown["created_at"], "kind": message.type}


def call_row(message: accounting.Call) -> Object:
    """A call in a list."""
    shown = plain(message)
    for name in CALL_TEXTS:
        del shown[name]
    return shown


def report(message: report_pb2.Report) -> Object:
    """A report; an interval without ends is null."""
    shown = to_json(message)
    rows: list[Any] = [shown["benchmarks"]]
    if isinstance(shown["summary"], dict):
        rows.append(shown["summary"]["targets"])
    for row in (row for group in rows for row in group):
        blank("srbench.v1.Metrics", row)
    if isinstance(shown["judging"], dict):
        blank("srbench.v1.Judging", shown["judging"])
    if isinstance(shown["provenance"], dict):
        profiles: Any = shown["provenance"]["target_profiles"]
        for profile in profiles:
            blank("srbench.v1.TargetProfile", profile)
    return shown


def replay_check(message: replay_pb2.ReplayCheck) -> Object:
    """Whether a replay is possible, with every reason against it."""
    shown = to_json(message)
    reasons: list[Json] = [plain(item) for item in message.reasons]
    return {**shown, "reasons": reasons, "model_requests": 0}


def replay_options(message: planner.ListReplayOptionsResponse) -> Object:
    """Baselines, or the previews that fit one."""
    shown = to_json(message)
    del shown["next_page_token"]
    baselines: list[Json] = [_run_option(item) for item in message.baselines]
    options: list[Json] = [_run_option(item) for item in message.options]
    return {
        **shown,
        "baseline": _run_option(message.baseline) if message.HasField("baseline") else None,
        "baselines": baselines,
        "options": options,
        "next_cursor": message.next_page_token or None,
        "empty_reason": message.empty_reason or None,
    }


def _run_option(message: planner.Run) -> Object:
    """A run that can be chosen, with the four fields by which released clients know it."""
    plan = message.plan
    return {
        **run_row(message),
        "run_id": message.id,
        "name": plan.name,
        "profile": plan.profile,
        "case_count": plan.case_count,
    }


def experiment_member(message: planner.ExperimentMember) -> Object:
    """A run's part in an experiment, with the run in short; `linked_at` is what released clients call its time."""
    shown = to_json(message)
    named = {"run_id": message.run.id, "hypothesis": message.hypothesis or None, "linked_at": shown["created_at"]}
    return {**shown, "run": run_row(message.run), **named}


def experiment_deletion(message: experiment_pb2.DeletedExperiment) -> Object:
    """What a deletion left behind; released clients read that it deleted links alone."""
    shown = plain(message)
    return {**shown, "deleted": True, "unlinked_runs": message.run_count, "runs_deleted": 0, "model_requests": 0}


def run_recipe(message: recipe_pb2.RunRecipe) -> Object:
    """A router's recipe, or why there is none."""
    shown = plain(message)
    if message.HasField("recipe"):
        shown["recipe"] = recipe(message)
    return shown


def recipe(message: recipe_pb2.RunRecipe) -> Object:
    """A captured recipe as a document of its own; without `document` where the message has none."""
    found = message.recipe
    shown = to_json(found)
    shown["captured_at"] = shown.pop("capture_at")
    document = shown.pop("document")
    about: Object = {
        "target_id": message.target_id,
        "config_hash": message.config_hash,
        **shown,
        "redacted": bool(found.redactions),
        "source": "router_config_api_bracketed_hashes",
        "scope": "the parts of the configuration that decide; secrets and deployment details are taken out",
    }
    return {**about, **document} if isinstance(document, dict) else about
