"""Routes by which a browser signs in and out. They answer without a token: they are how one is shown."""

from __future__ import annotations

from google.protobuf.wrappers_pb2 import StringValue
from srbench_kit.auth import same_token
from srbench_kit.errors import InvalidInput, SrBenchError, Unauthenticated
from srbench_kit.values import Json
from starlette.responses import Response

from srbench_gateway import answers
from srbench_gateway.fields import unknown
from srbench_gateway.routes import Ask, Body, Object, Route, check_required
from srbench_gateway.schema import BOOLEAN, TEXT, nullable, record

PATH = "/session"
MAX_TOKEN_CHARS = 4096


async def session(ask: Ask) -> Object:
    return _shown(ask)


async def sign_in(ask: Ask) -> Response:
    sessions, token = ask.visitor.gate.sessions, ask.visitor.gate.token
    if not token:
        return answers.answer(_shown(ask))
    if not same_token(ask.body.value, token):
        raise Unauthenticated("BAD_TOKEN", "this is not the service's token")
    begun = sessions.begin()
    shown: dict[str, Json] = _as_actor("local", "local") | {"csrf_token": sessions.csrf_token(begun)}
    return answers.answer(shown, headers={"set-cookie": sessions.set_cookie(begun, secure=ask.visitor.secure)})


async def sign_out(ask: Ask) -> Response:
    sessions = ask.visitor.gate.sessions
    sessions.end(sessions.find(ask.visitor.header("cookie")))
    headers = {"set-cookie": sessions.set_cookie("", secure=ask.visitor.secure)}
    return answers.answer(_SIGNED_OUT if ask.visitor.gate.token else _shown(ask), headers=headers)


def _shown(ask: Ask) -> Object:
    gate = ask.visitor.gate
    try:
        actor = gate.actor(ask.visitor.headers)
    except SrBenchError:
        return dict(_SIGNED_OUT)
    found = gate.sessions.find(ask.visitor.header("cookie"))
    return _as_actor(actor.id, actor.role) | {
        "csrf_token": gate.sessions.csrf_token(found) if found else None,
        "needs_token": bool(gate.token),
    }


def _as_actor(actor: str, role: str) -> Object:
    may_write = role != "read"
    return {"signed_in": True, "needs_token": True, "actor": actor, "role": role, "can_write": may_write}


_SIGNED_OUT: Object = {
    "signed_in": False,
    "needs_token": True,
    "actor": None,
    "role": None,
    "can_write": False,
    "csrf_token": None,
}
_SESSION = record(
    signed_in=BOOLEAN,
    needs_token=BOOLEAN,
    actor=nullable(TEXT),
    role={"enum": ["local", "admin", "write", "read", None]},
    can_write=BOOLEAN,
    csrf_token=nullable(TEXT),
)


def _token_of(body: Object) -> StringValue:
    unknown(body, ["token"], "field")
    check_required(body, ["token"])
    token = body["token"]
    if not isinstance(token, str) or not 1 <= len(token) <= MAX_TOKEN_CHARS:
        raise InvalidInput("BAD_FIELD", f"token must be text of 1 to {MAX_TOKEN_CHARS} characters", field="token")
    return StringValue(value=token)


_TOKEN = Body(message=StringValue, make=_token_of, schema=record(token=TEXT))
ROUTES = [
    Route(
        method="GET",
        path=PATH,
        about="Says who is signed in and what they may do. Answers without a token.",
        answer=session,
        shows=_SESSION,
    ),
    Route(
        method="POST",
        path=PATH,
        about="Signs a browser in: sets an HttpOnly, SameSite=Strict cookie for whoever shows the token.",
        answer=sign_in,
        body=_TOKEN,
        shows=_SESSION,
    ),
    Route(
        method="DELETE",
        path=PATH,
        about="Signs a browser out.",
        answer=sign_out,
        shows=_SESSION,
    ),
]
