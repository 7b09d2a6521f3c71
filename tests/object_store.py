"""A real S3 API server for tests (moto, a process of its own), behind a door that can be shut: then the store is away."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.ports import free_port

BUCKET = "evidence"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}


@dataclass
class Door:
    """Passes connections on to `port`; while it is shut they are refused, and those in hand are cut."""

    port: int
    front: int = field(default_factory=free_port)
    pass_bytes: int | None = None
    """With a number: cuts each connection after so many bytes from the client."""
    flowing: threading.Event = field(default_factory=threading.Event)
    """Cleared, the door takes connections and bytes and passes nothing on: a store that does not answer."""
    _listener: socket.socket | None = None
    _open: list[socket.socket] = field(default_factory=list)

    def open(self) -> None:
        self.flowing.set()
        listener = socket.create_server(("127.0.0.1", self.front), backlog=128)
        self._listener = listener
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()

    def shut(self) -> None:
        self.flowing.set()
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            behind = socket.create_connection(("127.0.0.1", self.port))
            self._open += [client, behind]
            threading.Thread(target=self._pump, args=(client, behind, self.pass_bytes), daemon=True).start()
            threading.Thread(target=self._pump, args=(behind, client, None), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, most: int | None) -> None:
        passed = 0
        with suppress(OSError):
            while data := source.recv(65536):
                if most is not None and passed + len(data) > most:
                    break
                passed += len(data)
                self.flowing.wait()
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@dataclass
class ObjectStore:
    """The server, its door, and the address that services are given."""

    door: Door
    prefix: str = "fleet"

    @property
    def url(self) -> str:
        return f"s3://{BUCKET}/{self.prefix}?endpoint_override=127.0.0.1:{self.door.front}&scheme=http&region=us-east-1"


@contextmanager
def running_object_store() -> Iterator[ObjectStore]:
    """A server with an empty bucket. The caller's environment must hold `CREDENTIALS` before pyarrow makes a client."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    door = Door(port)
    try:
        _make_bucket(port)
        door.open()
        yield ObjectStore(door)
    finally:
        door.shut()
        process.kill()
        process.wait()


def _make_bucket(port: int) -> None:
    import urllib.request

    deadline = time.monotonic() + 60
    while True:
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
            urllib.request.urlopen(request, timeout=5).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the S3 server did not start"
            time.sleep(0.1)
