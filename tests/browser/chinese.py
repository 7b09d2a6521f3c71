"""Finds English sentences on a page that should speak Chinese."""

from __future__ import annotations

from collections.abc import Iterable

from playwright.sync_api import Page

# What is not the pages' to say: code, identifiers, and what models, datasets and people wrote.
_FIND = """
names => {
  const foreign = 'pre, code, .mono, textarea, script, style, [data-verbatim]'
  const run = /(?:^|[^A-Za-z])((?:[A-Za-z][A-Za-z'\\u2019-]*[,;:]?\\s+){2,}[A-Za-z][A-Za-z'\\u2019-]*)/g
  const common = new RegExp('\\\\b(the|an?|is|are|was|were|of|not|with|to|and|in|it|no|on|by|for|has|have|from|at|this|that'
    + '|each|every|cannot|be|one|all|its?|than|only|when)\\\\b', 'i')
  const found = new Set()
  const look = text => {
    for (const name of names) text = text.replaceAll(name, '')
    for (const match of text.matchAll(run)) if (common.test(match[1])) found.add(text.trim().slice(0, 160))
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement
    const seen = parent && !parent.closest(foreign) && parent.checkVisibility({ visibilityProperty: true })
    if (seen) look(walker.currentNode.data)
  }
  for (const element of document.body.querySelectorAll('[aria-label], [title], [placeholder]')) {
    if (element.closest(foreign)) continue
    for (const name of ['aria-label', 'title', 'placeholder']) look(element.getAttribute(name) ?? '')
  }
  return [...found]
}
"""


def english(page: Page, names: Iterable[str]) -> list[str]:
    """The English sentences that a reader of the page would meet, `names` of things left out."""
    found: list[str] = page.evaluate(_FIND, sorted(names, key=len, reverse=True))
    return found
