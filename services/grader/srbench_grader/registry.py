"""Which graders there are: ours, and those that other packages add through the entry point group `srbench.graders`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points

from srbench_kit.errors import InvalidInput

from srbench_grader import choice, code, grid, harness, judge, scicode, tau3
from srbench_grader.grading import Grader

GROUP = "srbench.graders"
BUILT_IN: tuple[Grader, ...] = (
    choice.GRADER,
    grid.GRADER,
    judge.GRADER,
    code.GRADER,
    scicode.GRADER,
    harness.GRADER,
    tau3.GRADER,
)


def load_graders(points: Iterable[EntryPoint] | None = None) -> Mapping[str, Grader]:
    """All graders by name. An entry point names a `Grader` or a function without arguments that gives one.

    Raises: `InvalidInput` (`BAD_GRADER_PLUGIN`, `DUPLICATE_GRADER`).
    """
    graders = {grader.name: grader for grader in BUILT_IN}
    for point in entry_points(group=GROUP) if points is None else points:
        grader = _load(point)
        if grader.name in graders:
            raise InvalidInput(
                "DUPLICATE_GRADER", f"the grader {grader.name!r} of {point.value} exists already", value=grader.name
            )
        graders[grader.name] = grader
    return graders


def _load(point: EntryPoint) -> Grader:
    try:
        loaded = point.load()
        grader = loaded if isinstance(loaded, Grader) else loaded()
    except (ImportError, AttributeError, TypeError) as error:
        raise InvalidInput(
            "BAD_GRADER_PLUGIN", f"the grader plugin {point.name} cannot be loaded: {error}", value=point.value
        ) from error
    if not isinstance(grader, Grader) or grader.name != point.name:
        raise InvalidInput(
            "BAD_GRADER_PLUGIN",
            f"{point.value} gives no Grader named {point.name!r}, the name of its entry point",
            value=point.value,
        )
    return grader
