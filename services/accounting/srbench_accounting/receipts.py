"""A router's own receipt for one request: which models it called and what each of them used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from srbench_accounting.dialects import Dialect
from srbench_accounting.usage import Reading, read_usage

if TYPE_CHECKING:
    from srbench_kit.values import Json

VERSION = 1
MOST_CALLS = 256


@dataclass(frozen=True, slots=True)
class ReceiptCall:
    """One inference call of a router, with its usage as the router tells it."""

    model: str
    reading: Reading


@dataclass(frozen=True, slots=True)
class RouterReceipt:
    """What a router says that one request cost it.

    Attributes:
        complete: whether it lists every call that was made.
        calls: the calls in the order of the receipt.
    """

    complete: bool
    calls: tuple[ReceiptCall, ...]


class BadReceipt(ValueError):
    """The receipt does not have the agreed form; the message names the part that is wrong."""


def read_receipt(raw: Json, *, dialect: Dialect = Dialect.DETECT, silent_cache: bool = False) -> RouterReceipt:
    """The receipt in `raw`. Raises `BadReceipt` for everything that is not exactly one.

    Args:
        dialect: the target's declared dialect; with `DETECT`, totals include the cached parts.
        silent_cache: as in `read_usage`.
    """
    if not isinstance(raw, dict):
        raise BadReceipt("the receipt is not an object")
    version, complete, calls = raw.get("version"), raw.get("complete"), raw.get("calls")
    if isinstance(version, bool) or not isinstance(version, int) or version != VERSION:
        raise BadReceipt("version is not 1")
    if not isinstance(complete, bool):
        raise BadReceipt("complete is not a boolean")
    if not isinstance(calls, list) or not 1 <= len(calls) <= MOST_CALLS:
        raise BadReceipt(f"calls is not an array of 1 to {MOST_CALLS} entries")
    child_dialect = Dialect.ROUTER if dialect is Dialect.DETECT else dialect
    return RouterReceipt(complete, tuple(_read_call(call, child_dialect, silent_cache) for call in calls))


def _read_call(raw: Json, dialect: Dialect, silent_cache: bool) -> ReceiptCall:
    if not isinstance(raw, dict):
        raise BadReceipt("an entry of calls is not an object")
    model = raw.get("model")
    if not isinstance(model, str) or not model:
        raise BadReceipt("the model of an entry of calls is not a name")
    return ReceiptCall(model, read_usage(raw.get("usage"), dialect=dialect, silent_cache=silent_cache))
