"""Which sockets are read when, on socket pairs; nothing here waits for a timer."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from srbench_executor import connection, reads
from srbench_executor.connection import Connection
from srbench_executor.exchange import Origin
from srbench_executor.reads import Reads
from srbench_kit.completion import Headers

ORIGIN = Origin(scheme="http", host="h", port=1)
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    # The kernel dates what comes over TCP, not what comes over a pair of Unix sockets.
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs = server.accept()[0]
    ours.setblocking(False)
    connection.enable_stamps(ours)
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def never_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer does not go off within a test; what it would do is called."""
    monkeypatch.setattr(reads, "LATE_S", 3600.0)
    monkeypatch.setattr(reads, "CROWD", 0)
    monkeypatch.setattr(reads, "LOOK_S", 0.0)


@dataclass
class Ear:
    """A listener for whom every answer is dated as soon as a piece of its body has come."""

    body: bytes = b""
    ends: list[tuple[bool, int]] = field(default_factory=list)

    @property
    def wants_stamps(self) -> bool:
        return not self.body

    @property
    def is_dated(self) -> bool:
        return bool(self.body)

    def on_connected(self, connect_ns: int | None) -> None: ...

    def on_sent(self, now_ns: int) -> None: ...

    def on_head(self, status: int, headers: Headers) -> None: ...

    def on_body(self, data: bytes, arrival_ns: int, kernel: bool, burst: int) -> None:
        self.body += data

    def on_end(self, clean: bool, trailers: Headers, error: str, at_ns: int) -> None:
        self.ends.append((clean, at_ns))


async def turn() -> None:
    """Lets the loop hear what has come."""
    for _ in range(3):
        await asyncio.sleep(0.001)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def test_late_text_waits_for_the_others_and_a_peer_that_hangs_up_does_not(
    pair: tuple[socket.socket, socket.socket], never_late: None
) -> None:
    ours, theirs = pair
    found = Reads()
    heard: list[bytes] = []
    found.add(ours.fileno(), lambda: heard.append(ours.recv(100)))
    theirs.send(b"first")
    await turn()
    found.relax(ours.fileno(), late=True)
    theirs.send(b"text")
    await turn()
    found.look()
    assert heard == [b"first"]
    found._read_late()
    assert heard == [b"first", b"text"]
    theirs.send(b"end")
    theirs.shutdown(socket.SHUT_WR)
    await turn()
    assert heard[:3] == [b"first", b"text", b"end"]
    found.remove(ours.fileno())
    found.close()


async def test_late_ones_are_read_in_slices_between_which_the_loop_goes_on(
    never_late: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "SLICE", 2)
    monkeypatch.setattr(reads, "PAUSE_S", 0.001)
    rounds: list[int] = []
    heard: list[int] = []
    over = asyncio.Event()

    def after() -> None:
        rounds.append(len(heard))
        over.set()

    found = Reads(after)
    pairs = [socket.socketpair() for _ in range(5)]
    for number, (ours, theirs) in enumerate(pairs):
        ours.setblocking(False)

        def read(number: int = number, ours: socket.socket = ours) -> None:
            ours.recv(100)
            heard.append(number)

        found.add(ours.fileno(), read)
        found.relax(ours.fileno(), late=True)
        theirs.send(b"text")
    found._read_late()
    assert len(heard) == 2
    await over.wait()
    assert (sorted(heard), rounds) == ([0, 1, 2, 3, 4], [5])
    for ours, theirs in pairs:
        found.remove(ours.fileno())
        ours.close()
        theirs.close()
    found.close()


async def test_a_connection_in_a_new_exchange_is_urgent_again(
    pair: tuple[socket.socket, socket.socket], never_late: None
) -> None:
    ours, theirs = pair
    found = Reads()
    heard: list[bytes] = []
    found.add(ours.fileno(), lambda: heard.append(ours.recv(100)))
    for late in (False, True):
        found.relax(ours.fileno(), late=late)
    found.await_first(ours.fileno())
    theirs.send(b"first")
    found.look()
    assert heard == [b"first"]
    found.remove(ours.fileno())
    found.close()


async def test_a_bug_in_one_connection_is_told_and_spares_the_next(never_late: None) -> None:
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context["exception"]))
    found, heard = Reads(), []
    error = RuntimeError("bug")
    with socket.socketpair()[0] as one, socket.socketpair()[0] as two:

        def bug() -> None:
            one.recv(1)
            raise error

        reads_of: list[tuple[socket.socket, Callable[[], None]]] = [(one, bug), (two, lambda: heard.append(two.recv(1)))]
        for sock, read in reads_of:
            # A peer that is gone is heard in every group.
            found.add(sock.fileno(), read)
            found.relax(sock.fileno(), late=True)
        found._read_late()
        assert (told[:1], heard[:1]) == ([error], [b""])
        for sock, _ in reads_of:
            found.remove(sock.fileno())
    found.close()


@pytest.fixture
def late_at_once(never_late: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LATE_AFTER_NS", 0)


async def test_an_end_that_is_read_late_has_the_time_at_which_it_came(
    pair: tuple[socket.socket, socket.socket], late_at_once: None
) -> None:
    ours, theirs = pair
    found, ear, released = Reads(), Ear(), []
    open_ = Connection(ours, None, ORIGIN, released.append, found)
    open_.start(b"GET / HTTP/1.1\r\n\r\n", ear)
    theirs.send(HEAD + chunk(b"one"))
    await turn()
    assert ear.body == b"one"
    theirs.send(chunk(b"two") + b"0\r\n\r\n")
    came_ns = time.monotonic_ns()
    await turn()
    assert (ear.body, ear.ends) == (b"one", [])
    found._read_late()
    assert ear.body == b"onetwo"
    ((clean, at_ns),) = ear.ends
    assert clean
    assert at_ns <= came_ns
    assert released == [open_]
    open_.close()
    found.close()


async def test_who_is_to_be_judged_is_read_first(pair: tuple[socket.socket, socket.socket], late_at_once: None) -> None:
    ours, theirs = pair
    found, ear = Reads(), Ear()
    open_ = Connection(ours, None, ORIGIN, lambda _: None, found)
    open_.start(b"GET / HTTP/1.1\r\n\r\n", ear)
    theirs.send(HEAD + chunk(b"one"))
    await turn()
    theirs.send(chunk(b"two"))
    await turn()
    assert ear.body == b"one"
    open_.catch_up()
    assert ear.body == b"onetwo"
    open_.close()
    found.close()
