"""What a report's figures do not say, in sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from srbench_accounting.report import RunFacts

_ALWAYS = (
    "The figures hold for these frozen cases under these parameters; they do not rank the models in general.",
    "Whoever tunes a router on these cases needs others, never looked at, to confirm what it gains.",
    "Costs are tokens at the declared prices; they are neither an invoice nor the price of hardware.",
    "Accuracy intervals cover the choice of cases alone: not sampling noise of the models, nor changes at a provider.",
    "A reservation is the most that a call can cost; what stays reserved is not spent.",
)


def limitations(facts: RunFacts, benchmarks: frozenset[str], *, costs_known: bool) -> tuple[str, ...]:
    """Every sentence that applies, the plan's own ones last."""
    return (*_ALWAYS, *_conditional(facts, benchmarks, costs_known), *facts.plan_limitations)


def _conditional(facts: RunFacts, benchmarks: frozenset[str], costs_known: bool) -> Iterator[str]:
    if facts.mode == "replay":
        yield "This is a replay: saved answers put together by simulated routing; nothing was generated for it."
    if facts.mode == "preview":
        yield "This is a preview: it shows which model a router would choose; no answer was generated or graded."
    if facts.mode == "live" and not costs_known:
        yield "The cost of some calls is unknown; totals that need them are null, and null proves no saving."
    if facts.status != "completed":
        yield f"The run is {facts.status}; cells without an answer count as not right."
    if facts.merged:
        yield (
            f"The figures merge the run with {len(facts.child_attempts)} recoveries: in each cell the first attempt with "
            "an answer counts, and the spend of all attempts does; cells that needed several had more than one chance."
        )
    if facts.is_recovery:
        yield "This run made new attempts at some cells of another run; on its own it is no score of the whole set."
    if facts.cost_policy == "capability_only":
        yield "The run enforced no budget and asked for no prices; its costs are for information."
    if facts.cost_policy == "require_priced" and facts.mode == "live":
        yield "Only priced models took part; a model without a declared price cannot appear."
    if facts.accounting_correction is not None:
        yield "Usage and costs were corrected after the run from its saved streams; the originals are kept."
    if facts.runner is None:
        yield "Nobody recorded which program and machine made this run."
    if facts.custom_subset:
        yield "The cases are a subset of the benchmark's profile; the figures do not compare with those of the whole."
    if "gpqa-diamond" in benchmarks:
        yield "GPQA Diamond is public and may have been trained on; its texts must not be published again."
