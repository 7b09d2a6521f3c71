"""Reads the configuration of routers when a run is to start: hash, configuration, hash again, and nothing in between."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from urllib.parse import urlsplit

from grpc import aio
from srbench.v1 import recipe_pb2, target_pb2
from srbench.v1.work_queue_service_pb2_grpc import WorkQueueServiceStub
from srbench_kit import documents, wire
from srbench_kit.chatparts import refusal_reason
from srbench_kit.errors import InvalidInput
from srbench_kit.redact import Redactor
from srbench_kit.values import Json, fill_value

from srbench_executor import recipe, request
from srbench_executor.caller import Transports
from srbench_executor.exchange import Outgoing
from srbench_executor.fetching import Fetch, FetchBounds, Fetched, FetchFailed

TOTAL_S = 15.0
MAX_BODY_BYTES = 4 * 1024 * 1024
TAKE_TIMEOUT_S = 40.0
REPORT_TIMEOUT_S = 10.0
RETRY_S = 1.0
_log = logging.getLogger(__name__)


class Capturing:
    """Takes captures from the planner, one long poll at a time, beside all other work."""

    def __init__(self, stub: WorkQueueServiceStub, executor_id: str, transports: Transports) -> None:
        self._stub = stub
        self._executor_id = executor_id
        self._transports = transports
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Works until cancelled."""
        asked = recipe_pb2.TakeRecipeCapturesRequest(executor_id=self._executor_id)
        try:
            while True:
                try:
                    answer: recipe_pb2.TakeRecipeCapturesResponse = await self._stub.TakeRecipeCaptures(  # type: ignore[misc]
                        asked, timeout=TAKE_TIMEOUT_S
                    )
                except aio.AioRpcError as error:
                    _log.warning("no captures could be taken: %s", wire.to_error(error).message)
                    await asyncio.sleep(RETRY_S)
                    continue
                for found in answer.captures:
                    task = asyncio.create_task(self._work(found))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
        finally:
            for task in list(self._tasks):
                task.cancel()

    async def _work(self, wanted: recipe_pb2.RecipeCapture) -> None:
        answer = recipe_pb2.ReportRecipeCaptureRequest(capture_id=wanted.capture_id)
        target = wanted.target
        name = target.preview_api_key_env or target.api_key_env
        key = os.environ.get(name, "") if name else ""
        redactor = Redactor([key] if key else [])
        try:
            if name and not request.usable_key(key):
                raise recipe.BadRecipe("missing_key", f"the environment variable {name} of the executor is not set")
            answer.recipe.CopyFrom(await self._capture(target, key, redactor))
        except (recipe.BadRecipe, FetchFailed, InvalidInput) as error:
            answer.reason, answer.message = error.reason, redactor.text(error.message)
        except Exception:
            # The outermost frame of a capture: a bug refuses this start, with its trace in the log, and nothing else.
            _log.exception("bug while capturing a recipe")
            answer.reason, answer.message = "internal_error", "the executor failed; its log has the details"
        try:
            await self._stub.ReportRecipeCapture(answer, timeout=REPORT_TIMEOUT_S)  # type: ignore[misc]
        except aio.AioRpcError as error:
            _log.warning("a capture could not be reported: %s", wire.to_error(error).message)

    async def _capture(self, target: target_pb2.Target, key: str, redactor: Redactor) -> recipe_pb2.Recipe:
        """Raises: `BadRecipe`, `FetchFailed`, `InvalidInput`."""
        parts = urlsplit(target.preview_url)
        origin = f"{parts.scheme}://{parts.netloc}"
        until = time.monotonic() + TOTAL_S
        hash_url, config_url = f"{origin}/api/v1/config/hash", f"{origin}/api/v1/config"
        before = recipe.read_hashes(await self._document(hash_url, key, until), target.config_hash)
        answer = await self._get(config_url, key, until)
        after = recipe.read_hashes(await self._document(hash_url, key, until), target.config_hash)
        recipe.check_bracket(before, answer.headers, after)
        kept = recipe.project(documents.load_json(redactor.data(answer.body), "the configuration"))
        found = recipe_pb2.Recipe(
            source_config_hash=before.source,
            generated_runtime_hash=before.generated,
            active_runtime_hash=before.active,
            recipe_sha256=kept.sha256,
            redactions=kept.redactions,
        )
        found.capture_time.FromNanoseconds(time.time_ns())
        fill_value(found.document, kept.document)
        return found

    async def _document(self, url: str, key: str, until: float) -> Json:
        return documents.load_json((await self._get(url, key, until)).body, url)

    async def _get(self, url: str, key: str, until: float) -> Fetched:
        where = request.address(url, "preview_url")
        head = [("host", where.host_header), ("user-agent", request.USER_AGENT), ("accept", "application/json")]
        head += [("accept-encoding", "identity")] + ([("authorization", f"Bearer {key}")] if key else [])
        outgoing = Outgoing(origin=where.origin, path=where.path, headers=tuple(head), body=b"", method="GET")
        left_s = max(0.1, until - time.monotonic())
        bounds = FetchBounds(total_s=left_s, idle_s=left_s, connect_s=left_s, body_bytes=MAX_BODY_BYTES)
        answer = await Fetch(bounds).run(self._transports.for_request(outgoing), outgoing)
        if answer.status != 200:
            what = "; redirects are not followed" if 300 <= answer.status < 400 else ""
            raise recipe.BadRecipe(refusal_reason(answer.status), f"{where.path} answered HTTP {answer.status}{what}")
        return answer
