"""`vllm-sr config …`: a change of a router's configuration, checked, planned, applied and waited for."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import click
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import views
from srbench_kit.errors import Conflict, InvalidInput, NotFound
from srbench_kit.values import Json, to_value

from srbench_cli import discovery, printing, router_config
from srbench_cli.context import Session, pass_session, shared_options
from srbench_cli.router_api import DEFAULT_PORT, RouterApi
from srbench_cli.tables import pairs

COMMANDS = ("validate", "plan", "apply")
TIMEOUT_S = 60.0
_FILE = click.option(
    "--config", "path", required=True, type=click.Path(path_type=Path), help="The configuration as YAML or JSON."
)
_MODE = click.option(
    "--mode", type=click.Choice(router_config.MODES), default="replace", show_default=True,
    help="replace: the file is the whole configuration; merge: it is laid over the router's.",
)  # fmt: skip
ENDPOINT = click.option(
    "--endpoint", metavar="URL", help="Address of the router's management API.  [default: http://localhost:8080 + offset]"
)
_TARGET = click.option("--target", "target_id", help="Instead: the registered router of this id, by its preview_url.")


@click.group()
def config() -> None:
    """Changes a router's configuration. The token of its API comes from VSR_MGMT_TOKEN."""


@config.command()
@_FILE
@_MODE
@ENDPOINT
@_TARGET
@shared_options
@pass_session
def validate(session: Session, path: Path, mode: str, endpoint: str | None, target_id: str | None) -> None:
    """Checks a configuration; the router stays as it is."""
    change = router_config.read_change(path, mode)
    _show(session, router_config.validate(router(session, endpoint, target_id), change))


@config.command()
@_FILE
@_MODE
@ENDPOINT
@_TARGET
@shared_options
@pass_session
def plan(session: Session, path: Path, mode: str, endpoint: str | None, target_id: str | None) -> None:
    """Says what a change would do: what differs, whether it needs a restart, and the hash that it would make."""
    change = router_config.read_change(path, mode)
    found = router_config.plan(router(session, endpoint, target_id), change)
    _show(session, {**found.body, "etag": found.etag or found.body.get("etag")})


@config.command()
@_FILE
@_MODE
@ENDPOINT
@_TARGET
@click.option("--timeout", "timeout_s", type=click.FloatRange(0, 3600), default=TIMEOUT_S, show_default=True,
              help="Seconds to wait for the router to run it.")  # fmt: skip
@click.option("--update-target", is_flag=True, help="With --target: register the router with the hash that it runs now.")
@shared_options
@pass_session
def apply(
    session: Session,
    path: Path,
    mode: str,
    endpoint: str | None,
    target_id: str | None,
    timeout_s: float,
    update_target: bool,
) -> None:
    """Makes a change and waits until the router runs it. Nothing is changed when somebody else was faster."""
    if update_target and not target_id:
        raise InvalidInput("MISSING_OPTION", "--update-target needs --target")
    change = router_config.read_change(path, mode)
    found = router_config.apply(router(session, endpoint, target_id), change, timeout_s, printing.notice)
    if update_target and target_id:
        register_hash(session, target_id, str(found["active_runtime_hash"]))
    _show(session, found)


def router(session: Session, endpoint: str | None, target_id: str | None) -> RouterApi:
    """The management API of the router that the options name. Raises: `InvalidInput`, `NotFound` (`NO_SUCH_TARGET`)."""
    if endpoint and target_id:
        raise InvalidInput("CONFLICTING_OPTIONS", "--endpoint and --target name a router each; give one of them")
    if endpoint:
        return RouterApi(discovery.check_origin(endpoint))
    if target_id:
        return RouterApi(preview_origin(session, target_id))
    return RouterApi(f"http://localhost:{DEFAULT_PORT + discovery.port_offset(os.environ)}")


def preview_origin(session: Session, target_id: str) -> str:
    """The origin of a registered router's `preview_url`. Raises: `NotFound` (`NO_SUCH_TARGET`), `Conflict`."""
    found = session.door.call(session.door.planner.ListTargets, pb.ListTargetsRequest())
    for target in found.targets:
        if target.id == target_id:
            if not target.preview_url:
                raise Conflict(
                    "NO_PREVIEW_URL", f"the target {target_id} has no preview_url that shows where its router is"
                )
            parts = urlsplit(target.preview_url)
            return f"{parts.scheme}://{parts.netloc}"
    raise NotFound("NO_SUCH_TARGET", f"there is no registered target {target_id!r}", target_id=target_id)


def register_hash(session: Session, target_id: str, config_hash: str) -> None:
    """Registers the target `target_id` with another `config_hash`; all else stays as it is registered."""
    door = session.door
    listed = door.call(door.planner.ListTargets, pb.ListTargetsRequest())
    shown = [views.target(target) for target in listed.targets]
    changed: list[Json] = [
        target | {"config_hash": config_hash} if target["id"] == target_id else target for target in shown
    ]
    # Whatever somebody registers between the two calls must not be lost by the second.
    document = to_value({"targets": changed})
    request = pb.RegisterTargetsRequest(document=document, expected_revision=listed.revision)
    door.call(door.planner.RegisterTargets, request)
    printing.notice(f"registered {target_id} with the configuration {config_hash}")


def _show(session: Session, found: dict[str, Json]) -> None:
    printing.show(found, lambda: pairs([(key, value) for key, value in found.items()]), as_json=session.as_json)
