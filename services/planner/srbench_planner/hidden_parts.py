"""Hidden parts of cases, such as tests: stored by SHA-256 apart from the cases, so that they enter no plan or lease."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from srbench_kit import settings
from srbench_kit.blobs import BlobStore
from srbench_kit.errors import DataLoss
from srbench_kit.values import Json

from srbench_planner.benchmark import BenchmarkSpec, Row
from srbench_planner.dataset import Case
from srbench_planner.freezing import hidden_of

FOLDER = "hidden"
PIECE_BYTES = 1 << 20


class HiddenParts:
    """The hidden parts of one store."""

    def __init__(self, store: Path) -> None:
        self._url = settings.objects_url(store)
        self._blobs: BlobStore | None = None

    def keep(self, spec: BenchmarkSpec, rows: Iterable[Row], cases: Iterable[Case]) -> None:
        """Stores the parts of `cases` from a second reading of their source; one row is in memory at a time.

        Raises: `DataLoss` (`FILE_CHANGED`) when the rows do not give the parts that the cases name.
        """
        wanted = {name for case in cases if (name := name_of(case))}
        if spec.hidden is None or not wanted:
            return
        left = set(wanted)
        for row in rows:
            data = hidden_of(spec, row)
            if data is not None and (name := hashlib.sha256(data).hexdigest()) in left:
                self._store().put(data)
                left.discard(name)
            if not left:
                return
        raise DataLoss("FILE_CHANGED", f"the source of {spec.id} no longer holds the tests of {len(left)} cases")

    def put(self, data: bytes) -> str:
        """Stores one part and gives its name."""
        return self._store().put(data)

    def missing(self, cases: Iterable[Mapping[str, Json]]) -> list[str]:
        """The ids of cases whose hidden part is not in this store."""
        named = [(str(case.get("id")), name) for case in cases if (name := name_of(case))]
        return [case_id for case_id, name in named if not self._store().has(name)] if named else []

    def pieces(self, sha256: str) -> Iterator[bytes]:
        """One part, in pieces. Raises: `NotFound` (`NO_SUCH_BLOB`), `DataLoss` (`BLOB_DAMAGED`)."""
        data = self._store().get(sha256)
        for place in range(0, max(len(data), 1), PIECE_BYTES):
            yield data[place : place + PIECE_BYTES]

    def _store(self) -> BlobStore:
        if self._blobs is None:
            self._blobs = BlobStore(self._url, FOLDER)
        return self._blobs


def name_of(case: Mapping[str, Json]) -> str:
    """The SHA-256 of the hidden part of a case; empty when it has none."""
    metadata = case.get("metadata")
    name = metadata.get("hidden_sha256") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""
