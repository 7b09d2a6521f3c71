"""How providers lay out the prompt side of a usage object, and how a layout is told when none is declared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from srbench_accounting.usage_fields import Counts


class Dialect(Enum):
    """The shape of an endpoint's usage object, as declared for a target."""

    DETECT = "detect"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    DEEPSEEK = "deepseek"
    GEMINI = "gemini"
    # A child of a router's receipt: totals include the cached parts.
    ROUTER = "router"


class Layout(Enum):
    """What the prompt number counts."""

    # Everything: cache reads and writes are parts of it.
    INCLUSIVE = "inclusive"
    # Fresh tokens only: cache reads and writes stand beside it.
    EXCLUSIVE = "exclusive"
    # Hits and misses add up to the prompt.
    SPLIT = "split"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How one usage object is to be read.

    Attributes:
        layout: what its prompt number counts.
        base: that number; `None` when there is none to believe.
        write_free: whether the provider has no charge for cache writes, so that silence about them means none.
        fault: why it cannot be read; the prompt side is unknown then.
    """

    layout: Layout
    base: int | None
    write_free: bool = False
    fault: str | None = None


_ANTHROPIC_NAMES = frozenset({"cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"})
_SPLIT_NAMES = frozenset({"prompt_cache_hit_tokens", "prompt_cache_miss_tokens"})
_RESPONSES_NAMES = frozenset({"input_tokens_details", "output_tokens_details"})


def shape_of(counts: Counts, dialect: Dialect) -> Shape:
    """How `counts` are to be read under a declared dialect, or by their own names when it is `DETECT`."""
    match dialect:
        case Dialect.ANTHROPIC:
            return _anthropic(counts)
        case Dialect.OPENAI | Dialect.GEMINI:
            return _inclusive_only(counts)
        case Dialect.DEEPSEEK:
            return _split(counts) if counts.named & _SPLIT_NAMES else _inclusive_only(counts)
        case _:
            return _detected(counts, router=dialect is Dialect.ROUTER)


def _detected(counts: Counts, *, router: bool) -> Shape:
    if counts.named & _SPLIT_NAMES:
        return _split(counts)
    write_free = "prompt_tokens_details.cached_tokens" in counts.named if router else not counts.named & _ANTHROPIC_NAMES
    if counts.prompt.reported:
        return _named_prompt(counts, write_free)
    base = counts.input.value
    if router or counts.named & _RESPONSES_NAMES or _total_is(counts, base, exclusive=False):
        layout = Layout.EXCLUSIVE if _total_is(counts, base, exclusive=True) else Layout.INCLUSIVE
        return Shape(layout=layout, base=base, write_free=write_free)
    # Bare `input_tokens` and `output_tokens` are Anthropic's, unless a total stands beside them: Anthropic gives none.
    if counts.named & _ANTHROPIC_NAMES or (counts.input.reported and not counts.total.reported):
        return Shape(layout=Layout.EXCLUSIVE, base=base)
    return Shape(layout=Layout.INCLUSIVE, base=base, write_free=write_free)


def _named_prompt(counts: Counts, write_free: bool) -> Shape:
    """`prompt_tokens` is there; `input_tokens` may repeat it, or give the fresh part of it."""
    prompt, fresh = counts.prompt.value, counts.input.value
    if counts.prompt.broken or counts.input.broken:
        return Shape(layout=Layout.INCLUSIVE, base=None, write_free=write_free)
    if fresh is not None and prompt is not None and fresh != prompt:
        if fresh + _beside(counts) != prompt:
            return Shape(layout=Layout.INCLUSIVE, base=None, fault="contradictory_prompt")
        return Shape(layout=Layout.INCLUSIVE, base=prompt, write_free=write_free)
    if _total_is(counts, prompt, exclusive=True):
        return Shape(layout=Layout.EXCLUSIVE, base=prompt, write_free=write_free)
    return Shape(layout=Layout.INCLUSIVE, base=prompt, write_free=write_free)


def _inclusive_only(counts: Counts) -> Shape:
    if counts.prompt.reported:
        shape = _named_prompt(counts, write_free=True)
    else:
        foreign = bool(counts.named & _ANTHROPIC_NAMES) and not counts.named & _RESPONSES_NAMES
        if foreign or _total_is(counts, counts.input.value, exclusive=True):
            return Shape(layout=Layout.INCLUSIVE, base=None, fault="dialect_violated")
        shape = Shape(layout=Layout.INCLUSIVE, base=counts.input.value, write_free=True)
    if shape.layout is Layout.EXCLUSIVE:
        return Shape(layout=Layout.INCLUSIVE, base=None, fault="dialect_violated")
    return shape


def _anthropic(counts: Counts) -> Shape:
    base = counts.input.value
    foreign = counts.prompt.reported and not counts.input.reported
    if foreign or counts.named & _RESPONSES_NAMES or _total_is(counts, base, exclusive=False):
        return Shape(layout=Layout.EXCLUSIVE, base=None, fault="dialect_violated")
    if counts.prompt.value is not None and counts.prompt.value not in (base, (base or 0) + _beside(counts)):
        return Shape(layout=Layout.EXCLUSIVE, base=None, fault="contradictory_prompt")
    return Shape(layout=Layout.EXCLUSIVE, base=base)


def _split(counts: Counts) -> Shape:
    stated = counts.prompt if counts.prompt.reported else counts.input
    if stated.broken or counts.miss.broken or counts.cached.broken:
        return Shape(layout=Layout.SPLIT, base=None, fault="contradictory_prompt")
    return Shape(layout=Layout.SPLIT, base=stated.value, write_free=True)


def _beside(counts: Counts) -> int:
    """Cache reads and writes together, as far as they are known."""
    return (counts.cached.value or 0) + (counts.written.value or 0)


def _total_is(counts: Counts, base: int | None, *, exclusive: bool) -> bool:
    """Whether `total_tokens` can be explained with cache tokens beside `base` (or within it), and not the other way."""
    beside, total, output = _beside(counts), counts.total.value, counts.output.value
    if base is None or total is None or output is None or beside == 0:
        return False
    outputs = {output, output + (counts.reasoning.value or 0)}
    outside = total - base - beside in outputs
    within = total - base in outputs
    return outside and not within if exclusive else within and not outside
