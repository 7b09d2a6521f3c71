"""The files a plan may bind: datasets of this store by id, and case files by path and digest."""

from __future__ import annotations

from pathlib import Path

from srbench_kit.documents import load_json, load_yaml
from srbench_kit.errors import InvalidInput, NotFound
from srbench_kit.values import Json

from srbench_planner.case_file import read_cases
from srbench_planner.datasets import MAX_MANIFEST_BYTES, DatasetStore
from srbench_planner.files import MAX_ROWS, open_regular, sha256_of, too_many_rows
from srbench_planner.ports import BoundFile

MAX_DOCUMENT_BYTES = 256 * 1024 * 1024


class BoundFiles:
    """Implements `ports.CaseFiles` over the disk."""

    def __init__(self, datasets: DatasetStore) -> None:
        self._datasets = datasets

    def find(self, dataset_id: str) -> str | None:
        """See `CaseFiles.find`."""
        try:
            return self._datasets.get(dataset_id).path
        except NotFound:
            return None

    def read(self, path: str, sha256: str) -> BoundFile:
        """See `CaseFiles.read`. `.jsonl` is read row by row, `.json`, `.yaml` and `.yml` as one document."""
        place = Path(path)
        actual = sha256_of(place)
        if sha256 and actual != sha256:
            raise InvalidInput(
                "DATASET_CHANGED",
                f"dataset.sha256 is {sha256}; the file {place.name} has {actual}",
                field="dataset.sha256",
                value=sha256,
            )
        cases: list[Json] = list(read_cases(place, actual)) if place.suffix == ".jsonl" else _document(place)
        return BoundFile(path=str(place), sha256=actual, cases=cases, sibling=_sibling(place))


def _document(path: Path) -> list[Json]:
    with open_regular(path, MAX_DOCUMENT_BYTES) as file:
        data = file.read()
    found = (load_yaml if path.suffix in (".yaml", ".yml") else load_json)(data, path.name)
    cases = found.get("cases") if isinstance(found, dict) else found
    if not isinstance(cases, list):
        raise InvalidInput(
            "BAD_CASES", f"{path.name} holds no list of cases and no object with `cases`", field="dataset.path"
        )
    if len(cases) > MAX_ROWS:
        raise too_many_rows(path.name)
    return cases


def _sibling(path: Path) -> dict[str, Json] | None:
    """The manifest beside a dataset's cases; anything else of that name is none."""
    beside = path.parent / "manifest.json"
    if path.name != "cases.jsonl" or not beside.is_file() or beside.is_symlink():
        return None
    with open_regular(beside, MAX_MANIFEST_BYTES) as file:
        found = load_json(file.read(), str(beside))
    return found if isinstance(found, dict) else None
