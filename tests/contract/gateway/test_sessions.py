"""Browsers that sign in with the token: the cookie, what it may do, and what other sites' pages may not."""

from __future__ import annotations

from typing import Any

V1 = "/api/sr-bench/v1"
TOKEN = "a-token-for-callers-from-outside"


async def signed_in(stand: Any) -> tuple[str, str]:
    """Signs in; gives the cookie and the CSRF token."""
    stand.http.headers.pop("authorization", None)
    answer = await stand.http.post(V1 + "/session", json={"token": TOKEN})
    assert answer.status_code == 200, answer.text
    cookie = answer.headers["set-cookie"]
    stand.http.cookies.clear()
    return cookie.partition(";")[0], answer.json()["csrf_token"]


async def test_the_token_gives_a_cookie_that_scripts_and_other_sites_cannot_use(start: Any) -> None:
    stand = await start(TOKEN)
    answer = await stand.http.post(V1 + "/session", json={"token": TOKEN})
    flags = [flag.strip() for flag in answer.headers["set-cookie"].split(";")[1:]]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(flags)
    assert TOKEN not in answer.headers["set-cookie"] + answer.text
    assert answer.json() | {"csrf_token": "x"} == {
        "signed_in": True,
        "needs_token": True,
        "actor": "local",
        "role": "local",
        "can_write": True,
        "csrf_token": "x",
    }


async def test_a_wrong_token_gives_no_cookie(start: Any) -> None:
    stand = await start(TOKEN)
    answer = await stand.http.post(V1 + "/session", json={"token": "guess"})
    assert (answer.status_code, answer.json()["reason"]) == (401, "BAD_TOKEN")
    assert "set-cookie" not in answer.headers


async def test_a_session_reads_and_writes_with_its_csrf_token_only(start: Any) -> None:
    stand = await start(TOKEN)
    cookie, csrf = await signed_in(stand)
    assert (await stand.http.get(V1 + "/catalog", headers={"cookie": cookie})).status_code == 200
    body = {"manifest": {"version": "sr-bench-1.0"}}
    for extra in ({}, {"x-csrf-token": "guess"}, {"x-csrf-token": ""}):
        answer = await stand.http.post(V1 + "/runs", json=body, headers={"cookie": cookie, **extra})
        assert (answer.status_code, answer.json()["reason"]) == (403, "BAD_CSRF_TOKEN")
    answer = await stand.http.post(V1 + "/runs", json=body, headers={"cookie": cookie, "x-csrf-token": csrf})
    assert answer.status_code == 201
    foreign = {"cookie": cookie, "x-csrf-token": csrf, "origin": "https://evil.example"}
    answer = await stand.http.post(V1 + "/runs", json=body, headers=foreign)
    assert (answer.status_code, answer.json()["reason"]) == (403, "FOREIGN_ORIGIN")


async def test_a_session_may_not_name_an_actor(start: Any) -> None:
    stand = await start(TOKEN)
    cookie, _csrf = await signed_in(stand)
    headers = {"cookie": cookie, "x-sr-bench-actor-id": "ann", "x-sr-bench-actor-role": "admin"}
    answer = await stand.http.get(V1 + "/catalog", headers=headers)
    assert (answer.status_code, answer.json()["reason"]) == (403, "UNTRUSTED_ACTOR")


async def test_signing_out_ends_the_session_and_forged_ones_never_begin(start: Any) -> None:
    stand = await start(TOKEN)
    cookie, _csrf = await signed_in(stand)
    assert (await stand.http.get(V1 + "/session", headers={"cookie": cookie})).json()["signed_in"] is True
    ended = await stand.http.delete(V1 + "/session", headers={"cookie": cookie})
    assert "Max-Age=0" in ended.headers["set-cookie"]
    name, _, value = cookie.partition("=")
    until, _, rest = value.partition(".")
    forged = f"{name}={int(until) + 1}.{rest}"
    for dead in (cookie, forged, f"{name}=", f"{name}=1.2", f"{name}={value}x", f"other={value}"):
        assert (await stand.http.get(V1 + "/session", headers={"cookie": dead})).json()["signed_in"] is False
        assert (await stand.http.get(V1 + "/catalog", headers={"cookie": dead})).status_code == 401


async def test_without_a_token_everybody_is_signed_in_and_no_cookie_is_set(start: Any) -> None:
    stand = await start("")
    shown = (await stand.http.get(V1 + "/session")).json()
    assert shown["signed_in"] is True
    assert shown["needs_token"] is False
    answer = await stand.http.post(V1 + "/session", json={"token": "anything"})
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers


async def test_a_forwarded_reader_is_told_that_it_may_only_read(start: Any) -> None:
    stand = await start(TOKEN)
    headers = {"x-sr-bench-actor-id": "rita", "x-sr-bench-actor-role": "read"}
    shown = (await stand.http.get(V1 + "/session", headers=headers)).json()
    assert (shown["role"], shown["can_write"], shown["signed_in"]) == ("read", False, True)
