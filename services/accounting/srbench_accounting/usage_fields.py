"""The numbers in a provider's usage object, each found under any of its names and checked before it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from srbench_kit.values import Json


_INT64_MAX = 2**63 - 1
_DETAILS = (
    "prompt_tokens_details",
    "input_tokens_details",
    "completion_tokens_details",
    "output_tokens_details",
    "cache_creation",
)

# LiteLLM's place for cache writes by lifetime.
_CREATION = "cache_creation_token_details"

# Every name under which a number is known to come. A number that comes twice under two names is one number.
_NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "prompt": (("prompt_tokens",),),
    "input": (("input_tokens",),),
    "cached": (
        ("prompt_tokens_details", "cached_tokens"),
        ("input_tokens_details", "cached_tokens"),
        ("cache_read_input_tokens",),
        ("prompt_cache_hit_tokens",),
        ("cached_input_tokens",),
        ("cached_tokens",),
    ),
    "written": (
        ("prompt_tokens_details", "cache_write_tokens"),
        ("prompt_tokens_details", "cache_creation_tokens"),
        ("prompt_tokens_details", "created_cache_tokens"),
        ("input_tokens_details", "cache_write_tokens"),
        ("input_tokens_details", "cache_creation_tokens"),
        ("input_tokens_details", "created_cache_tokens"),
        ("cache_creation_input_tokens",),
        ("cache_write_tokens",),
    ),
    "written_5m": (
        ("cache_creation", "ephemeral_5m_input_tokens"),
        ("prompt_tokens_details", _CREATION, "ephemeral_5m_input_tokens"),
    ),
    "written_1h": (
        ("cache_creation", "ephemeral_1h_input_tokens"),
        ("prompt_tokens_details", _CREATION, "ephemeral_1h_input_tokens"),
    ),
    "miss": (("prompt_cache_miss_tokens",),),
    "output": (("completion_tokens",), ("output_tokens",)),
    "reasoning": (
        ("completion_tokens_details", "reasoning_tokens"),
        ("output_tokens_details", "reasoning_tokens"),
        ("reasoning_tokens",),
    ),
    "total": (("total_tokens",),),
}
# What is charged beside tokens, or at prices of its own: searches (Anthropic, Perplexity, xAI) and sound.
_CHARGED_BESIDE: dict[str, tuple[str, ...]] = {
    "server_tool_use": ("web_search_requests",),
    "num_search_queries": (),
    "num_sources_used": (),
    "citation_tokens": (),
    **{name: ("audio_tokens",) for name in _DETAILS[:4]},
}
# Every name at the top of a usage object that is looked at; all others may stand there and say what they like.
COUNTED_NAMES = frozenset(path[0] for paths in _NAMES.values() for path in paths) | frozenset(_DETAILS) | {*_CHARGED_BESIDE}
# By name at the top, then by the name inside it, `""` for the top itself: the fact that stands there.
_PLACES: dict[str, dict[str, str]] = {}
for _fact, _paths in _NAMES.items():
    for _path in _paths:
        _PLACES.setdefault(_path[0], {})[".".join(_path[1:])] = _fact
_DETAILED = {name: frozenset(fact for inner, fact in _PLACES[name].items() if inner) for name in _DETAILS}


@dataclass(frozen=True, slots=True)
class Count:
    """One number of a usage object.

    Attributes:
        value: the number; `None` when nobody gave it or when what was given cannot be believed.
        reported: whether anything that is not null stood under one of its names.
    """

    value: int | None = None
    reported: bool = False

    @property
    def broken(self) -> bool:
        """Whether something was given and cannot be believed."""
        return self.reported and self.value is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Every number of a usage object, and what was wrong with those that are not believed.

    Attributes:
        named: the names, in dotted form, under which something other than null stood.
        flags: stable words; empty when nothing was wrong.
    """

    prompt: Count
    input: Count
    cached: Count
    written: Count
    written_1h: Count
    miss: Count
    output: Count
    reasoning: Count
    total: Count
    named: frozenset[str]
    flags: tuple[str, ...]


