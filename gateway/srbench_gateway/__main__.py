"""Starts the gateway: `python -m srbench_gateway --host 127.0.0.1 --port 8090 --store-identity <sha256>`."""

from __future__ import annotations

import asyncio
import gc
import re
import sys

import click
from srbench_kit import logs, secret_files, serving, settings, tracing
from srbench_kit.errors import EXIT_CODES, InvalidInput, SrBenchError

from srbench_gateway.app import App
from srbench_gateway.auth import Gate
from srbench_gateway.backends import Backends
from srbench_gateway.bodies import MIB, Bounds
from srbench_gateway.dashboard import Dashboard
from srbench_gateway.deployment import Deployment
from srbench_gateway.front_door import FrontDoorServer
from srbench_gateway.http_server import HttpBounds, HttpServer, bind
from srbench_gateway.routes import Identity

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


async def serve(host: str, port: int, grpc_port: int, store_id: str, max_plan_bytes: int) -> None:
    """Runs both faces until SIGTERM or SIGINT.

    Raises: `InvalidInput` (`TOKEN_REQUIRED`, `NO_ADDRESS`, `PORT_TAKEN`, `BAD_TOKEN_ENV`).
    """
    gate = Gate(settings.public_token())
    serving.check_exposure(f"{host}:{port}", gate.token)
    stopped = serving.stop_event()
    addresses = settings.Addresses.from_environment()
    backends = Backends(addresses)
    door = FrontDoorServer(backends, gate, Deployment(backends, addresses, gate))
    try:
        listener = bind(host, port)
        http_port = listener.getsockname()[1]
        shown = f"[{host.strip('[]')}]" if ":" in host else host
        grpc_port = await door.start(shown, grpc_port or (port + 1 if port else 0))
    except (OSError, RuntimeError) as error:
        raise InvalidInput(
            "PORT_TAKEN", f"cannot listen on {host}:{port} and {grpc_port or 'the port after it'}: {error}"
        ) from None
    bounds, identity = Bounds(plan_bytes=max_plan_bytes), Identity(store_id=store_id, grpc_port=grpc_port)
    app = App(backends=backends, identity=identity, gate=gate, bounds=bounds, dashboard=Dashboard.find())
    http_bounds = HttpBounds()
    server = HttpServer(app, http_bounds)
    running = asyncio.ensure_future(server.serve(sockets=[listener]))
    # Answers are short-lived; what exists now stays for ever and need not be looked at again.
    gc.freeze()
    print(f"listening http={shown}:{http_port} grpc={shown}:{grpc_port}", flush=True)
    waiter = asyncio.ensure_future(stopped.wait())
    await asyncio.wait({waiter, running}, return_when=asyncio.FIRST_COMPLETED)
    waiter.cancel()
    backends.stopping.set()
    await asyncio.gather(server.stop(running), door.stop(http_bounds.grace_s))
    await backends.close()


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address; others than loopback need a token.")
@click.option("--port", type=click.IntRange(0, 65534), default=8090, show_default=True, help="HTTP; gRPC takes the next.")
@click.option("--grpc-port", type=click.IntRange(0, 65535), default=0, help="The front door's, where it is not the next.")
@click.option("--store-identity", default="", help="SHA-256 of the store's path, shown by /health.")
@click.option(
    "--max-plan-bytes", type=click.IntRange(MIB, 64 * MIB), default=64 * MIB, show_default=True, help="Largest manifest."
)
def main(host: str, port: int, grpc_port: int, store_identity: str, max_plan_bytes: int) -> None:
    """The HTTP API and the gRPC front door of sr-bench."""
    secret_files.read_or_exit("gateway")
    logs.configure("gateway", secrets=_secrets())
    try:
        if store_identity and not _SHA256.match(store_identity):
            raise InvalidInput("BAD_STORE_IDENTITY", f"--store-identity is {store_identity!r}; expected 64 hex digits")
        tracing.start("gateway")
        serving.run(lambda: serve(host, port, grpc_port, store_identity, max_plan_bytes))
    except SrBenchError as error:
        print(f"error: {error.message} ({error.reason})", file=sys.stderr)
        sys.exit(EXIT_CODES.get(error.kind, 70))


def _secrets() -> list[str]:
    """What must not appear in a log, whatever variable it came from."""
    try:
        token = settings.public_token()
    except InvalidInput:
        token = ""
    return [secret for secret in (token, settings.internal_token()) if secret]


if __name__ == "__main__":
    main()
