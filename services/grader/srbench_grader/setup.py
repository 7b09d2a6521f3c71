"""Says what benchmarks need on the grader's machine and what of it is missing. Blocking; makes no model call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from srbench.v1 import operations_service_pb2 as operations_pb
from srbench.v1 import setup_pb2 as pb
from srbench_kit.errors import SrBenchError
from srbench_kit.operations import ok, warning
from srbench_kit.values import Json, object_of

from srbench_grader import step_targets, tau3
from srbench_grader.sandbox import libraries, selection
from srbench_grader.sandbox.values import Sandbox

LIBRARIES_REMEDY = "sr-bench setup --benchmark scicode --install, or --build-sandbox for Docker"


def inspect(request: pb.InspectSetupRequest) -> pb.InspectSetupResponse:
    """The items of the benchmarks named, in their order."""
    every = object_of(request.options)
    items: list[pb.SetupItem] = []
    for benchmark in request.benchmarks:
        given = every.get(benchmark)
        options = given if isinstance(given, dict) else {}
        items += [look(benchmark, options) for look in CHECKS.get(benchmark, ())]
    return pb.InspectSetupResponse(items=items)


def sandbox(_request: operations_pb.InspectProcessRequest) -> list[operations_pb.InspectionCheck]:
    """What a deployment's inspection shows of the sandbox: without one, only benchmarks that run programs suffer."""
    try:
        chosen = selection.choose({})
    except SrBenchError as error:
        return [warning("sandbox", error.message, selection.REMEDY)]
    return [ok("sandbox", f"programs run in {chosen.identity}")]


def _sandbox(benchmark: str, options: Mapping[str, Json]) -> pb.SetupItem:
    try:
        sandbox = selection.choose(options)
    except SrBenchError as error:
        return pb.SetupItem(benchmark=benchmark, item="sandbox", detail=error.message, remedy=selection.REMEDY)
    return pb.SetupItem(benchmark=benchmark, item="sandbox", present=True, detail=sandbox.identity)


def _tau3(benchmark: str, _options: Mapping[str, Json]) -> pb.SetupItem:
    item = pb.SetupItem(benchmark=benchmark, item="evaluator")
    try:
        item.detail, item.present = tau3.inspect(), True
    except SrBenchError as error:
        item.detail, item.remedy = error.message, tau3.REMEDY
    return item


def _libraries(benchmark: str, options: Mapping[str, Json]) -> pb.SetupItem:
    """What programs may import. A sandbox that is missing is said once, by its own item."""
    item = pb.SetupItem(benchmark=benchmark, item="libraries")
    try:
        sandbox = selection.choose(options)
        found = _listed(sandbox.identity, sandbox)
    except SrBenchError as error:
        item.detail, item.remedy = error.message, LIBRARIES_REMEDY
        return item
    shown = ("numpy", "scipy", "sympy", "h5py", "matplotlib")
    item.present, item.detail = True, ", ".join(f"{name} {found[name]}" for name in shown if name in found)
    return item


_known: dict[str, Mapping[str, str]] = {}


def _listed(identity: str, sandbox: Sandbox) -> Mapping[str, str]:
    if identity not in _known:
        _known[identity] = libraries.listed(sandbox)
    return _known[identity]


def _test_data(benchmark: str, options: Mapping[str, Json]) -> pb.SetupItem:
    item = pb.SetupItem(benchmark=benchmark, item="test_data")
    try:
        file = step_targets.verified(options)
    except SrBenchError as error:
        item.detail, item.remedy = error.message, step_targets.REMEDY
        return item
    item.present, item.detail = True, f"{file}, SHA-256 {step_targets.file_sha256(file)}"
    return item


Check = Callable[[str, Mapping[str, Json]], pb.SetupItem]
CHECKS: Mapping[str, tuple[Check, ...]] = {
    "livecodebench": (_sandbox,),
    "scicode": (_sandbox, _libraries, _test_data),
    "tau3": (_tau3,),
}
