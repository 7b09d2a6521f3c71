"""A provider's usage object as four exclusive token buckets. What cannot be known is `None`, never zero."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from srbench_accounting.dialects import Dialect, Layout, Shape, shape_of
from srbench_accounting.usage_fields import COUNTED_NAMES, Count, Counts, charged_beside, read_counts

if TYPE_CHECKING:
    from srbench_kit.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call, or of several together.

    Attributes:
        input_tokens: prompt tokens that no cache read or write touched.
        cached_input_tokens: prompt tokens served from a cache.
        cache_write_tokens: prompt tokens written to a cache.
        output_tokens: generated tokens, reasoning included.
        prompt_tokens: all prompt tokens; may be known when their split is not. The sum of the first three when all
            are known.
        cache_write_1h_tokens: the part of `cache_write_tokens` in a cache that lives an hour; `None` when not told.
        output_tokens_at_least: what a cut stream had counted when it ended; a bound, not the output.
        write_charged: whether an unknown `cache_write_tokens` may be above zero.
    """

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    output_tokens_at_least: int = 0
    write_charged: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a usage object says.

    Attributes:
        usage: the buckets.
        flags: why a bucket is unknown, as stable words in alphabetical order; empty when nothing was wrong.
        cache_read_reported: whether the endpoint itself gave a believable count of cached input; `None` when there
            was no usage object.
        charged_beside: whether it counts what no price of tokens covers, such as searches: then the buckets' cost is only
            a lower bound.
    """

    usage: Usage
    flags: tuple[str, ...] = ()
    cache_read_reported: bool | None = None
    charged_beside: bool = False


def read_usage(
    raw: Json,
    *,
    dialect: Dialect = Dialect.DETECT,
    silent_cache: bool = False,
    final: bool = True,
    prompt_sent: bool = True,
    output_seen: bool = False,
) -> Reading:
    """The buckets of a usage object; `docs/compatibility.md` tells the rules and how they differ from sr-bench 1.0.

    Args:
        raw: the object as it came, merged over the stream; anything but an object is no usage.
        dialect: its declared shape; a shape that is declared and not kept makes the buckets unknown.
        silent_cache: the target declares that its provider neither reports nor discounts cached input, so that
            silence about it is a zero.
        final: whether the stream came to its own end. A cut stream's output count is only a lower bound.
        prompt_sent: whether the request had a prompt, so that a count of zero is impossible.
        output_seen: whether text arrived, so that an output count of zero is impossible.
    """
    if raw is None or raw == {}:
        return Reading(usage=Usage(), flags=("no_usage",))
    if not isinstance(raw, dict):
        return Reading(usage=Usage(), flags=("malformed_usage",))
    counts = read_counts(raw)
    shape = shape_of(counts, dialect)
    usage, flags = _prompt_side(counts, shape, silent_cache=silent_cache, prompt_sent=prompt_sent)
    stated = _stated_prompt(usage, shape)
    output, output_flags = _output(counts, stated, dialect, output_seen=output_seen)
    flags = [*counts.flags, *flags, *output_flags]
    usage = replace(usage, output_tokens=output)
    if "contradictory_numbers" in flags or shape.fault == "dialect_violated":
        usage = Usage()
    if not final:
        flags.append("usage_not_final")
        usage = replace(usage, output_tokens=None, output_tokens_at_least=usage.output_tokens or 0)
    if COUNTED_NAMES.isdisjoint(raw):
        flags.append("unknown_usage_names")
    beside = charged_beside(raw)
    if beside:
        flags.append("charged_beside_tokens")
    reported = counts.cached.value is not None and usage.cached_input_tokens is not None
    return Reading(usage=usage, flags=tuple(sorted(set(flags))), cache_read_reported=reported, charged_beside=beside)


def _prompt_side(counts: Counts, shape: Shape, *, silent_cache: bool, prompt_sent: bool) -> tuple[Usage, list[str]]:
    if shape.fault:
        return Usage(), [shape.fault]
    cached, written = counts.cached, counts.written
    if silent_cache and not cached.reported and shape.layout is not Layout.SPLIT:
        cached = Count(0)
        written = written if written.reported else Count(0)
    match shape.layout:
        case Layout.INCLUSIVE:
            usage, flags = _inclusive(shape, cached, written)
        case Layout.EXCLUSIVE:
            usage, flags = _exclusive(shape, cached, written)
        case Layout.SPLIT:
            usage, flags = _split(shape, cached, written, counts.miss)
    if prompt_sent and _is_zero(usage):
        return Usage(write_charged=usage.write_charged), [*flags, "impossible_zero_prompt"]
    hour = counts.written_1h.value if counts.written_1h.reported and usage.cache_write_tokens is not None else None
    return replace(usage, cache_write_1h_tokens=0 if usage.cache_write_tokens == 0 else hour), flags


def _inclusive(shape: Shape, cached: Count, written: Count) -> tuple[Usage, list[str]]:
    """input = prompt - cached - written."""
    total = shape.base
    charged = not (shape.write_free and not written.reported)
    if total is not None and (cached.value or 0) + (written.value or 0) > total:
        return Usage(write_charged=charged), ["cached_exceeds_prompt"]
    write = written.value
    if write is None and not charged and cached.value is not None:
        write = 0
    fresh = None
    if total is not None and cached.value is not None and not written.broken:
        fresh = total - cached.value - (write or 0)
    usage = Usage(
        input_tokens=fresh,
        cached_input_tokens=cached.value,
        cache_write_tokens=write,
        prompt_tokens=total,
        write_charged=charged,
    )
    return usage, []


def _exclusive(shape: Shape, cached: Count, written: Count) -> tuple[Usage, list[str]]:
    """The prompt number is the fresh part; the whole is known only when all three are."""
    write = 0 if shape.write_free and not written.reported and cached.value is not None else written.value
    parts = (shape.base, cached.value, write)
    known = [part for part in parts if part is not None]
    total = sum(known) if len(known) == len(parts) else None
    usage = Usage(input_tokens=shape.base, cached_input_tokens=cached.value, cache_write_tokens=write, prompt_tokens=total)
    return usage, []


def _split(shape: Shape, hit: Count, written: Count, miss: Count) -> tuple[Usage, list[str]]:
    """Hits and misses add up to the prompt; either follows from the other and the prompt."""
    if written.broken:
        return Usage(), ["contradictory_prompt"]
    write = written.value or 0
    total, cached, fresh = shape.base, hit.value, miss.value
    if total is not None and cached is not None and fresh is None:
        fresh = total - cached - write
    if total is not None and fresh is not None and cached is None:
        cached = total - fresh - write
    if total is None and cached is not None and fresh is not None:
        total = cached + fresh + write
    if cached is not None and fresh is not None and (min(cached, fresh) < 0 or cached + fresh + write != total):
        return Usage(), ["contradictory_prompt"]
    usage = Usage(
        input_tokens=fresh,
        cached_input_tokens=cached,
        cache_write_tokens=write if cached is not None and fresh is not None else written.value,
        prompt_tokens=total,
        write_charged=False,
    )
    return usage, []


def _is_zero(usage: Usage) -> bool:
    """Whether the usage claims an empty prompt; a bare zero with nothing said of caches claims it, too."""
    if usage.prompt_tokens is not None:
        return usage.prompt_tokens == 0
    return usage.input_tokens == 0 and not usage.cached_input_tokens and not usage.cache_write_tokens


def _stated_prompt(usage: Usage, shape: Shape) -> int | None:
    """The prompt's size for checking totals; a disbelieved zero is what the total was made from."""
    if usage.prompt_tokens is None and shape.base == 0 and shape.layout is Layout.INCLUSIVE:
        return 0
    return usage.prompt_tokens


