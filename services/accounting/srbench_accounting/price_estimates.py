"""What a run's saved calls would have cost at other prices: the receipts' tokens, priced again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy.engine import Connection
from srbench.v1 import accounting_service_pb2 as pb
from srbench.v1 import price_estimate_pb2, target_pb2, usage_pb2
from srbench_kit.errors import InvalidInput

from srbench_accounting import convert
from srbench_accounting.derived import TargetDeriving
from srbench_accounting.listing import CallWithEnd, Start
from srbench_accounting.rows import receipt_of
from srbench_accounting.run_facts import KnownRun
from srbench_accounting.run_job import derive
from srbench_accounting.schema import row_id
from srbench_accounting.store import Store

BATCH = 500
MAX_PRICES = 100
# A call costs about a tenth of a millisecond, beside all else that the service does.
MAX_CALLS = 200_000
# A million dollars per million tokens, as for registered prices.
MAX_PICODOLLARS = 10**12


@dataclass(slots=True)
class _Sum:
    """Costs of calls."""

    known: int = 0
    unknown: int = 0

    def add(self, cost: int | None) -> None:
        self.known += cost or 0
        self.unknown += cost is None

    @property
    def exact(self) -> int | None:
        return None if self.unknown else self.known


@dataclass(slots=True)
class _Target:
    """One target's rules at the frozen and at the other prices, and what its calls come to."""

    rules: tuple[TargetDeriving, TargetDeriving]
    frozen: _Sum
    estimated: _Sum
    calls: int = 0


async def estimate(store: Store, run: KnownRun, prices: Mapping[str, usage_pb2.Price]) -> price_estimate_pb2.PriceEstimate:
    """The estimate, by target. Raises: `InvalidInput` (`BAD_PRICE`, `TOO_MANY_CALLS`)."""
    _check(run, prices)
    targets = [
        _Target((run.targets[index], store.deriving.target(_at(target, prices))), _Sum(), _Sum())
        for index, target in enumerate(run.context.targets)
    ]
    count = await store.reader.run(lambda connection: store.lists.call_page(connection, run.run_no, Start(), 1).total)
    if count > MAX_CALLS:
        sentence = f"the run {run.run_id} has {count} calls; expected at most {MAX_CALLS} to price again"
        raise InvalidInput("TOO_MANY_CALLS", sentence, value=count)
    for first in range(1, count + 1, BATCH):
        last = min(first + BATCH, count + 1)
        await store.reader.run(partial(_add, store, run=run, targets=targets, places=range(first, last)))
    return _message(run, targets)


def _check(run: KnownRun, prices: Mapping[str, usage_pb2.Price]) -> None:
    if len(prices) > MAX_PRICES:
        raise InvalidInput("BAD_PRICE", f"prices names {len(prices)} models; expected at most {MAX_PRICES}", field="prices")
    known = {model for target in run.context.targets for model in (*target.prices, target.model)}
    for model, price in prices.items():
        if model not in known:
            raise InvalidInput(
                "BAD_PRICE", f"prices names {model[:100]!r}; expected a model of the run's targets", field="prices"
            )
        for field, value in price.ListFields():
            if not 0 <= value <= MAX_PICODOLLARS:
                raise InvalidInput(
                    "BAD_PRICE",
                    f"prices.{model[:100]}.{field.name} is {value}; expected 0 to {MAX_PICODOLLARS}",
                    field="prices",
                )


def _at(target: target_pb2.Target, prices: Mapping[str, usage_pb2.Price]) -> target_pb2.Target:
    """The target at other prices, where it has that model."""
    changed = target_pb2.Target()
    changed.CopyFrom(target)
    for model, price in prices.items():
        if model in changed.prices or model == target.model:
            changed.prices[model].CopyFrom(price)
    return changed


def _add(store: Store, connection: Connection, run: KnownRun, targets: Sequence[_Target], places: range) -> None:
    rows = store.lists.calls(connection, [row_id(run.run_no, place) for place in places])
    numbers = {number for row, receipt in rows for number in convert.call_words(row, receipt)}
    words = store.vocabulary.words(connection, numbers)
    for row in rows:
        _add_call(targets, row, words)


def _add_call(targets: Sequence[_Target], row: CallWithEnd, words: convert.Words) -> None:
    call, end = row
    if call.role != pb.CALL_ROLE_SUBJECT or words[call.auxiliary]:
        return
    if end is not None and end.status == pb.CALL_STATUS_NOT_ACCEPTED:
        return
    target = targets[call.target_index]
    target.calls += 1
    costs: list[int | None] = [None, None]
    if end is not None:
        receipt = receipt_of(end, dispatch_us=call.dispatch_us, words=words)
        costs = [derive(rules, receipt).cost for rules in target.rules]
    target.frozen.add(costs[0])
    target.estimated.add(costs[1])


def _message(run: KnownRun, targets: Sequence[_Target]) -> price_estimate_pb2.PriceEstimate:
    found = price_estimate_pb2.PriceEstimate(run_id=run.run_id)
    for target, sums in zip(run.context.targets, targets, strict=True):
        row = found.targets.add(
            target_id=target.id,
            call_count=sums.calls,
            frozen_unknown_count=sums.frozen.unknown,
            estimated_unknown_count=sums.estimated.unknown,
        )
        if sums.calls and (frozen := sums.frozen.exact) is not None:
            row.frozen_cost_picodollars = frozen
        if sums.calls and (estimated := sums.estimated.exact) is not None:
            row.estimated_cost_picodollars = estimated
    return found
