"""Texts in CSV files that people open: no spreadsheet takes one for a formula, and each can be read back."""

from __future__ import annotations

# A cell that begins so is taken for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def plain(text: str) -> str:
    """`text` with an apostrophe before what would be a formula: models and strangers write what they like."""
    return f"'{text}" if _is_marked(f"'{text}") else text


def read_back(cell: str) -> str:
    """The text of which `plain` made `cell`."""
    return cell[1:] if _is_marked(cell) else cell


def _is_marked(cell: str) -> bool:
    return cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA)