def _output(counts: Counts, prompt: int | None, dialect: Dialect, *, output_seen: bool) -> tuple[int | None, list[str]]:
    """Generated tokens. Reasoning lies within them, unless the total proves that it lies beside them."""
    # A total or a reasoning count that is not believed proves nothing; it leaves its flag and no more.
    output, reasoning, total = counts.output.value, counts.reasoning.value or 0, counts.total.value
    if output is None:
        return None, []
    if total is None or prompt is None:
        return _unproved_output(output, reasoning, total, dialect, output_seen=output_seen)
    if total == prompt + output and reasoning <= output:
        return _seen(output, output_seen)
    if reasoning and total == prompt + output + reasoning:
        return output + reasoning, []
    if total < prompt + output:
        return None, ["contradictory_numbers", "contradictory_total"]
    return None, ["contradictory_total"]


def _unproved_output(
    output: int, reasoning: int, total: int | None, dialect: Dialect, *, output_seen: bool
) -> tuple[int | None, list[str]]:
    if total is not None and total < output:
        return None, ["contradictory_total"]
    if reasoning > output:
        return None, ["reasoning_exceeds_output"]
    if dialect is Dialect.GEMINI and reasoning:
        return None, ["reasoning_unplaced"]
    return _seen(output, output_seen)


def _seen(output: int, output_seen: bool) -> tuple[int | None, list[str]]:
    return (None, ["impossible_zero_output"]) if output == 0 and output_seen else (output, [])
