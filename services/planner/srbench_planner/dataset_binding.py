"""Binding a plan to its cases: a frozen file named by its digest, one of our datasets named by its id, or inline cases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from srbench_kit.errors import DataLoss, InvalidInput
from srbench_kit.values import Json

from srbench_planner import checks, manifest
from srbench_planner.ports import BoundFile, CaseFiles

PROVENANCE_SELECTION = "stratified-hash-provenance-v1"
FIELDS = (
    "path",
    "sha256",
    "id",
    "name",
    "version",
    "case_count",
    "profile",
    "split",
    "custom_subset",
    "benchmarks",
    "sources",
    "seed",
    "selection",
    "preparation",
    "counts",
    "manifest_path",
    "created_at",
)
# Where the bytes lie, and labels: they say nothing about the content.
PLACES = frozenset({"path", "manifest_path", "created_at"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The cases of a plan, and the frozen `dataset` field; `None` for inline cases."""

    cases: list[Json]
    dataset: dict[str, Json] | None


def bind(found: dict[str, Json], head: dict[str, Json], files: CaseFiles) -> Binding:
    """Reads the cases that the manifest `found` names.

    Raises: `InvalidInput` (`BAD_FIELD`, `MISSING_FIELD`, `DATASET_CONFLICT`), and what reading the file raises.
    """
    inline = found.get("cases")
    if inline is not None:
        checks.items(inline, "cases")
    if found.get("dataset") is None:
        if inline is None:
            raise checks.missing("cases", "a list of cases, or a dataset")
        return Binding(cases=checks.items(inline, "cases"), dataset=None)
    dataset = checks.obj(found["dataset"], "dataset")
    checks.known_keys(dataset, FIELDS, "dataset")
    bound = _read(dataset, files)
    if inline is not None and inline != bound.cases:
        raise InvalidInput(
            "DATASET_CONFLICT", "cases differ from the rows of dataset; expected the same or none", field="cases"
        )
    return Binding(cases=bound.cases, dataset=_merged(dataset, bound, head))


def location(dataset: dict[str, Json], files: CaseFiles) -> str:
    """Where the file of `dataset` lies now: our dataset of that id, wherever the store is, or the frozen path."""
    own = files.find(str(dataset["id"])) if dataset.get("id") else None
    if own is not None:
        return own
    if dataset.get("path"):
        return str(Path(str(dataset["path"])).expanduser().absolute())
    raise checks.bad(
        "dataset.id", dataset.get("id"), "the id of a dataset in this store, or dataset.path", "NO_SUCH_DATASET"
    )


def _read(dataset: dict[str, Json], files: CaseFiles) -> BoundFile:
    if dataset.get("id") is not None:
        checks.text(dataset["id"], "dataset.id", most=64)
    if dataset.get("path") is not None:
        checks.text(dataset["path"], "dataset.path")
    if dataset.get("path") is None and dataset.get("id") is None:
        raise checks.missing("dataset.path", "the path of the cases, or dataset.id")
    sha256 = ""
    if dataset.get("sha256") is not None:
        sha256 = manifest.digest(dataset["sha256"], "dataset.sha256")
    elif dataset.get("id") is None:
        raise checks.missing("dataset.sha256", "the SHA-256 of the file")
    try:
        return files.read(location(dataset, files), sha256)
    except DataLoss as error:
        # Whoever submits a digest that the file does not have made a mistake; nothing of ours is lost.
        raise InvalidInput(error.reason, f"dataset: {error.message}", field="dataset.sha256", **error.facts) from None


def _merged(dataset: dict[str, Json], bound: BoundFile, head: dict[str, Json]) -> dict[str, Json]:
    """The submitted fields over those of the dataset's own manifest, when that is about the same bytes."""
    sibling = bound.sibling if bound.sibling is not None and bound.sibling.get("sha256") == bound.sha256 else None
    submitted: dict[str, Json] = {key: value for key, value in dataset.items() if value is not None}
    if sibling is None:
        if submitted.get("selection") == PROVENANCE_SELECTION or "preparation" in submitted:
            raise InvalidInput(
                "DATASET_CONFLICT",
                "dataset claims a verified preparation, but there is no manifest.json beside the file that proves it",
                field="dataset.preparation",
            )
        return submitted | {"path": bound.path, "sha256": bound.sha256}
    own: dict[str, Json] = {key: value for key, value in sibling.items() if key in FIELDS and value is not None}
    for key in ("profile", "seed"):
        if key in own and own[key] != head[key]:
            raise checks.bad(key, head[key], f"{checks.show(own[key])}, as the bound dataset has it", "DATASET_CONFLICT")
    if "preparation" in own:
        for key, value in submitted.items():
            if key not in PLACES and value != own.get(key):
                raise checks.bad(
                    f"dataset.{key}",
                    value,
                    f"{checks.show(own.get(key))}, as the dataset's manifest says",
                    "DATASET_CONFLICT",
                )
    # An abbreviated id becomes the whole one.
    return own | submitted | {"path": bound.path, "sha256": bound.sha256} | ({"id": own["id"]} if "id" in own else {})
