"""Usage objects as providers write them, all saying the same."""

from __future__ import annotations

from typing import NamedTuple

from srbench_kit.values import Json


class Tokens(NamedTuple):
    """Tokens of one call: all prompt tokens, those of them that a cache served, all output, reasoning within it."""

    prompt: int
    cached: int
    output: int
    reasoning: int = 0


def usage_object(dialect: str, tokens: Tokens) -> dict[str, Json]:
    """`tokens` in a provider's shape."""
    match dialect:
        case "openai":
            return _openai(tokens) | {
                "prompt_tokens_details": {"cached_tokens": tokens.cached},
                "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
            }
        case "openai_plain":
            return _openai(tokens)
        case "anthropic":
            return {
                "input_tokens": tokens.prompt - tokens.cached,
                "cache_read_input_tokens": tokens.cached,
                "cache_creation_input_tokens": 0,
                "output_tokens": tokens.output,
            }
        case "deepseek":
            return _openai(tokens) | {
                "prompt_cache_hit_tokens": tokens.cached,
                "prompt_cache_miss_tokens": tokens.prompt - tokens.cached,
            }
        case "gemini":
            # Reasoning lies outside completion_tokens and shows in the total alone.
            return _openai(tokens) | {"completion_tokens": tokens.output - tokens.reasoning}
        case _:
            raise ValueError(f"unknown dialect {dialect!r}")


def _openai(tokens: Tokens) -> dict[str, Json]:
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.prompt + tokens.output,
    }
