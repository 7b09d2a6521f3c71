"""Previews and captures of recipes against a scripted router: no dispatch, no settlement, every end with its reason."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from srbench.v1 import recipe_pb2, target_pb2
from srbench.v1 import work_queue_service_pb2 as queue_pb
from srbench_executor.drivers.preview import MAX_DOCUMENT_BYTES
from srbench_kit.values import from_value, object_of, to_value

from tests.waiting import until_async

HASH, SOURCE = "a" * 64, "b" * 64
ROUTING = {"config_hash": HASH, "selected_model": "m", "selection_status": "selected"}
HASHES = {
    "source_config_hash": SOURCE,
    "generated_runtime_hash": HASH,
    "active_runtime_hash": HASH,
    "activation_status": "active",
}
JSON = {"content-type": "application/json"}


def reply(answer_type: Any, value: Any, status: int = 200, **headers: str) -> Any:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return answer_type(status=status, headers=JSON | headers, chunks=[(0, body)])


@pytest.fixture
def router(rig: Any) -> Any:
    """The rig with a router as its one target."""
    target = rig.queue.context.targets[0]
    target.kind, target.config_hash = target_pb2.TARGET_KIND_MOM, HASH
    target.preview_url = f"http://127.0.0.1:{rig.upstream.port}/api/v1/routing/preview"
    rig.queue.context.preview_context.CopyFrom(to_value({"sampling_seed": 7, "session_id": "s"}))
    rig.queue.context.sampling.CopyFrom(to_value({"temperature": 0, "max_tokens": 16}))
    return rig


async def outcome(rig: Any) -> Any:
    rig.queue.add(rig.lease(driver="preview", grader=""))
    await rig.start_executor()
    await rig.finished(1)
    (found,) = rig.ledger.outcomes
    assert rig.ledger.dispatches == [], "nothing is reserved for a preview"
    assert rig.ledger.settles == []
    assert rig.grader.answers == []
    return found


async def test_a_preview_is_one_post_and_an_outcome_without_a_grade(
    router: Any, answer_type: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREVIEW_KEY", "preview-key-1")
    router.queue.context.targets[0].preview_api_key_env = "PREVIEW_KEY"
    router.upstream.answers = [reply(answer_type, ROUTING | {"echo": "preview-key-1"})]
    found = await outcome(router)
    ((head, body),) = router.upstream.requests
    assert head.startswith(b"POST /api/v1/routing/preview HTTP/1.1")
    assert b"authorization: Bearer preview-key-1" in head
    assert f"x-sr-bench-expected-config-hash: {HASH}".encode() in head
    assert json.loads(body) == {
        "messages": [{"role": "user", "content": "question 0"}],
        "model": "m",
        "max_tokens": 16,
        "options": {"trace": True},
        "preview_context": {"sampling_seed": 7, "session_id": "s"},
    }
    assert found.state == queue_pb.CELL_STATE_DONE
    assert not found.HasField("correct")
    assert not found.HasField("score")
    assert from_value(found.answer) is None
    details = object_of(found.details)
    assert details["routing"] == ROUTING | {"echo": "[redacted]"}
    assert details["preview_context"] == {"sampling_seed": 7, "session_id": "s"}


@pytest.mark.parametrize(
    ("value", "status", "reason"),
    [
        ({"config_hash": "c" * 64}, 200, "config_hash_mismatch"),
        (b"oops", 200, "protocol_error"),
        ({"error": "no"}, 500, "http_error"),
        ({"error": "no"}, 401, "auth_refused"),
        (b'{"a":"' + b"x" * MAX_DOCUMENT_BYTES + b'"}', 200, "output_bytes_limit"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, 200, "config_hash_mismatch"),
        (b'{"config_hash":"' + HASH.encode() + b'","a":' + b'{"a":' * 60 + b"1" + b"}" * 61, 200, "protocol_error"),
    ],
)
async def test_every_other_answer_fails_its_cell_by_name(
    router: Any, answer_type: Any, value: Any, status: int, reason: str
) -> None:
    router.upstream.answers = [reply(answer_type, value, status)]
    found = await outcome(router)
    assert (found.state, found.reason) == (queue_pb.CELL_STATE_FAILED, reason)
    assert found.message
    assert len(router.upstream.requests) == 1


async def test_a_missing_key_fails_the_cell_before_anything_is_sent(router: Any) -> None:
    router.queue.context.targets[0].preview_api_key_env = "NO_SUCH_VARIABLE_HERE"
    found = await outcome(router)
    assert (found.reason, router.upstream.requests) == ("missing_key", [])
    assert "NO_SUCH_VARIABLE_HERE" in found.message


async def test_a_busy_router_is_asked_again_within_the_admission_wait(router: Any, answer_type: Any) -> None:
    router.queue.context.limits.admission_wait_s = 20
    busy = reply(answer_type, {"error": "later"}, 503, **{"retry-after": "0"})
    router.upstream.answers = [busy, busy, reply(answer_type, ROUTING)]
    found = await outcome(router)
    assert (found.state, len(router.upstream.requests)) == (queue_pb.CELL_STATE_DONE, 3)


async def test_without_an_admission_wait_a_busy_router_fails_the_cell(router: Any, answer_type: Any) -> None:
    router.upstream.answers = [reply(answer_type, {"error": "later"}, 429)]
    found = await outcome(router)
    assert (found.reason, len(router.upstream.requests)) == ("rate_limited", 1)


async def test_silence_has_a_deadline_of_its_own(router: Any, answer_type: Any) -> None:
    limits = router.queue.context.limits
    limits.total_timeout_s, limits.idle_timeout_s = 600, 0.3
    router.upstream.answers = [answer_type(headers=JSON, chunks=[(0, b"{")], end="hang")]
    found = await outcome(router)
    assert found.reason == "idle_timeout"


async def test_a_document_that_trickles_for_ever_meets_the_absolute_deadline(router: Any, answer_type: Any) -> None:
    limits = router.queue.context.limits
    # The last sign of life is always younger than the call.
    limits.total_timeout_s, limits.idle_timeout_s = 0.6, 0.6
    router.upstream.answers = [answer_type(headers=JSON, chunks=[(100, b" ")] * 100)]
    found = await outcome(router)
    assert found.reason == "deadline_exceeded"


async def test_a_cancelled_preview_ends_at_once(router: Any, answer_type: Any) -> None:
    router.upstream.answers = [answer_type(headers=JSON, chunks=[(0, b"{")], end="hang")]
    router.queue.add(router.lease(driver="preview", grader=""))
    await router.start_executor()
    await until_async(lambda: bool(router.upstream.requests))
    router.queue.stopped.append(queue_pb.StoppedRun(run_id="run-1", reason="cancelled"))
    await router.finished(1)
    (found,) = router.ledger.outcomes
    assert (found.state, found.reason) == (queue_pb.CELL_STATE_CANCELLED, "cancelled")


def capture(rig: Any, **fields: Any) -> None:
    target = target_pb2.Target(
        id="r",
        kind=target_pb2.TARGET_KIND_MOM,
        config_hash=HASH,
        capture_recipe=True,
        preview_url=f"http://127.0.0.1:{rig.upstream.port}/api/v1/routing/preview",
        **fields,
    )
    rig.queue.captures.append(recipe_pb2.RecipeCapture(capture_id="capture-1", target=target))
    rig.queue.changed.set()


async def report(rig: Any) -> Any:
    await rig.start_executor()
    async with asyncio.timeout(20):
        while not rig.queue.reports:
            rig.queue.changed.clear()
            await rig.queue.changed.wait()
    return rig.queue.reports[0]


async def test_a_recipe_is_read_between_two_hashes(rig: Any, answer_type: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTER_KEY", "router-key-1")
    config = {"routing": {"name": "x", "note": "router-key-1", "url": "http://y"}, "providers": {"a": 1}}
    hashes = reply(answer_type, HASHES)
    rig.upstream.answers = [hashes, reply(answer_type, config, etag=f'"{SOURCE}"'), hashes]
    capture(rig, api_key_env="ROUTER_KEY")
    found = await report(rig)
    assert [head.split(b" HTTP")[0] for head, _ in rig.upstream.requests] == [
        b"GET /api/v1/config/hash",
        b"GET /api/v1/config",
        b"GET /api/v1/config/hash",
    ]
    assert all(b"authorization: Bearer router-key-1" in head for head, _ in rig.upstream.requests)
    assert (found.reason, found.capture_id) == ("", "capture-1")
    assert object_of(found.recipe.document) == {"routing": {"name": "x", "note": "[redacted]", "url": "<redacted>"}}
    assert (found.recipe.source_config_hash, found.recipe.active_runtime_hash) == (SOURCE, HASH)
    assert list(found.recipe.redactions) == ["routing.url"]
    assert found.recipe.capture_time.seconds > 0


@pytest.mark.parametrize(
    ("reason", "answers"),
    [
        ("not_active", [HASHES | {"activation_status": "pending"}]),
        ("config_hash_mismatch", [HASHES | {"active_runtime_hash": "d" * 64}]),
        ("etag_mismatch", [HASHES, {"routing": {}}, HASHES]),
        ("BAD_JSON", [b"oops"]),
    ],
)
async def test_any_problem_is_told_and_nothing_is_kept(rig: Any, answer_type: Any, reason: str, answers: list[Any]) -> None:
    rig.upstream.answers = [reply(answer_type, value) for value in answers]
    capture(rig)
    found = await report(rig)
    assert found.reason == reason
    assert found.message
    assert not found.HasField("recipe")


async def test_a_router_that_redirects_or_is_away_is_named(rig: Any, answer_type: Any) -> None:
    rig.upstream.answers = [reply(answer_type, {}, 302, location="http://elsewhere/")]
    capture(rig)
    found = await report(rig)
    assert (found.reason, len(rig.upstream.requests)) == ("http_error", 1)
    assert "redirects are not followed" in found.message
