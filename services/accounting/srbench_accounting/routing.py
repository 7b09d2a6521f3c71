"""What previews say of a router: which model and decision it would take, and how it came to that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from srbench_accounting.columns import Ints, Labels, ints

if TYPE_CHECKING:
    from srbench_kit.values import Json


@dataclass(frozen=True, slots=True)
class Routing:
    """The answer to one preview; an empty text is what the router did not say."""

    model: str
    decision: str
    status: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingColumns:
    """Answered previews, a row each. Columns as in `OutcomeColumns` and `Routing`."""

    case: Ints
    target: Ints
    model: Labels
    decision: Labels
    status: Labels
    reason: Labels

    def take(self, rows: Ints | slice) -> RoutingColumns:
        """The same columns for some rows."""
        return RoutingColumns(
            case=self.case[rows],
            target=self.target[rows],
            model=self.model.take(rows),
            decision=self.decision.take(rows),
            status=self.status.take(rows),
            reason=self.reason.take(rows),
        )


def routing_of(document: Json) -> Routing:
    """What a routing document says."""
    found = document if isinstance(document, dict) else {}
    result = found.get("decision_result")
    name = result.get("decision_name") if isinstance(result, dict) else None
    decision = name if isinstance(name, str) and name else found.get("routing_decision")
    model, status, reason = (found.get(key) for key in ("selected_model", "selection_status", "selection_reason"))
    return Routing(_text(model), _text(decision), _text(status), _text(reason))


def routing_columns(rows: Iterable[tuple[int, int, Routing]]) -> RoutingColumns:
    """The columns of (case, target, routing) rows."""
    kept = list(rows)
    return RoutingColumns(
        case=ints(case for case, _, _ in kept),
        target=ints(target for _, target, _ in kept),
        model=Labels.of(routing.model for _, _, routing in kept),
        decision=Labels.of(routing.decision for _, _, routing in kept),
        status=Labels.of(routing.status for _, _, routing in kept),
        reason=Labels.of(routing.reason for _, _, routing in kept),
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
