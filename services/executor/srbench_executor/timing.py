"""When the first token came, by the clock that saw it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from srbench_kit.chatparts import CLOSE, OPEN


class AnswerGate:
    """Tells when the final channel of an answer begins: content that is not blank and not inside `<think>`."""

    __slots__ = ("_state", "_tail", "opened")

    def __init__(self) -> None:
        self.opened = False
        self._tail = ""
        self._state = "start"

    def push(self, piece: str) -> None:
        """Reads the next piece of content; sets `opened` once the final channel has begun."""
        if self._state == "start":
            self._tail = (self._tail + piece).lstrip()
            if self._tail.startswith(OPEN):
                self._state, piece, self._tail = "thinking", self._tail, ""
            else:
                self.opened = bool(self._tail) and not OPEN.startswith(self._tail)
                return
        if self._state == "thinking":
            seen = self._tail + piece
            found = seen.find(CLOSE)
            if found < 0:
                self._tail = seen[-(len(CLOSE) - 1) :]
                return
            self._state, piece = "after", seen[found + len(CLOSE) :]
        self.opened = bool(piece.strip())


class FirstToken:
    """Finds the times of the first token and of the first piece of the final channel.

    Attributes:
        token_ns: monotonic time at which the first piece of content or reasoning arrived.
        content_ns: the same for the final channel.
        lag_ns: how much later than `token_ns` the event loop read it.
        kernel: whether `token_ns` is the kernel's receive stamp.
    """

    __slots__ = ("_began_burst", "_began_ns", "_gate", "content_ns", "kernel", "lag_ns", "token_ns")

    def __init__(self) -> None:
        self.token_ns: int | None = None
        self.content_ns: int | None = None
        self.lag_ns: int | None = None
        self.kernel = False
        self._began_ns = 0
        self._began_burst = -1
        self._gate = AnswerGate()

    def event_began(self, arrival_ns: int, burst: int) -> None:
        """The event that is still open began in a piece with this arrival."""
        self._began_ns, self._began_burst = arrival_ns, burst

    def pieces(
        self,
        content: Sequence[str],
        reasoning: Sequence[str],
        *,
        arrival_ns: int,
        kernel: bool,
        burst: int,
        was_inside: bool,
        now_ns: int,
    ) -> None:
        """Content or reasoning came in a piece. `was_inside`: its event began in an earlier piece.

        An event that began in an earlier piece of the same burst was in the kernel's hands by then: that piece's stamp is
        its own, while this piece may already end in the next segment.
        """
        if was_inside and burst == self._began_burst:
            arrival_ns = self._began_ns
        if self.token_ns is None and (content or reasoning):
            self.token_ns, self.kernel = arrival_ns, kernel
            self.lag_ns = max(0, now_ns - arrival_ns)
        if self.content_ns is None:
            for piece in content:
                self._gate.push(piece)
                if self._gate.opened:
                    self.content_ns = arrival_ns
                    break
