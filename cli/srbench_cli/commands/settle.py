"""`settle`: what an operator learned of a call whose cost nobody saw."""

from __future__ import annotations

import click
from srbench.v1 import accounting_service_pb2 as accounting_pb
from srbench.v1 import ledger_service_pb2 as pb
from srbench_kit import views
from srbench_kit.errors import InvalidInput
from srbench_kit.values import fill_value

from srbench_cli import manifests, printing, tables
from srbench_cli.context import Session, pass_session, shared_options

VERDICTS = {
    "happened": accounting_pb.SETTLEMENT_VERDICT_HAPPENED,
    "did-not-happen": accounting_pb.SETTLEMENT_VERDICT_DID_NOT_HAPPEN,
    "still-unknown": accounting_pb.SETTLEMENT_VERDICT_STILL_UNKNOWN,
}
_MEMBERS = frozenset({"usage", "model", "router_receipt"})


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("call_id", metavar="CALL")
@click.option("--as", "verdict", type=click.Choice(list(VERDICTS)), required=True, help="What is known of the call now.")
@click.option(
    "--usage",
    help="File with the usage object as the endpoint would have sent it, or an object with `usage`, `model` and "
    "`router_receipt`; - reads stdin.",
)
@click.option("--note", default="", help="Where you have it from; at most 1000 characters.")
@shared_options
@pass_session
def settle(session: Session, run_id: str, call_id: str, verdict: str, usage: str | None, note: str) -> None:
    """Records what you learned of a call whose cost is unknown, for example from the provider's console.

    Nothing is overwritten: a later settlement takes the place of an earlier one, and both stay. A call that did not happen
    lets its cell be recovered as undispatched.
    """
    request = pb.SettleCallRequest(run_id=run_id, call_id=call_id, verdict=VERDICTS[verdict], note=note)
    if usage is not None:
        fill_usage(request, usage)
    found = session.door.call(session.door.ledger.SettleCall, request)
    printing.show(views.plain(found), lambda: tables.call(found), as_json=session.as_json)


def fill_usage(request: pb.SettleCallRequest, name: str) -> None:
    """Writes the file's usage into the request. Raises: `InvalidInput` (`BAD_USAGE`, and those of `read_document`)."""
    document = manifests.read_document(name)
    if not isinstance(document, dict) or not document:
        raise InvalidInput("BAD_USAGE", f"{name} holds no object; expected the usage as the endpoint sends it", value=name)
    found = document if document.keys() <= _MEMBERS else {"usage": document}
    for key in ("usage", "router_receipt"):
        if found.get(key) is not None:
            fill_value(getattr(request, key), found[key])
    model = found.get("model")
    if not isinstance(model, str | None):
        raise InvalidInput("BAD_USAGE", f"model in {name} is no text", value=name)
    request.model = model or ""
