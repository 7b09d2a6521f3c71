"""HTML of pages that stand alone: every text is escaped, nothing is loaded, nothing runs."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NewType

Html = NewType("Html", str)
Cell = str | Html

STYLE = """
:root { color-scheme: light; }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1.25rem; color: #171b24; background: #fff;
  font: 15px/1.5 system-ui, "Liberation Sans", "Noto Sans CJK SC", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .5rem 0; }
.soft { color: #4c5567; }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .875rem; }
th, td { padding: .375rem .625rem; border-bottom: 1px solid #d9dde5; text-align: left; vertical-align: top; }
thead th { color: #4c5567; font-size: .8125rem; vertical-align: bottom; }
tbody th { font-weight: 500; min-width: 6rem; overflow-wrap: break-word; }
td { min-width: 3rem; }
svg { display: block; }
.num { text-align: right; font-variant-numeric: tabular-nums; }
.verdict { border-left: 4px solid #8a93a5; padding: .25rem .875rem; margin: .75rem 0; }
.better { border-color: #0b6e55; } .worse { border-color: #b3261e; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: .5rem 0; }
dt { color: #4c5567; } dd { margin: 0; overflow-wrap: anywhere; }
code { font-family: ui-monospace, "Liberation Mono", monospace; font-size: .8125rem; }
.axis { stroke: #d9dde5; stroke-width: 2; } .range { stroke: #4a66d6; stroke-width: 4; } circle { fill: #2f4bb8; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } body { margin: 1rem auto; } }
td.num { white-space: nowrap; }
@media print { body { margin: 0; max-width: none; } .scroll { overflow: visible; }
  tr, .verdict { break-inside: avoid; } h2 { break-after: avoid; } }
"""
_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
# It holds where the gateway sends the page, and in the page itself once it is saved as a file.
_POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'"
CONTENT_SECURITY_POLICY = f"{_POLICY}; frame-ancestors 'none'"
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def text(words: object) -> Html:
    """A text of any origin as text: nothing in it is markup, and none of it changes the direction of what follows."""
    return Html(f"<bdi>{_escaped(words)}</bdi>")


def _escaped(words: object) -> str:
    return html.escape(_CONTROLS.sub("\N{REPLACEMENT CHARACTER}", str(words)))


def tag(name: str, inner: Iterable[Html] | Html, kind: str = "") -> Html:
    """An element around ready HTML; `kind` is its class."""
    content = inner if isinstance(inner, str) else "".join(inner)
    return Html(f"<{name} class={kind!r}>{content}</{name}>" if kind else f"<{name}>{content}</{name}>")


def section(title: str, *parts: Html) -> Html:
    """A titled part; nothing when it would be empty."""
    return tag("section", (tag("h2", text(title)), *parts)) if any(parts) else Html("")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; numbers stand to the right."""

    title: str
    numeric: bool = False


def table(columns: Sequence[Column], rows: Iterable[Sequence[Html]]) -> Html:
    """A table whose first cell of a row names the row; nothing without rows."""
    kinds = ["num" if column.numeric else "" for column in columns]
    heads = [
        f"<th scope=col{' class=num' if kind else ''}>{text(column.title)}</th>"
        for column, kind in zip(columns, kinds, strict=True)
    ]
    lines = [_line(row, kinds) for row in rows]
    if not lines:
        return Html("")
    head = tag("thead", tag("tr", Html("".join(heads))))
    whole = tag("table", (head, tag("tbody", lines)))
    return Html(f'<div class="scroll" tabindex="0" role="group" aria-label="table">{whole}</div>')


def _line(row: Sequence[Html], kinds: Sequence[str]) -> Html:
    first, *rest = row
    cells = [tag("td", cell, kind) for cell, kind in zip(rest, kinds[1:], strict=True)]
    return tag("tr", (Html(f"<th scope=row>{first}</th>"), *cells))


def facts(rows: Iterable[tuple[str, object]]) -> Html:
    """Names and values; those without a value are left out."""
    shown = [(name, value) for name, value in rows if value not in (None, "")]
    pairs = [Html(tag("dt", text(name)) + tag("dd", tag("code", text(value)))) for name, value in shown]
    return tag("dl", pairs) if pairs else Html("")


def sentences(said: Iterable[str]) -> Html:
    """A list of sentences; nothing without one."""
    items = [tag("li", text(each)) for each in said]
    return tag("ul", items) if items else Html("")


def interval(value: float, ends: Sequence[float]) -> Html:
    """A share in [0, 1] with its interval, drawn; nothing without ends."""
    if len(ends) != 2:
        return Html("")
    low, high, at = (round(100 * part, 2) for part in (*ends, value))
    return Html(
        f'<svg viewBox="0 0 100 12" width="100" height="12" aria-hidden="true"><line x1="0" y1="6" x2="100" y2="6" '
        f'class="axis"/><line x1="{low}" y1="6" x2="{high}" y2="6" class="range"/><circle cx="{at}" cy="6" r="3.5"/></svg>'
    )


def document(title: str, *parts: Html) -> str:
    """A whole page."""
    name = _escaped(title)
    head = (
        f'<meta charset="utf-8"><meta http-equiv="content-security-policy" content="{_escaped(_POLICY)}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">'
        f"<title>{name}</title><style>{STYLE}</style>"
    )
    return f'<!doctype html><html lang="en"><head>{head}</head><body><main>{"".join(parts)}</main></body></html>\n'
