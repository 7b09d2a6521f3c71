"""The one taxonomy of errors. Knows no gRPC and no HTTP; `wire` and the gateway hold the tables for those borders."""

from __future__ import annotations

from typing import ClassVar


class SrBenchError(Exception):
    """An error that a caller can act on.

    Attributes:
        reason: stable code in capitals; programs branch on it.
        message: one sentence for people; may be reworded. Names the field, the value and what was expected.
        facts: what the message mentions, as text.
    """

    kind: ClassVar[str] = "internal"

    def __init__(self, reason: str, message: str, **facts: object) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.facts: dict[str, str] = {key: str(value) for key, value in facts.items()}

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        # An error of another process keeps its reason and its facts.
        return _again, (type(self), self.reason, self.message, self.facts)


def _again(kind: type[SrBenchError], reason: str, message: str, facts: dict[str, str]) -> SrBenchError:
    error = kind.__new__(kind)
    SrBenchError.__init__(error, reason, message, **facts)
    return error


class InvalidInput(SrBenchError):
    """It can never succeed as sent."""

    kind = "invalid_input"


class NotFound(SrBenchError):
    """The thing named is not there, or is not the caller's."""

    kind = "not_found"


class Conflict(SrBenchError):
    """The state of the thing forbids this."""

    kind = "conflict"


class Exhausted(SrBenchError):
    """A budget, a rate or a store is used up."""

    kind = "exhausted"


class Unreachable(SrBenchError):
    """No answer from outside; it may work later."""

    kind = "unreachable"


class Unauthenticated(SrBenchError):
    """No token, or a wrong one."""

    kind = "unauthenticated"


class Forbidden(SrBenchError):
    """The caller is known and may not do this."""

    kind = "forbidden"


class DataLoss(SrBenchError):
    """Stored bytes do not match their digest."""

    kind = "data_loss"


# Exit codes of the command line, by kind; any other exception is a bug and exits 70.
EXIT_CODES: dict[str, int] = {
    "invalid_input": 2,
    "not_found": 3,
    "conflict": 4,
    "exhausted": 5,
    "unreachable": 6,
    "unauthenticated": 7,
    "forbidden": 8,
    "data_loss": 9,
}
EXIT_BUG = 70

# HTTP status of the gateway, by kind; any other exception is a bug and answers 500.
HTTP_STATUS: dict[str, int] = {
    "invalid_input": 400,
    "not_found": 404,
    "conflict": 409,
    "exhausted": 429,
    "unreachable": 503,
    "unauthenticated": 401,
    "forbidden": 403,
    "data_loss": 500,
}
