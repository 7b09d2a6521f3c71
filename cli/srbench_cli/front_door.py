"""The connection to a service: found or started, checked, then used through the generated stubs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import grpc
from srbench.v1.accounting_service_pb2_grpc import AccountingServiceStub
from srbench.v1.deployment_service_pb2_grpc import DeploymentServiceStub
from srbench.v1.ledger_service_pb2_grpc import LedgerServiceStub
from srbench.v1.planner_service_pb2_grpc import PlannerServiceStub
from srbench.v1.recovery_service_pb2_grpc import RecoveryServiceStub
from srbench_kit import settings, wire
from srbench_kit.errors import Conflict, SrBenchError, Unauthenticated, Unreachable
from srbench_kit.hosts import is_loopback

from srbench_cli import lifecycle, service_files
from srbench_cli.discovery import Location
from srbench_cli.health import KNOWN_S, UNKNOWN_S, Health, probe
from srbench_cli.service_files import ServiceRecord

if TYPE_CHECKING:
    from google.protobuf.message import Message

CALL_TIMEOUT_S = 60.0
# Freezing a large plan reads, hashes and checks every case.
SLOW_CALL_TIMEOUT_S = 600.0
READY_TIMEOUT_S = 60.0

Request = TypeVar("Request", bound="Message")
Response = TypeVar("Response", bound="Message")


def client_token(location: Location) -> str:
    """The token to show: from the environment, or of the workspace's own stack; empty for none."""
    token = settings.public_token()
    return token or (service_files.read_token(location.token_file) if location.managed else "")


@dataclass(slots=True)
class FrontDoor:
    """One service, reached when first needed.

    Attributes:
        location: which service.
        autostart: whether a missing local service may be started.
        notice: says something to the person, on stderr.
        takes_unready: whether a service of which a part is away will do.
    """

    location: Location
    autostart: bool
    notice: Callable[[str], None]
    url: str = ""
    takes_unready: bool = False
    _channel: grpc.Channel | None = None
    _metadata: tuple[tuple[str, str], ...] = field(default=())

    @property
    def planner(self) -> PlannerServiceStub:
        """The planner's methods."""
        return PlannerServiceStub(self._connected())

    @property
    def accounting(self) -> AccountingServiceStub:
        """Accounting's methods."""
        return AccountingServiceStub(self._connected())

    @property
    def deployment(self) -> DeploymentServiceStub:
        """The gateway's methods for the whole deployment."""
        return DeploymentServiceStub(self._connected())

    @property
    def recovery(self) -> RecoveryServiceStub:
        """The planner's methods for recoveries."""
        return RecoveryServiceStub(self._connected())

    @property
    def ledger(self) -> LedgerServiceStub:
        """Accounting's methods for its whole ledger."""
        return LedgerServiceStub(self._connected())

    def call(
        self,
        method: grpc.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> Response:
        """The answer to one request. Raises: the error of the taxonomy that the service gave."""
        try:
            return method(request, timeout=timeout_s, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._explained(error) from None

    def stream(self, method: grpc.UnaryStreamMultiCallable[Request, Response], request: Request) -> Iterator[Response]:
        """The answers to one request, one by one. Raises: the error of the taxonomy that the service gave."""
        try:
            yield from method(request, timeout=SLOW_CALL_TIMEOUT_S, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._explained(error) from None

    def close(self) -> None:
        """Ends the connection."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _explained(self, error: grpc.RpcError) -> SrBenchError:
        found = wire.to_error(error)
        if found.reason == "UNAVAILABLE":
            return Unreachable("UNAVAILABLE", f"the service at {self.url} does not answer; its logs are in its store")
        return found

    def _connected(self) -> grpc.Channel:
        if self._channel is None:
            token = client_token(self.location)
            health = self._find(token)
            address = f"{_host(self.url)}:{health.grpc_port}"
            self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
            self._channel = _channel(address, secure=self.url.startswith("https:"))
        return self._channel

    def _find(self, token: str) -> Health:
        """The health of the service, started first where that is allowed."""
        location = self.location
        record = None if location.explicit_url else service_files.running(location.store)
        self.url = record.url if record else location.url
        # The service of this store would have left a record: whoever else holds the default port is left alone.
        may_pass_by = record is None and location.may_autostart and self.autostart
        try:
            health = probe(self.url, token, KNOWN_S if record or location.explicit_url else UNKNOWN_S)
        except (Unauthenticated, Conflict):
            if not may_pass_by:
                raise
            health = None
        foreign = bool(health and location.checks_store and health.store_id != service_files.store_id(location.store))
        if foreign and not (location.may_autostart and self.autostart):
            raise Conflict(
                "OTHER_STORE",
                f"the service at {self.url} serves another store than {location.store}; choose another --url or --store",
                url=self.url,
            )
        if health is None or foreign:
            health = self._start(token)
        return health if health.ready or self.takes_unready else self._wait_until_ready(token)

    def _start(self, token: str) -> Health:
        location = self.location
        if location.explicit_url:
            raise Unreachable("NO_SERVICE", f"no service answers at {self.url}", url=self.url)
        if location.managed:
            raise Unreachable("NO_SERVICE", "the stack of this workspace does not run; start it with `vllm-sr serve`")
        if not self.autostart:
            raise Unreachable(
                "NO_SERVICE", f"no service answers at {self.url}; start it with `sr-bench serve`", url=self.url
            )
        record = _started(location.store, urlsplit(location.url).port or 0)
        self.url = record.url
        self.notice(f"started the service at {record.url} on the store {location.store}")
        health = probe(record.url, token, KNOWN_S)
        if health is None:
            raise Unreachable("NO_SERVICE", f"the service at {record.url} stopped right after its start", url=record.url)
        return health

    def _wait_until_ready(self, token: str) -> Health:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            health = probe(self.url, token)
            if health and health.ready:
                return health
            time.sleep(0.05)
        raise Unreachable("NOT_READY", f"the service at {self.url} answers but is not ready", url=self.url)


def _host(url: str) -> str:
    host = urlsplit(url).hostname or ""
    return f"[{host}]" if ":" in host else host


def _channel(address: str, *, secure: bool) -> grpc.Channel:
    options = list(wire.CHANNEL_OPTIONS)
    if is_loopback(address.rpartition(":")[0]):
        # A proxy named in the environment has no way to this machine's loopback.
        options.append(("grpc.enable_http_proxy", 0))
    if secure:
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(), options=options)
    return grpc.insecure_channel(address, options=options)


def _started(store: Path, port: int) -> ServiceRecord:
    """The record of a service started on `port`, or on any port when that is taken: the record tells where it is."""
    environment = dict(os.environ)
    if _is_free(port):
        try:
            return lifecycle.start(store, ["--port", str(port)], environment)
        except Unreachable:
            # Somebody may have been faster at the port; every other reason will show again.
            if _is_free(port):
                raise
    return lifecycle.start(store, ["--port", "0"], environment)


def _is_free(port: int) -> bool:
    from srbench_cli.supervisor import check_ports

    try:
        check_ports("127.0.0.1", port)
    except Conflict:
        return False
    return True
