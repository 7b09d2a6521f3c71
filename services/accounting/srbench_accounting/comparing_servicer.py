"""The RPCs about comparisons: figures, questions one by one, and what can be compared at all."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Protocol, TypeAlias

from grpc import aio
from srbench.v1 import comparison_pb2 as pb
from srbench.v1 import plan_pb2
from srbench.v1 import planner_service_pb2 as planner_pb
from srbench_kit import pages
from srbench_kit.auth import Actor, actor

from srbench_accounting import comparison_convert, comparison_options, figures, pairing
from srbench_accounting.comparable import (
    Contender,
    Difference,
    check_pair,
    content_difference,
    differences,
    faults,
    refusal,
)
from srbench_accounting.compare import same_cases
from srbench_accounting.comparing import check_request, compare_all
from srbench_accounting.figures import Side, Sides
from srbench_accounting.store import Store

Context: TypeAlias = "aio.ServicerContext[Any, Any]"
OPTIONS, MAX_OPTIONS = 10, 25
# Partners are looked for among so many of the newest runs.
PARTNERS = 500
SCAN_S = 5.0
MAX_CASE_SETS = 8


class Plans(Protocol):
    """What comparisons ask of the planner. Raises: `NotFound`, `Unreachable`."""

    async def live_runs(self, actor: Actor, page_token: str, page_size: int) -> planner_pb.ListRunsResponse:
        """A page of the live runs that `actor` may see."""
        ...

    def sealed_cases(self, case_sha256: str, *, digests_only: bool) -> Any:
        """The cases of that digest, in batches."""
        ...


class ComparingServicer:
    """Compares runs."""

    def __init__(self, store: Store, planner: Plans, sides: Sides) -> None:
        self._store = store
        self._plans = planner
        self._sides = sides
        self._digests: OrderedDict[str, dict[str, str]] = OrderedDict()

    async def CompareRuns(self, request: pb.CompareRunsRequest, context: Context) -> pb.ComparisonReport:
        margin = request.margin if request.HasField("margin") else None
        check_request(request.baseline_run_id, request.candidate_run_ids, margin)
        load = self._sides.merged if request.lineage else self._sides.side
        baseline, *candidates = [await load(run_id) for run_id in (request.baseline_run_id, *request.candidate_run_ids)]
        for candidate in candidates:
            await self._check(baseline, candidate)

        def work() -> pb.ComparisonReport:
            sides = [candidate.figures for candidate in candidates]
            made = comparison_convert.comparison(
                compare_all(baseline.figures, sides, margin, figures_only=request.figures_only)
            )
            every = (baseline.figures, *sides)
            made.merged_run_ids.extend(side.report.facts.run_id for side in every if side.report.facts.merged)
            return made

        return await asyncio.to_thread(work)

    async def ComparePairs(self, request: pb.ComparePairsRequest, context: Context) -> pb.ComparePairsResponse:
        pairing.check_request(request)
        after = pairing.position(request)
        baseline = await self._sides.side(request.baseline_run_id)
        candidate = await self._sides.side(request.candidate_run_id)
        await self._check(baseline, candidate, any_target=bool(request.baseline_target_id))
        page, missing = await self._store.reader.run(
            lambda connection: pairing.page(self._store, connection, request, baseline, candidate, after)
        )
        texts = await self._store.reads.texts([stored for _, stored in missing])
        for (side, _), text in zip(missing, texts, strict=True):
            side.final = text
        return page

    async def ListComparisonOptions(
        self, request: pb.ListComparisonOptionsRequest, context: Context
    ) -> pb.ListComparisonOptionsResponse:
        who, asked = actor(context), ("options", request.baseline_run_id, actor(context).id)
        size = pages.page_size(request.page_size, OPTIONS, MAX_OPTIONS)
        token = pages.decode(request.page_token, *asked)
        found = await self._plans.live_runs(who, str(token or ""), size)
        response = pb.ListComparisonOptionsResponse()
        if found.next_page_token:
            response.next_page_token, response.has_more = pages.encode(found.next_page_token, *asked), True
        if request.baseline_run_id:
            await self._partners(request.baseline_run_id, found.runs, response)
        else:
            others = (await self._plans.live_runs(who, "", PARTNERS)).runs
            response.scanned_pairs = len(found.runs) * max(len(others) - 1, 0)
            response.baselines.extend(
                comparison_options.shown(run) for run in found.runs if comparison_options.has_partner(run, others)
            )
            if not response.baselines and not response.has_more:
                response.empty_reason = "no_compatible_saved_runs"
        return response

    async def _partners(self, baseline_id: str, runs: Any, response: pb.ListComparisonOptionsResponse) -> None:
        run = await self._store.registry.planner_run(baseline_id, summary=True)
        baseline = await self._contender(run)
        own = faults(baseline, baseline=True)
        response.baseline.CopyFrom(comparison_options.shown(run, own))
        until = asyncio.get_running_loop().time() + SCAN_S
        for other in runs:
            if other.id == baseline_id:
                continue
            if asyncio.get_running_loop().time() > until:
                response.scan_limited = True
                response.unverified_pairs += 1
                continue
            response.scanned_pairs += 1
            candidate = await self._contender(other)
            reasons = [*own, *faults(candidate, baseline=False), *differences(baseline, candidate)]
            reasons = reasons or await self._content(baseline, candidate)
            (response.incompatible if reasons else response.options).append(comparison_options.shown(other, reasons))
        if not response.options and not response.has_more:
            response.empty_reason = "baseline_not_eligible_live_single" if own else "no_compatible_saved_runs"

    async def _contender(self, run: planner_pb.Run) -> Contender:
        store = self._store
        known = await store.registry.run(run.id)
        cases = await store.registry.cases(known)
        ends = await store.reader.run(
            lambda connection: figures.endings(connection, store.vocabulary, known, run.plan.total)
        )
        return comparison_options.contender(run, ends, same_cases(store.deriving.plan(run.plan, cases.cases)))

    async def _check(self, baseline: Side, candidate: Side, *, any_target: bool = False) -> None:
        """Refuses a pair that cannot be compared. Two targets of one run always can, once it is over.

        Args:
            any_target: the baseline's target was named, so that it may be a router.
        """
        first, second = baseline.figures.contender(), candidate.figures.contender()
        if first.run_id == second.run_id:
            found = faults(first, baseline=False)
        else:
            check_pair(first, second, any_target=any_target)
            found = await self._content(first, second)
        if found:
            raise refusal(found)

    async def _content(self, first: Contender, second: Contender) -> list[Difference]:
        """Whether cases of one id say the same in both plans; the digest of all of them settles most of it."""
        if first.case_sha256 == second.case_sha256 or not first.cases:
            return []
        one, other = await self._case_digests(first.case_sha256), await self._case_digests(second.case_sha256)
        found = content_difference({case: one[case] for case in first.cases}, other)
        return [found] if found is not None else []

    async def _case_digests(self, case_sha256: str) -> dict[str, str]:
        kept = self._digests.get(case_sha256)
        if kept is None:
            kept = {}
            batch: list[plan_pb2.SealedCase]
            async for batch in self._plans.sealed_cases(case_sha256, digests_only=True):
                kept.update((case.case_id, case.sha256) for case in batch)
            self._digests[case_sha256] = kept
        self._digests.move_to_end(case_sha256)
        while len(self._digests) > MAX_CASE_SETS:
            self._digests.popitem(last=False)
        return kept
