"""Frozen datasets in an object store, for planners that share one: put there when frozen, fetched where they are missing.

The manifest is uploaded last, so a dataset that has one is whole.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path

from srbench_kit import durable
from srbench_kit.documents import load_json
from srbench_kit.errors import DataLoss
from srbench_kit.ids import uuid7_hex
from srbench_kit.objects import PATIENCE_S, Objects

from srbench_planner.files import make_private, write_private

PREFIX = "datasets"
CASES, MANIFEST = "cases.jsonl", "manifest.json"
_MANIFEST_PATH = re.compile(rf"{PREFIX}/([0-9a-f]{{64}})/{re.escape(MANIFEST)}\Z")


class RemoteDatasets:
    """The datasets below one URL."""

    def __init__(self, url: str) -> None:
        """Raises: `InvalidInput` (`BAD_OBJECTS_URL`)."""
        self._objects = Objects(url, patience_s=PATIENCE_S)

    def names(self) -> set[str]:
        """The ids of all whole datasets. Raises: `Unreachable`."""
        found = (_MANIFEST_PATH.match(info.path) for info in self._objects.list(PREFIX))
        return {match[1] for match in found if match is not None}

    def keep(self, folder: Path) -> None:
        """Uploads the dataset in `folder`, whose name is its id, unless it is there. Raises: `Unreachable`."""
        if self._objects.info(f"{PREFIX}/{folder.name}/{MANIFEST}") is not None:
            return
        for part in (CASES, MANIFEST):
            self._objects.put(f"{PREFIX}/{folder.name}/{part}", (folder / part).read_bytes())

    def fetch(self, name: str, root: Path) -> None:
        """Puts the dataset `name` below `root`, whole or not at all.

        Raises: `NotFound`, `Unreachable`, `DataLoss` (`DATASET_DAMAGED`) when the cases are not those of the manifest.
        """
        manifest = self._objects.get(f"{PREFIX}/{name}/{MANIFEST}")
        cases = self._objects.get(f"{PREFIX}/{name}/{CASES}")
        info = self._objects.info(f"{PREFIX}/{name}/{MANIFEST}")
        described = load_json(manifest, MANIFEST)
        expected = described.get("sha256") if isinstance(described, dict) else None
        if hashlib.sha256(cases).hexdigest() != expected:
            raise DataLoss("DATASET_DAMAGED", f"dataset {name} in the object store does not match its manifest")
        make_private(root)
        beside = root / f".staging-{uuid7_hex()}"
        beside.mkdir(mode=0o700)
        try:
            write_private(beside / CASES, cases)
            write_private(beside / MANIFEST, manifest)
            if info is not None:
                # The time of a manifest is when the dataset was frozen.
                os.utime(beside / MANIFEST, (info.write_time_s, info.write_time_s))
            durable.sync_folder(beside)
            move_new(beside, root / name)
            durable.sync_folder(root)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def move_new(source: Path, target: Path) -> None:
    """Gives a folder its name; whoever came first stays."""
    try:
        os.rename(source, target)
    except OSError:
        if not target.is_dir():
            raise
