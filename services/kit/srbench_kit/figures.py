"""Numbers as people read them. What is unknown is called unknown, never zero; what is exact stays exact."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

UNKNOWN = "unknown"
_PICO = Decimal(10) ** 12
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_HALF_EVEN)


def usd(picodollars: int | None) -> str:
    """US dollars with cents or four significant digits, whichever says more; `unknown` for `None`."""
    if picodollars is None:
        return UNKNOWN
    exact = Decimal(picodollars) / _PICO
    if exact == 0:
        return "$0"
    if abs(exact) >= 100:
        return f"${exact:.2f}"
    text = f"{_FOUR_DIGITS.create_decimal(exact):f}"
    return "$" + (text.rstrip("0").rstrip(".") if "." in text else text)


def percent(part: float | None) -> str:
    """A part of one as percent with one decimal; `unknown` for `None`."""
    return UNKNOWN if part is None else f"{100 * part:.1f} %"


def interval(ends: tuple[float, ...]) -> str:
    """A 95% interval of a part of one as `[lower, upper]` in percent; empty without ends."""
    return f"[{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]" if len(ends) == 2 else ""


def seconds(value: float | None) -> str:
    """A duration in the unit that fits; `unknown` for `None`."""
    if value is None:
        return UNKNOWN
    if value < 0.9995:
        return f"{1000 * value:.0f} ms" if value >= 0.01 or value == 0 else f"{1000 * value:.1f} ms"
    return f"{value:.2f} s" if value < 60 else clock(value)


def clock(value: float) -> str:
    """A longer duration as `1:02:03`, `2:03` or `7 s`."""
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def count(value: int | None) -> str:
    """A number of things, all its digits; `unknown` for `None`."""
    return UNKNOWN if value is None else str(value)
