"""The operator's targets and benchmark options, each replaced as a whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping

from srbench_kit import documents
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_planner import checks, targets
from srbench_planner.benchmark_options import frozen_options
from srbench_planner.operator_documents import OPTIONS, TARGETS, Documents, revision_of
from srbench_planner.ports import BenchmarkSpec


def parse(document: Json) -> list[dict[str, Json]]:
    """The canonical targets of a registry document: a list, or an object with `targets`.

    Raises: `InvalidInput` (`BAD_TARGET`, `UNKNOWN_FIELD`, `DUPLICATE_TARGET` and those of `targets.freeze_target`).
    """
    if isinstance(document, dict):
        checks.known_keys(document, ("targets",), "")
        document = document.get("targets")
    if not isinstance(document, list):
        raise InvalidInput("BAD_TARGET", "the document is no list of targets; expected a list or an object with targets")
    parsed = [targets.freeze_target(item, f"targets[{index}]") for index, item in enumerate(document)]
    targets.unique_ids(parsed, "targets")
    return parsed


class TargetRegistry:
    """Reads and replaces the registered targets and the operator's benchmark options."""

    def __init__(self, kept: Documents) -> None:
        self._kept = kept

    async def begin(self) -> None:
        """Called once this planner has the queue."""
        await self._kept.begin()

    def load(self) -> list[dict[str, Json]]:
        """The registered targets in order; none when nothing was registered. Raises: `InvalidInput`, `Unreachable`."""
        return self.load_revision()[0]

    def load_revision(self) -> tuple[list[dict[str, Json]], str]:
        """The registered targets, and the revision that they are. Raises: as `load`."""
        document, revision = self._read(TARGETS)
        return [] if document is None else parse(document), revision

    async def replace(self, document: Json, expected: str = "") -> tuple[list[dict[str, Json]], str]:
        """Makes `document` the registry; the targets and their revision. Nothing changes when any target is invalid.

        Raises: `Conflict` (`REGISTRY_CHANGED`) when `expected` is not the revision in force.
        """
        parsed = parse(document)
        return parsed, await self._write(TARGETS, {"targets": list(parsed)}, expected)

    def benchmark_options(self) -> dict[str, Json]:
        """The operator's benchmark options by benchmark; maybe none. Raises: `InvalidInput`, `Unreachable`."""
        return self.options_revision()[0]

    def options_revision(self) -> tuple[dict[str, Json], str]:
        """The operator's benchmark options, and the revision that they are. Raises: as `benchmark_options`."""
        document, revision = self._read(OPTIONS)
        return {} if document is None else checks.obj(document, OPTIONS), revision

    async def replace_options(
        self, document: Json, specs: Mapping[str, BenchmarkSpec], expected: str = ""
    ) -> tuple[dict[str, Json], str]:
        """Makes `document` the benchmark options; they and their revision. Nothing changes when any is invalid.

        Raises: `InvalidInput` (`BAD_FIELD`, `UNKNOWN_FIELD`), `Conflict` (`REGISTRY_CHANGED`).
        """
        parsed = frozen_options(checks.obj(document, "benchmark_options"), specs)
        return parsed, await self._write(OPTIONS, parsed, expected)

    def _read(self, name: str) -> tuple[Json, str]:
        data = self._kept.read(name)
        return None if data is None else documents.load_json(data, name), revision_of(data)

    async def _write(self, name: str, document: Json, expected: str) -> str:
        data = (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode()
        await self._kept.write(name, data, expected)
        return revision_of(data)
