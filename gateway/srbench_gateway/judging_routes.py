"""Routes about how well a run's judges judge: the agreement of two, and people's audits."""

from __future__ import annotations

from srbench.v1 import judging_pb2 as pb
from srbench_kit import views
from srbench_kit.errors import InvalidInput

from srbench_gateway.bodies import kind_of
from srbench_gateway.fields import fill, unknown
from srbench_gateway.reading_routes import REPORT_TIMEOUT_S
from srbench_gateway.routes import Ask, Body, Object, Route, check_required
from srbench_gateway.schema import BOOLEAN, TEXT, listed, record, ref


async def judging(ask: Ask) -> Object:
    request = pb.GetJudgingRequest(run_id=await ask.visible_run())
    found = await ask.accounting(ask.facts.GetJudging, request, REPORT_TIMEOUT_S)
    return views.deep(found)


async def import_audit(ask: Ask) -> Object:
    request = pb.ImportAuditRequest()
    request.CopyFrom(ask.body)
    request.run_id = await ask.visible_run()
    found = await ask.accounting(ask.facts.ImportAudit, request, REPORT_TIMEOUT_S)
    return views.deep(found)


def _audit_body(body: Object) -> pb.ImportAuditRequest:
    unknown(body, ["auditor", "labels"], "field")
    check_required(body, ["auditor", "labels"])
    request = fill(pb.ImportAuditRequest(), {"auditor": body["auditor"]})
    labels = body["labels"]
    for place, label in enumerate(labels if isinstance(labels, list) else [labels]):
        if not isinstance(labels, list) or not isinstance(label, dict):
            where = f"labels[{place}]" if isinstance(labels, list) else "labels"
            wanted = "an object" if isinstance(labels, list) else "a list of objects"
            raise InvalidInput("BAD_TYPE", f"{where} is {kind_of(label)}; expected {wanted}", field=where)
        fill(request.labels.add(), label)
    return request


_AUDIT = Body(
    message=pb.ImportAuditRequest,
    make=_audit_body,
    schema=record(auditor=TEXT, labels=listed(record(case_id=TEXT, target_id=TEXT, correct=BOOLEAN))),
)
ROUTES = [
    Route(
        method="GET",
        path="/runs/{run_id}/judging",
        about="Says how far a run's judges agree, and its accuracies corrected by the newest audit of people.",
        answer=judging,
        shows=ref(pb.Judging),
    ),
    Route(
        method="POST",
        path="/runs/{run_id}/audits",
        about="Keeps people's labels of a random sample of judged answers, and corrects by them. Grades stay as they are.",
        answer=import_audit,
        body=_AUDIT,
        shows=ref(pb.Judging),
    ),
]
