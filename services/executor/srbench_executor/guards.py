"""What ends an answer early: a text that only repeats itself. Pure."""

from __future__ import annotations


class RepetitionGuard:
    """Watches a growing text for a tail that repeats itself.

    It fires when some period of 1 to `window` characters has recurred, without a break up to the end, for at least
    `window * limit` characters after its first occurrence, so that at least `limit` copies of any period follow the first.
    Short periods need as many characters as long ones: a ruled line of 640 dashes is no loop.

    It looks whenever half a window of new text has come, so a loop is seen at most that late; one look is one search of a
    bounded tail, which makes the cost per character constant.
    """

    __slots__ = ("_held", "_interval", "_new", "_parts", "_span", "_window")

    def __init__(self, window: int, limit: int) -> None:
        """`window`: the longest period, in characters; `limit`: how often it must recur."""
        self._window = max(1, window)
        self._span = self._window * max(1, limit)
        self._interval = max(32, self._window // 2)
        self._parts: list[str] = []
        self._held = 0
        self._new = 0

    def push(self, piece: str) -> bool:
        """Adds `piece` to the text; whether the text repeats itself now."""
        self._parts.append(piece)
        self._held += len(piece)
        self._new += len(piece)
        return self._new >= self._interval and self._held > self._span and self._look()

    def finish(self) -> bool:
        """Whether the whole text, now at its end, repeats itself."""
        return self._held > self._span and self._look()

    def _look(self) -> bool:
        tail = "".join(self._parts)[-(self._span + self._window) :]
        self._parts, self._held, self._new = [tail], len(tail), 0
        # The last `span` characters are found again `p` places further left exactly when the tail has the period `p`.
        return tail.rfind(tail[-self._span :], 0, len(tail) - 1) >= 0
