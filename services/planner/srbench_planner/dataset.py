"""What a frozen dataset is, and how it gets its name. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from srbench_kit.canonical import canonical_bytes, digest
from srbench_kit.errors import DataLoss, InvalidInput
from srbench_kit.values import Json

from srbench_planner.benchmark import DEFAULT_SEED, PROTOCOL, Profile, split_of
from srbench_planner.selection import SELECTION, check_profile

# A case as it is frozen; its fields are those of the published protocol.
Case: TypeAlias = "dict[str, Json]"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that cases were made from: its name within the source and its SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """Where a benchmark's cases come from.

    Attributes:
        url: the source's page, or `local-import`.
        revision_verification: how `revision` was verified; a label, no part of a dataset's identity.
        normalizer: version of the code that made cases of rows.
    """

    url: str
    revision: str
    files: tuple[SourceFile, ...]
    revision_verification: str
    license_url: str = ""
    access_note: str = ""
    normalizer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A frozen dataset without its cases.

    Attributes:
        id: digest of what makes it; the same wherever it lies.
        sha256: SHA-256 of `cases.jsonl`.
        counts: cases by benchmark.
        sources: records by benchmark.
        preparation: provenance that the released implementation may have written; kept as it is.
        path: where `cases.jsonl` lies now; empty before it is stored.
        create_time_s: when it was stored, in seconds since 1970; 0 before.
    """

    id: str
    name: str
    sha256: str
    case_count: int
    profile: Profile
    custom_subset: bool
    benchmarks: tuple[str, ...]
    sources: Mapping[str, SourceRecord]
    seed: int
    counts: Mapping[str, int]
    selection: str = SELECTION
    version: str = PROTOCOL
    preparation: Json = None
    path: str = ""
    manifest_path: str = ""
    create_time_s: float = 0

    @property
    def split(self) -> str:
        """`dev` or `holdout`."""
        return split_of(self.profile)


def case_line(case: Case) -> bytes:
    """The line of one case in `cases.jsonl`."""
    return canonical_bytes(case) + b"\n"


def describe(
    *,
    cases_sha256: str,
    counts: Mapping[str, int],
    planned: Mapping[str, int],
    profile: Profile,
    seed: int,
    sources: Mapping[str, SourceRecord],
    custom_subset: bool,
) -> Dataset:
    """The dataset that these facts make. `planned` are the full counts of the profile, for the name of a custom subset."""
    benchmarks = tuple(sorted(counts))
    total = sum(counts.values())
    name = f"{'+'.join(benchmarks)}/{profile}"
    if custom_subset:
        name += f" (custom subset: {total} of {sum(planned.values())} cases)"
    dataset = Dataset(
        id="",
        name=name,
        sha256=cases_sha256,
        case_count=total,
        profile=profile,
        custom_subset=custom_subset,
        benchmarks=benchmarks,
        sources={benchmark: sources[benchmark] for benchmark in benchmarks},
        seed=seed,
        counts=dict(counts),
    )
    return replace(dataset, id=identity(dataset))


def identity(dataset: Dataset) -> str:
    """The id of a dataset: the digest of its cases, of what they were made from and of how they were chosen.

    Labels are left out: where the bytes were fetched, how the revision was verified, notes on access. The same bytes
    imported in another way are the same dataset.
    """
    sources: dict[str, Json] = {
        benchmark: {
            "revision": record.revision,
            "files": [{"name": file.name, "sha256": file.sha256} for file in record.files],
            "normalizer": record.normalizer,
        }
        for benchmark, record in dataset.sources.items()
    }
    return digest(_identity_object(dataset, sources))


def released_identity(dataset: Dataset) -> str:
    """The id that the released implementation gives: it takes the whole source records in."""
    return digest(_identity_object(dataset, {name: _source_json(record) for name, record in dataset.sources.items()}))


def _identity_object(dataset: Dataset, sources: dict[str, Json]) -> dict[str, Json]:
    found: dict[str, Json] = {
        "cases_sha256": dataset.sha256,
        "sources": sources,
        "profile": dataset.profile,
        "seed": dataset.seed,
        "custom_subset": dataset.custom_subset,
        "selection": dataset.selection,
    }
    if dataset.preparation is not None:
        found["preparation"] = dataset.preparation
    return found


