"""Routes about cells that gave no answer: plan a recovery, start it, see its lineage, settle a call by hand."""

from __future__ import annotations

from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import ledger_service_pb2 as ledger
from srbench.v1 import recovery_service_pb2 as recovery
from srbench_kit import views
from srbench_kit.errors import InvalidInput, Unreachable
from srbench_kit.values import Json, fill_value

from srbench_gateway.auth import check_operator
from srbench_gateway.bodies import kind_of
from srbench_gateway.fields import fill, unknown
from srbench_gateway.routes import Ask, Body, Object, Route, check_required
from srbench_gateway.run_routes import START_TIMEOUT_S
from srbench_gateway.schema import ANYTHING, TEXT, listed, nullable, record, ref

VERDICTS = {
    "happened": accounting.SETTLEMENT_VERDICT_HAPPENED,
    "did-not-happen": accounting.SETTLEMENT_VERDICT_DID_NOT_HAPPEN,
    "still-unknown": accounting.SETTLEMENT_VERDICT_STILL_UNKNOWN,
}
_CELL = ("case_id", "target_id")
# What a plan says of an eligible cell may be sent back with it.
_SHOWN_CELL = (*_CELL, "state", "reason", "call_count", "known_spend_usd", "spend_complete", "spend_upper_usd")


async def recover_plan(ask: Ask) -> Object:
    request = recovery.PlanRecoveryRequest(run_id=ask.ids["run_id"], mode=ask.body.mode)
    found = await ask.planner(ask.backends.recoveries.PlanRecovery, request, START_TIMEOUT_S)
    return views.plain(found)


async def recover(ask: Ask) -> Object:
    request = recovery.RecoverRunRequest()
    request.CopyFrom(ask.body)
    request.run_id = ask.ids["run_id"]
    try:
        run = await ask.planner(ask.backends.recoveries.RecoverRun, request, START_TIMEOUT_S)
    except Unreachable as error:
        sentence = f"{error.message}; the recovery may have started: send the same request again, it starts nothing twice"
        raise Unreachable(error.reason, sentence, idempotency_key=request.idempotency_key) from None
    return await ask.manifests.complete(run, ask.actor)


async def lineage(ask: Ask) -> Object:
    request = recovery.GetLineageRequest(run_id=ask.ids["run_id"])
    found = await ask.planner(ask.backends.recoveries.GetLineage, request)
    return {"runs": [views.run_row(run) for run in found.runs]}


async def settle(ask: Ask) -> Object:
    check_operator(ask.actor, "settling a call")
    request = ledger.SettleCallRequest()
    request.CopyFrom(ask.body)
    request.run_id, request.call_id = await ask.visible_run(), ask.ids["call_id"]
    found = await ask.accounting(ask.backends.ledger.SettleCall, request)
    return views.plain(found)


def _plan_body(body: Object) -> recovery.PlanRecoveryRequest:
    unknown(body, ["mode"], "field")
    return fill(recovery.PlanRecoveryRequest(), body)


def _recover_body(body: Object) -> recovery.RecoverRunRequest:
    unknown(body, ["mode", "plan_sha256", "cells", "idempotency_key", "acknowledge_new_attempt"], "field")
    check_required(body, ["mode", "plan_sha256", "cells", "idempotency_key"])
    texts = {name: body[name] for name in ("mode", "plan_sha256", "idempotency_key")}
    request = fill(recovery.RecoverRunRequest(), texts)
    acknowledged = body.get("acknowledge_new_attempt")
    if not isinstance(acknowledged, bool | None):
        raise _bad("acknowledge_new_attempt", acknowledged, "true or false")
    request.acknowledge_new_attempt = bool(acknowledged)
    cells = body["cells"]
    if not isinstance(cells, list):
        raise _bad("cells", cells, "a list")
    for index, cell in enumerate(cells):
        if not isinstance(cell, dict):
            raise _bad(f"cells[{index}]", cell, "an object")
        unknown(cell, _SHOWN_CELL, "field")
        check_required(cell, _CELL)
        fill(request.cells.add(), {name: cell[name] for name in _CELL})
    return request


def _settle_body(body: Object) -> ledger.SettleCallRequest:
    unknown(body, ["as", "usage", "model", "router_receipt", "note"], "field")
    verdict = body.get("as")
    if not isinstance(verdict, str) or verdict not in VERDICTS:
        raise InvalidInput("BAD_FIELD", f"as is {str(verdict)[:100]!r}; expected {', '.join(VERDICTS)}", field="as")
    request = fill(ledger.SettleCallRequest(), {name: body[name] for name in ("model", "note") if body.get(name)})
    request.verdict = VERDICTS[verdict]
    for name in ("usage", "router_receipt"):
        if body.get(name) is not None:
            fill_value(getattr(request, name), body[name])
    return request


def _bad(name: str, value: Json, wanted: str) -> InvalidInput:
    return InvalidInput("BAD_TYPE", f"{name} is {kind_of(value)}; expected {wanted}", field=name)


_MODE = {"type": "string", "enum": ["undispatched", "failed"]}
_RECOVER = {
    **record(
        mode=_MODE,
        plan_sha256=TEXT,
        cells=listed({"type": "object", "properties": dict.fromkeys(_CELL, TEXT), "required": list(_CELL)}),
        idempotency_key=TEXT,
        acknowledge_new_attempt={"type": "boolean"},
    ),
    "required": ["cells", "idempotency_key", "mode", "plan_sha256"],
}
_SETTLE = {
    **record(
        **{"as": {"type": "string", "enum": list(VERDICTS)}},
        usage=nullable(ANYTHING),
        model=TEXT,
        router_receipt=nullable(ANYTHING),
        note=TEXT,
    ),
    "required": ["as"],
}

ROUTES = [
    Route(
        method="POST",
        path="/runs/{run_id}/recover-plan",
        about="Says which cells of a run that has ended can be tried again, and why the others cannot. Sends nothing.",
        answer=recover_plan,
        body=Body(
            message=recovery.PlanRecoveryRequest,
            make=_plan_body,
            may_be_empty=True,
            schema={"type": "object", "properties": {"mode": _MODE}, "additionalProperties": False},
        ),
        shows=ref(recovery.RecoveryPlan),
    ),
    Route(
        method="POST",
        path="/runs/{run_id}/recover",
        about="Starts a child run of reviewed cells. The same key with the same request gives the child that exists.",
        answer=recover,
        body=Body(message=recovery.RecoverRunRequest, make=_recover_body, carries_plan=True, schema=_RECOVER),
        status=201,
        shows=ref("Run"),
    ),
    Route(
        method="GET",
        path="/runs/{run_id}/lineage",
        about="Lists a run and every recovery of it, oldest first.",
        answer=lineage,
        shows=record(runs=listed(ref("RunRow"))),
    ),
    Route(
        method="POST",
        path="/runs/{run_id}/calls/{call_id}/settle",
        about="Records what an operator learned of a call whose cost is unknown. Nothing is overwritten.",
        answer=settle,
        body=Body(message=ledger.SettleCallRequest, make=_settle_body, schema=_SETTLE),
        shows=ref(accounting.Call),
    ),
]