def read_counts(raw: Mapping[str, Json]) -> Counts:
    """The numbers of a usage object; order of its keys and keys with null make no difference."""
    given, named, hidden = _given(raw)
    flags: list[str] = ["malformed_details"] if hidden else []
    found = {fact: _count(given.get(fact), fact, fact in hidden, flags) for fact in _NAMES}
    five, hour = found.pop("written_5m"), found["written_1h"]
    found["written"] = _written(found["written"], five, hour, flags)
    if found["written"].broken:
        found["written_1h"] = Count(None, hour.reported)
    return Counts(**found, named=frozenset(named), flags=tuple(dict.fromkeys(flags)))


def _given(raw: Mapping[str, Json]) -> tuple[dict[str, list[Json]], set[str], set[str]]:
    """What stands under the names of each fact, null apart; the names that were there, in dotted form; and the facts that
    a damaged object of details may hide."""
    given: dict[str, list[Json]] = {}
    named: set[str] = set()
    hidden: set[str] = set()
    for name, value in raw.items():
        places = _PLACES.get(name)
        if places is None or value is None:
            continue
        named.add(name)
        if "" in places:
            given.setdefault(places[""], []).append(value)
        elif not isinstance(value, dict):
            hidden |= _DETAILED[name]
        else:
            for inner, part in _parts(value):
                fact = places.get(inner)
                if fact is not None and inner and part is not None:
                    named.add(f"{name}.{inner}")
                    given.setdefault(fact, []).append(part)
    return given, named, hidden


def _parts(details: Mapping[str, Json]) -> list[tuple[str, Json]]:
    """The members of an object of details, those of the one object inside it by dotted names."""
    parts = list(details.items())
    inner = details.get(_CREATION)
    return (
        parts if not isinstance(inner, dict) else [*parts, *((f"{_CREATION}.{name}", part) for name, part in inner.items())]
    )


def charged_beside(raw: Mapping[str, Json]) -> bool:
    """Whether a usage object counts anything that the prices of tokens do not cover."""
    for name, inners in _CHARGED_BESIDE.items():
        held = raw.get(name)
        if not held:
            continue
        counts = [held.get(inner) for inner in inners] if isinstance(held, dict) else [] if inners else [held]
        if any(isinstance(count, int | float) and count > 0 for count in counts):
            return True
    return False


_ABSENT, _HIDDEN = Count(), Count(None, True)


def _count(given: list[Json] | None, fact: str, hidden: bool, flags: list[str]) -> Count:
    if not given:
        return _HIDDEN if hidden else _ABSENT
    faults = [fault for value in given if (fault := _fault(value))]
    if faults:
        flags.extend(faults)
        return _HIDDEN
    if len(given) > 1 and len(set(map(str, given))) > 1:
        flags.append(f"contradictory_{fact}")
        return _HIDDEN
    value = given[0]
    return Count(value if isinstance(value, int) and not hidden else None, True)


def _fault(value: Json) -> str | None:
    """Why `value` is no token count; a float is none even when it is whole, for nobody counts tokens in floats."""
    if isinstance(value, bool) or not isinstance(value, int):
        return "not_an_integer"
    if value < 0:
        return "negative"
    return "out_of_range" if value > _INT64_MAX else None


def _written(whole: Count, five: Count, hour: Count, flags: list[str]) -> Count:
    """Cache writes from their sum and their parts by lifetime, which must agree."""
    if five.broken or hour.broken or whole.broken:
        return Count(None, True)
    if not (five.reported or hour.reported):
        return whole
    known = [part.value for part in (five, hour) if part.value is not None]
    if whole.value is None:
        return Count(sum(known), True) if len(known) == 2 else Count(None, False)
    if sum(known) > whole.value or (len(known) == 2 and sum(known) != whole.value):
        flags.append("contradictory_written")
        return Count(None, True)
    return whole