def _source_json(record: SourceRecord) -> dict[str, Json]:
    found: dict[str, Json] = {
        "url": record.url,
        "revision": record.revision,
        "files": [{"name": file.name, "sha256": file.sha256} for file in record.files],
        "revision_verification": record.revision_verification,
        "license_url": record.license_url,
        "access_note": record.access_note,
        "normalizer": record.normalizer,
    }
    # The released implementation writes `license_url` only where it has one, and hashes what it writes.
    if not record.license_url:
        del found["license_url"]
    return found


def manifest_json(dataset: Dataset) -> dict[str, Json]:
    """The content of `manifest.json`. `path` is relative to it, so that a store can be moved."""
    found: dict[str, Json] = {
        "version": dataset.version,
        "id": dataset.id,
        "name": dataset.name,
        "path": "cases.jsonl",
        "sha256": dataset.sha256,
        "case_count": dataset.case_count,
        "counts": dict(dataset.counts),
        "profile": dataset.profile,
        "custom_subset": dataset.custom_subset,
        "benchmarks": list(dataset.benchmarks),
        "sources": {benchmark: _source_json(record) for benchmark, record in dataset.sources.items()},
        "seed": dataset.seed,
        "selection": dataset.selection,
        "split": dataset.split,
    }
    if dataset.preparation is not None:
        found["preparation"] = dataset.preparation
    return found


def from_manifest(manifest: Json, where: str) -> Dataset:
    """The dataset that a `manifest.json` describes, ours or the released implementation's.

    `counts` is empty when the manifest has none. Raises: `DataLoss` (`BAD_MANIFEST`).
    """
    if not isinstance(manifest, dict):
        raise _bad(where, "it is no JSON object")
    try:
        sources = manifest["sources"]
        if not isinstance(sources, dict):
            raise _bad(where, "sources is no object")
        dataset = Dataset(
            id=_text(manifest, "id"),
            name=_text(manifest, "name"),
            sha256=_text(manifest, "sha256"),
            case_count=_integer(manifest, "case_count"),
            profile=check_profile(_text(manifest, "profile")),
            custom_subset=bool(manifest.get("custom_subset", False)),
            benchmarks=tuple(sorted(str(name) for name in cast("list[Json]", manifest["benchmarks"]))),
            sources={benchmark: _source(record, where) for benchmark, record in sources.items()},
            seed=_integer(manifest, "seed") if "seed" in manifest else DEFAULT_SEED,
            selection=_text(manifest, "selection"),
            version=_text(manifest, "version"),
            preparation=manifest.get("preparation"),
            counts={name: _integer(cast("dict[str, Json]", manifest["counts"]), name) for name in _counts(manifest)},
        )
    except (KeyError, TypeError) as error:
        raise _bad(where, f"{error} is missing or malformed") from None
    except InvalidInput as error:
        raise _bad(where, error.message) from None
    if dataset.version != PROTOCOL:
        raise _bad(where, f"version is {dataset.version!r}; expected {PROTOCOL!r}")
    if dataset.id not in (identity(dataset), released_identity(dataset)):
        raise _bad(where, "id does not match the content")
    return dataset


def _counts(manifest: dict[str, Json]) -> Iterable[str]:
    counts = manifest.get("counts")
    return list(counts) if isinstance(counts, dict) else []


def _source(record: Json, where: str) -> SourceRecord:
    if not isinstance(record, dict) or not isinstance(record.get("files"), list):
        raise _bad(where, "a source is no object with files")
    files = cast("list[dict[str, Json]]", record["files"])
    return SourceRecord(
        url=_text(record, "url"),
        revision=_text(record, "revision"),
        files=tuple(SourceFile(_text(file, "name"), _text(file, "sha256")) for file in files),
        revision_verification=_text(record, "revision_verification"),
        license_url=str(record.get("license_url") or ""),
        access_note=str(record.get("access_note") or ""),
        normalizer=str(record.get("normalizer") or ""),
    )


def _text(found: dict[str, Json], key: str) -> str:
    value = found[key]
    if not isinstance(value, str):
        raise TypeError(repr(key))
    return value


def _integer(found: dict[str, Json], key: str) -> int:
    value = found[key]
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(repr(key))
    return value


def _bad(where: str, problem: str) -> DataLoss:
    return DataLoss("BAD_MANIFEST", f"{where}: {problem}", path=where)
