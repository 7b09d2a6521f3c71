"""What a report's figures do not say, in sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from srbench_kit.saying import Saying

if TYPE_CHECKING:
    from srbench_accounting.report import RunFacts

_ALWAYS = (
    Saying(
        "SCOPE", "The figures hold for these frozen cases under these parameters; they do not rank the models in general."
    ),
    Saying(
        "NEEDS_HOLDOUT", "Whoever tunes a router on these cases needs others, never looked at, to confirm what it gains."
    ),
    Saying(
        "COSTS_AT_PRICES", "Costs are tokens at the declared prices; they are neither an invoice nor the price of hardware."
    ),
    Saying(
        "INTERVALS_COVER_CASES",
        "Accuracy intervals cover the choice of cases alone: not sampling noise of the models, nor changes at a provider.",
    ),
    Saying("RESERVATIONS", "A reservation is the most that a call can cost; what stays reserved is not spent."),
)


def limitations(
    facts: RunFacts, benchmarks: frozenset[str], *, call_costs_known: bool, every_cell_asked: bool
) -> tuple[str, ...]:
    """Every sentence that applies, the plan's own ones last.

    Args:
        call_costs_known: whether the cost of each call that was accepted is known.
        every_cell_asked: whether each planned cell has a call that was accepted.
    """
    costs = _cost_gaps(call_costs_known, every_cell_asked) if facts.mode == "live" else ()
    return (*_ALWAYS, *costs, *_conditional(facts, benchmarks), *facts.plan_limitations)


def _cost_gaps(call_costs_known: bool, every_cell_asked: bool) -> Iterator[str]:
    if not call_costs_known:
        yield Saying(
            "COSTS_UNKNOWN", "The cost of some calls is unknown; totals that need them are null, and null proves no saving."
        )
    if not every_cell_asked:
        yield Saying(
            "CELLS_WITHOUT_CALL",
            "Some cells have no call that a model accepted; total costs and tokens over all cells are null without them.",
        )


def _conditional(facts: RunFacts, benchmarks: frozenset[str]) -> Iterator[str]:
    if facts.mode == "replay":
        yield Saying(
            "REPLAY", "This is a replay: saved answers put together by simulated routing; nothing was generated for it."
        )
    if facts.mode == "preview":
        yield Saying(
            "PREVIEW", "This is a preview: it shows which model a router would choose; no answer was generated or graded."
        )
    if facts.status != "completed":
        text = f"The run is {facts.status}; cells without an answer count as not right."
        yield Saying("NOT_COMPLETED", text, status=facts.status)
    if facts.merged:
        count = len(facts.child_attempts)
        recoveries = f"{count} {'recovery' if count == 1 else 'recoveries'}"
        yield Saying(
            "MERGED",
            f"The figures merge the run with {recoveries}: in each cell the first attempt with an answer counts, and "
            "the spend of all attempts does; cells that needed several had more than one chance.",
            count=count,
        )
    if facts.is_recovery:
        yield Saying(
            "RECOVERY",
            "This run made new attempts at some cells of another run; on its own it is no score of the whole set.",
        )
    if facts.cost_policy == "capability_only":
        yield Saying("UNPRICED", "The run enforced no budget and asked for no prices; its costs are for information.")
    if facts.cost_policy == "require_priced" and facts.mode == "live":
        yield Saying("PRICED_ONLY", "Only priced models took part; a model without a declared price cannot appear.")
    if facts.accounting_correction is not None:
        yield Saying(
            "CORRECTED", "Usage and costs were corrected after the run from its saved streams; the originals are kept."
        )
    if facts.runner is None:
        yield Saying("RUNNER_UNKNOWN", "Nobody recorded which program and machine made this run.")
    if facts.custom_subset:
        yield Saying(
            "SUBSET",
            "The cases are a subset of the benchmark's profile; the figures do not compare with those of the whole.",
        )
    if "gpqa-diamond" in benchmarks:
        yield Saying(
            "GPQA_PUBLIC", "GPQA Diamond is public and may have been trained on; its texts must not be published again."
        )
