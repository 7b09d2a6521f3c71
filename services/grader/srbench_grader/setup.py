"""Says what benchmarks need on the grader's machine and what of it is missing. Blocking; makes no model call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from srbench.v1 import setup_pb2 as pb
from srbench_kit.errors import SrBenchError
from srbench_kit.values import Json, object_of

from srbench_grader.sandbox import selection


def inspect(request: pb.InspectSetupRequest) -> pb.InspectSetupResponse:
    """The items of the benchmarks named, in their order."""
    every = object_of(request.options)
    items: list[pb.SetupItem] = []
    for benchmark in request.benchmarks:
        given = every.get(benchmark)
        options = given if isinstance(given, dict) else {}
        items += [look(benchmark, options) for look in CHECKS.get(benchmark, ())]
    return pb.InspectSetupResponse(items=items)


def _sandbox(benchmark: str, options: Mapping[str, Json]) -> pb.SetupItem:
    try:
        sandbox = selection.choose(options)
    except SrBenchError as error:
        return pb.SetupItem(benchmark=benchmark, item="sandbox", detail=error.message, remedy=selection.REMEDY)
    return pb.SetupItem(benchmark=benchmark, item="sandbox", present=True, detail=sandbox.identity)


Check = Callable[[str, Mapping[str, Json]], pb.SetupItem]
CHECKS: Mapping[str, tuple[Check, ...]] = {"livecodebench": (_sandbox,)}
