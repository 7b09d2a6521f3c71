"""The store of frozen datasets: `datasets/<id>/{cases.jsonl,manifest.json}` below the store, never changed once there."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TypeAlias

import orjson
from srbench_kit import durable, settings
from srbench_kit.documents import load_json
from srbench_kit.errors import DataLoss, Exhausted, InvalidInput, NotFound, SrBenchError
from srbench_kit.ids import uuid7_hex

from srbench_planner.benchmark import Profile
from srbench_planner.case_file import CaseIndex, Entry, build_index, read_at, read_cases
from srbench_planner.dataset import Case, Dataset, SourceRecord, case_line, describe, from_manifest, manifest_json
from srbench_planner.files import make_private, open_regular, stamp, write_private
from srbench_planner.public_view import PublicView, public_view
from srbench_planner.remote_datasets import RemoteDatasets, move_new

MAX_MANIFEST_BYTES = 2 * 1024**2
MAX_PAGE_BYTES = 8 * 1024**2
MAX_QUERY = 200
DEFAULT_PAGE, MAX_PAGE = 25, 100
_KEPT_INDEXES = 64
_ID = re.compile(r"[0-9a-f]{64}\Z")
_PREFIX = re.compile(r"[0-9a-f]{8,64}\Z")
_log = logging.getLogger(__name__)

# Within the store `list` is a method.
Cases: TypeAlias = list[Case]
Names: TypeAlias = list[str]
Entries: TypeAlias = list[Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePage:
    """Some cases of a dataset, without answers.

    Attributes:
        total: cases that fit the filter.
        dataset_total: cases of the dataset.
        next_cursor: offset of the next page; `None` at the end.
        limit: the page size used.
        categories: cases by stratum, of the benchmark asked for.
    """

    cases: tuple[PublicView, ...]
    total: int
    dataset_total: int
    next_cursor: int | None
    limit: int
    categories: Mapping[str, int]


class DatasetStore:
    """Frozen datasets below one directory. Safe to use from several threads; every method touches the disk.

    Reads datasets of the released implementation as well as its own.
    """

    def __init__(self, store: Path) -> None:
        """`store` is the planner's store; datasets lie in its folder `datasets`, and with `SR_BENCH_OBJECTS_URL` in the
        object store, too, where other planners find them."""
        self.root = store / "datasets"
        url = settings.objects_url(store)
        self._remote = None if url == str(store) else RemoteDatasets(url)
        self._lock = Lock()
        self._indexes: OrderedDict[str, CaseIndex] = OrderedDict()
        self._manifests: dict[str, tuple[tuple[int, int, int, int], Dataset]] = {}

    def list(self) -> list[Dataset]:
        """All readable datasets, newest first. A damaged one is left out and logged; `get` says what is wrong with it."""
        found: list[Dataset] = []
        for name in self._names():
            try:
                found.append(self._read(name))
            except SrBenchError as error:
                _log.warning("dataset %s is left out: %s", name, error)
        return sorted(found, key=lambda dataset: (-dataset.create_time_s, dataset.id))

    def get(self, dataset_id: str) -> Dataset:
        """The dataset with this id, or with the one id that begins so (at least eight digits).

        Raises: `NotFound` (`NO_SUCH_DATASET`), `InvalidInput` (`AMBIGUOUS_DATASET`), `DataLoss` (`BAD_MANIFEST`).
        """
        whole = _ID.match(dataset_id) is not None and (self.root / dataset_id).is_dir()
        known = [dataset_id] if whole else self._names()
        names = [name for name in known if name.startswith(dataset_id)] if _PREFIX.match(dataset_id) else []
        if not names:
            raise NotFound("NO_SUCH_DATASET", f"there is no dataset {dataset_id!r}", value=dataset_id)
        if len(names) > 1:
            raise InvalidInput(
                "AMBIGUOUS_DATASET",
                f"{len(names)} datasets begin with {dataset_id}; give more digits",
                field="id",
                value=dataset_id,
            )
        return self._read(names[0])

    def find(self, sha256: str) -> Dataset | None:
        """A dataset whose `cases.jsonl` has this SHA-256, or `None`; of several the one with the lowest id."""
        found = [dataset for dataset in self.list() if dataset.sha256 == sha256]
        return min(found, key=lambda dataset: dataset.id) if found else None

    def cases(self, dataset: Dataset) -> Cases:
        """All cases in frozen order, answers included, verified against the SHA-256.

        Raises: `DataLoss` (`DATASET_DAMAGED`, `BAD_CASES`).
        """
        cases = read_cases(Path(dataset.path), dataset.sha256)
        if len(cases) != dataset.case_count:
            raise DataLoss("BAD_CASES", f"{dataset.path} holds {len(cases)} cases; expected {dataset.case_count}")
        return cases

    def index(self, dataset: Dataset) -> CaseIndex:
        """The index of a dataset's cases: one verified scan, then kept while the file stays as it is."""
        path = Path(dataset.path)
        with self._lock:
            kept = self._indexes.get(dataset.id)
        if kept is not None and path.exists() and stamp(path.stat()) == kept.state:
            return kept
        built = build_index(path, dataset.sha256)
        with self._lock:
            self._indexes[dataset.id] = built
            self._indexes.move_to_end(dataset.id)
            while len(self._indexes) > _KEPT_INDEXES:
                self._indexes.popitem(last=False)
        return built

    def public_cases(
        self,
        dataset: Dataset,
        *,
        cursor: int = 0,
        limit: int = 0,
        benchmark: str = "",
        category: str = "",
        query: str = "",
        case_id: str = "",
    ) -> CasePage:
        """A page of cases without answers.

        Raises: `InvalidInput` (`BAD_CURSOR`, `BAD_PAGE_SIZE`, `BAD_QUERY`).
        """
        limit = _page_size(limit)
        if cursor < 0:
            raise InvalidInput("BAD_CURSOR", f"cursor is {cursor}; expected 0 or more", field="cursor", value=cursor)
        if len(query) > MAX_QUERY:
            raise InvalidInput(
                "BAD_QUERY", f"q has {len(query)} characters; expected at most {MAX_QUERY}", field="q", value=len(query)
            )
        index, path = self.index(dataset), Path(dataset.path)
        of_benchmark = [entry for entry in index.entries if benchmark in ("", entry.benchmark)]
        fitting = [entry for entry in of_benchmark if category in ("", entry.category) and case_id in ("", entry.id)]
        if query.strip():
            fitting = list(_holding(path, fitting, query.strip().lower()))
        shown = _bounded(public_view(case) for case in read_at(path, fitting[cursor : cursor + limit]))
        following = cursor + len(shown)
        return CasePage(
            cases=shown,
            total=len(fitting),
            dataset_total=len(index.entries),
            next_cursor=following if following < len(fitting) else None,
            limit=limit,
            categories=Counter(entry.category for entry in of_benchmark),
        )

    def publish(
        self,
        cases: Iterable[Case],
        *,
        profile: Profile,
        seed: int,
        sources: Mapping[str, SourceRecord],
        custom_subset: bool,
        planned: Mapping[str, int],
    ) -> Dataset:
        """Freezes `cases` and returns the dataset; one with the same identity is returned as it lies there.

        Both files appear together, whole and durable, or not at all. `planned` are the profile's full counts.
        Raises: `DataLoss` (`DATASET_DAMAGED`) when files of the same name hold something else; `Exhausted` (`NO_SPACE`).
        """
        lines, counts, total = [], dict[str, int](), hashlib.sha256()
        for case in cases:
            line = case_line(case)
            total.update(line)
            lines.append(line)
            counts[str(case["benchmark"])] = counts.get(str(case["benchmark"]), 0) + 1
        dataset = describe(
            cases_sha256=total.hexdigest(),
            counts=counts,
            planned=planned,
            profile=profile,
            seed=seed,
            sources=sources,
            custom_subset=custom_subset,
        )
        try:
            self._write(dataset, b"".join(lines))
        except OSError as error:
            # Imported here: it brings SQLAlchemy along, which preparing processes need for nothing else.
            from srbench_kit.db import storage_error

            if isinstance(storage_error(error), Exhausted):
                raise Exhausted("NO_SPACE", "the disk is full while the dataset is frozen; free some space") from error
            raise
        if self._remote is not None:
            self._remote.keep(self.root / dataset.id)
        stored = self._read(dataset.id)
        self.index(stored)
        return stored

    def _write(self, dataset: Dataset, content: bytes) -> None:
        target = self.root / dataset.id
        if target.is_dir():
            return
        make_private(self.root)
        beside = self.root / f".staging-{uuid7_hex()}"
        beside.mkdir(mode=0o700)
        try:
            write_private(beside / "cases.jsonl", content)
            manifest = orjson.dumps(manifest_json(dataset), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
            write_private(beside / "manifest.json", manifest)
            durable.sync_folder(beside)
            move_new(beside, target)
            durable.sync_folder(self.root)
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def _names(self) -> Names:
        """The ids of all datasets, here and in the object store."""
        entries = os.scandir(self.root) if self.root.is_dir() else ()
        found = {entry.name for entry in entries if _ID.match(entry.name) and entry.is_dir(follow_symlinks=False)}
        return sorted(found if self._remote is None else found | self._remote.names())

    def _read(self, name: str) -> Dataset:
        if self._remote is not None and not (self.root / name).is_dir():
            self._remote.fetch(name, self.root)
        path = self.root / name / "manifest.json"
        with open_regular(path, MAX_MANIFEST_BYTES) as file:
            found = os.fstat(file.fileno())
            kept = self._manifests.get(name)
            if kept is not None and kept[0] == stamp(found):
                return kept[1]
            dataset = from_manifest(load_json(file.read(), f"{path}"), f"{path}")
        if dataset.id != name:
            raise DataLoss("BAD_MANIFEST", f"{path}: id is {dataset.id}; expected the folder's name {name}", path=path)
        cases = self.root / name / "cases.jsonl"
        dataset = replace(dataset, path=str(cases), manifest_path=str(path), create_time_s=found.st_mtime)
        if not dataset.counts:
            dataset = replace(dataset, counts=self.index(dataset).counts)
        if tuple(sorted(dataset.counts)) != dataset.benchmarks or sum(dataset.counts.values()) != dataset.case_count:
            raise DataLoss("BAD_MANIFEST", f"{path}: counts do not fit benchmarks and case_count", path=path)
        self._manifests[name] = (stamp(found), dataset)
        return dataset


def _page_size(limit: int) -> int:
    if limit < 0:
        raise InvalidInput("BAD_PAGE_SIZE", f"limit is {limit}; expected 1 to {MAX_PAGE}", field="limit", value=limit)
    return min(limit or DEFAULT_PAGE, MAX_PAGE)


def _holding(path: Path, entries: Entries, needle: str) -> Iterator[Entry]:
    for entry, case in zip(entries, read_at(path, entries), strict=True):
        if public_view(case).holds(needle):
            yield entry


def _bounded(views: Iterable[PublicView]) -> tuple[PublicView, ...]:
    """As many views as fit a page, at least one."""
    shown: list[PublicView] = []
    size = 0
    for view in views:
        size += view.size
        if shown and size > MAX_PAGE_BYTES:
            break
        shown.append(view)
    return tuple(shown)
