"""What an executor says of the targets it would call: whether their keys are set and, when asked, whether they answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import httpx
from srbench.v1 import operations_service_pb2 as pb
from srbench_kit.operations import failed, ok

from srbench_executor import request as requests

CONNECT_S = 8.0


async def targets(request: pb.InspectProcessRequest) -> Sequence[pb.InspectionCheck]:
    """A check for each key and, with `connect`, for each endpoint. Asks for the list of models, which is never charged."""
    checks = [_key(probe) for probe in request.targets if probe.api_key_env]
    if request.connect:
        async with httpx.AsyncClient(timeout=CONNECT_S, follow_redirects=False) as client:
            checks += await asyncio.gather(*(_endpoint(client, probe) for probe in request.targets))
    return checks


def _key(probe: pb.TargetProbe) -> pb.InspectionCheck:
    name, key = f"key:{probe.target_id}", os.environ.get(probe.api_key_env, "")
    if not key:
        return failed(name, f"{probe.api_key_env} is not set in this executor", f"set {probe.api_key_env} for executors")
    if not requests.usable_key(key):
        return failed(name, f"{probe.api_key_env} holds characters that no header can carry", "set it to the key alone")
    return ok(name, f"{probe.api_key_env} is set")


async def _endpoint(client: httpx.AsyncClient, probe: pb.TargetProbe) -> pb.InspectionCheck:
    name = f"target:{probe.target_id}"
    key = os.environ.get(probe.api_key_env, "") if probe.api_key_env else ""
    usable = bool(key) and requests.usable_key(key)
    try:
        answer = await client.get(
            f"{probe.base_url.rstrip('/')}/models", headers={"authorization": f"Bearer {key}"} if usable else {}
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        what = f"no answer: {type(error).__name__}"
        return failed(name, what, "check the target's base_url, the network and the proxy of executors")
    if answer.status_code in (401, 403):
        return failed(name, f"it refuses the key: HTTP {answer.status_code}", f"check {probe.api_key_env or 'api_key_env'}")
    if answer.status_code >= 500:
        return failed(name, f"it fails: HTTP {answer.status_code}", "ask who runs the endpoint")
    return ok(name, f"it answers: HTTP {answer.status_code}")
