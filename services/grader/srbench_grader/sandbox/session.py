"""A program in a sandbox, from its start to its end: talks to it, bounds what is read of it, and ends it for certain."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from srbench_kit.errors import SrBenchError

End: TypeAlias = Literal["exited", "timeout", "output_limit"]
STDERR_TAIL_BYTES = 8192
_CHUNK = 65536
_LOOK_S = 1.0
# A look that takes so much longer than it may was no look: this process, or the whole machine, stood still.
_STANDSTILL_S = 0.5
_END_S = 20.0
_LAST_WORDS_S = 3.0
OUT_OF_MEMORY_EXIT = 137


class SandboxEnded(SrBenchError):
    """The program is over, or was ended, before it had said what it was asked for. Attributes as in `Finished`."""

    def __init__(self, end: End, message: str) -> None:
        super().__init__("SANDBOX_ENDED", message)
        self.end = end


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a program ended.

    Attributes:
        end: `exited` by itself (or killed by its own limits), `timeout`, or `output_limit`.
        exit_code: as a shell has it; 137 for a program that was killed, by its memory limit for one.
        stderr: its last bytes.
        wall_s: how long it lived.
    """

    end: End
    exit_code: int
    stdout: bytes
    stderr: bytes
    wall_s: float


class Session:
    """One running sandbox. Not for several threads at a time.

    Its time is what passes while this process looks: a machine that stands still takes none from the program.
    `kill` ends all its processes whatever they do; `clean` removes what the backend made for it.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        *,
        kill: Callable[[], None],
        clean: Callable[[], None],
        wall_s: float,
        output_bytes: int,
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._kill, self._clean = kill, clean
        self._stood_still_s = 0.0
        self._began = self._now()
        self._deadline = self._began + wall_s
        self._most = output_bytes
        self._in, self._out, self._err = process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno()
        self._pending = memoryview(b"")
        self._received = bytearray()
        self._tail = bytearray()
        self._stderr_bytes = 0
        self._closed = False
        self._selector = selectors.DefaultSelector()
        for descriptor in (self._in, self._out, self._err):
            os.set_blocking(descriptor, False)
        self._selector.register(self._out, selectors.EVENT_READ)
        self._selector.register(self._err, selectors.EVENT_READ)

    @property
    def alive(self) -> bool:
        """Whether the program still runs and could be asked something."""
        return not self._closed and self._process.poll() is None and self._now() < self._deadline

    def exchange(self, request: bytes, *, header_bytes: int, most_bytes: int, timeout_s: float) -> tuple[bytes, bytes]:
        """Writes `request`; returns the next line (at most `header_bytes`) and the bytes it announces in front: `n ...`.

        Raises: `SandboxEnded` for an end, silence beyond `timeout_s`, more than `most_bytes`, or something else than that.
        """
        deadline = min(self._deadline, self._now() + timeout_s)
        self._pending = memoryview(request)
        self._selector.register(self._in, selectors.EVENT_WRITE)
        try:
            line = self._line(header_bytes, deadline)
            count = _count(line)
            if count > most_bytes:
                raise SandboxEnded("output_limit", f"the program wrote more than {most_bytes} bytes")
            while len(self._received) < count:
                self._turn(deadline, count)
            payload = bytes(self._received[:count])
            del self._received[:count]
            return line, payload
        except BrokenPipeError:
            raise SandboxEnded("exited", "the program ended before it took its input") from None
        finally:
            self._stop_writing()

    def finish(self, stdin: bytes = b"") -> Finished:
        """Writes `stdin`, closes it, reads to the end, and takes the sandbox away."""
        end: End = "exited"
        self._pending = memoryview(stdin)
        with contextlib.suppress(KeyError):
            self._selector.register(self._in, selectors.EVENT_WRITE)
        try:
            while self._selector.get_map():
                if not self._pending:
                    self._hang_up()
                self._turn(self._deadline, self._most, ends=True)
        except BrokenPipeError:
            self._hang_up()
            end = self._drain()
        except SandboxEnded as ended:
            end = ended.end
        code = self._code(end)
        self.close()
        return Finished(
            end=end,
            exit_code=code,
            stdout=bytes(self._received[: self._most]),
            stderr=bytes(self._tail),
            wall_s=self._now() - self._began,
        )

    def close(self) -> None:
        """Ends the program, if it still runs, and removes what was made for it. May be called again."""
        if self._closed:
            return
        self._closed = True
        try:
            self._kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
            if self._process.returncode is None:
                self._process.kill()
                self._process.wait(_END_S)
        finally:
            self._selector.close()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                with contextlib.suppress(OSError):
                    assert stream is not None
                    stream.close()
            self._clean()

    def last_words(self) -> str:
        """Ends the program; how it ended and the last that it wrote to standard error, for who wants to know why."""
        deadline = self._now() + _LAST_WORDS_S
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(self._out)
        self._stop_writing()
        with contextlib.suppress(SandboxEnded):
            while self._selector.get_map():
                self._turn(deadline, self._most, ends=True)
        # Closed streams announce an end, which comes a moment later, or never.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.0 if self._selector.get_map() else _END_S)
        ended = self._process.returncode
        code = self._code("exited" if ended is not None else "timeout")
        how = f"exit code {code}" if ended is not None else "ended for its silence"
        return f"{how}: {self._tail.decode('utf-8', 'replace').strip()[-300:] or 'no message'}"

    def _drain(self) -> End:
        try:
            while self._selector.get_map():
                self._turn(self._deadline, self._most, ends=True)
        except SandboxEnded as ended:
            return ended.end
        return "exited"

    def _code(self, end: End) -> int:
        if end != "exited":
            self._kill()
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return OUT_OF_MEMORY_EXIT
        return code if code >= 0 else 128 - code

    def _line(self, most: int, deadline: float) -> bytes:
        while (place := self._received.find(b"\n", 0, most)) < 0:
            if len(self._received) >= most:
                raise SandboxEnded("output_limit", "the program wrote something else than its runner would")
            self._turn(deadline, most)
        line = bytes(self._received[:place])
        del self._received[: place + 1]
        return line

    def _turn(self, deadline: float, wanted: int, *, ends: bool = False) -> None:
        """Waits for one thing to happen: input taken, output come."""
        left_s = deadline - self._now()
        if left_s <= 0:
            raise SandboxEnded("timeout", "the program took too long")
        for key, _ in self._look(min(left_s, _LOOK_S)):
            if key.fd == self._in:
                self._write()
            elif key.fd == self._out:
                self._read_out(wanted, ends=ends)
            else:
                self._read_err()

    def _look(self, wait_s: float) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready within `wait_s`."""
        began = time.monotonic()
        found = self._selector.select(wait_s)
        late_s = time.monotonic() - began - wait_s
        if late_s > _STANDSTILL_S:
            self._stood_still_s += late_s
        return found

    def _now(self) -> float:
        """The monotonic clock without the time that this process was seen to stand still."""
        return time.monotonic() - self._stood_still_s

    def _write(self) -> None:
        try:
            self._pending = self._pending[os.write(self._in, self._pending[:_CHUNK]) :]
        except BlockingIOError:
            return
        if not self._pending:
            self._stop_writing()

    def _read_out(self, wanted: int, *, ends: bool) -> None:
        data = os.read(self._out, _CHUNK)
        if not data:
            self._selector.unregister(self._out)
            if not ends:
                raise SandboxEnded("exited", "the program ended the sandbox")
        self._received += data
        if ends and len(self._received) > wanted:
            raise SandboxEnded("output_limit", f"the program wrote more than {wanted} bytes")

    def _read_err(self) -> None:
        data = os.read(self._err, _CHUNK)
        if not data:
            self._selector.unregister(self._err)
        self._stderr_bytes += len(data)
        self._tail = (self._tail + data)[-STDERR_TAIL_BYTES:]
        if self._stderr_bytes > self._most:
            raise SandboxEnded("output_limit", f"the program wrote more than {self._most} bytes of errors")

    def _stop_writing(self) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(self._in)

    def _hang_up(self) -> None:
        self._stop_writing()
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._pending = memoryview(b"")


def _count(line: bytes) -> int:
    """The number in front of a header line."""
    head = line.split(b" ", 1)[0]
    if not head.isdigit() or len(head) > 12:
        raise SandboxEnded("exited", "the program wrote something else than its runner would")
    return int(head)
