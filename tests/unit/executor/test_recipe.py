"""What is kept of a router's configuration, what is taken out of it, and when it is no recipe at all."""

from __future__ import annotations

from typing import Any

import pytest
from srbench_executor.recipe import BadRecipe, Hashes, check_bracket, project, read_hashes
from srbench_kit.canonical import digest

HASH, SOURCE = "a" * 64, "b" * 64
GOOD = {
    "source_config_hash": SOURCE,
    "generated_runtime_hash": HASH,
    "active_runtime_hash": HASH,
    "activation_status": "active",
}


def test_hashes_of_a_router_that_runs_what_the_plan_names() -> None:
    assert read_hashes(GOOD, HASH) == Hashes(source=SOURCE, generated=HASH, active=HASH)


@pytest.mark.parametrize(
    ("reason", "over"),
    [
        ("not_active", {"activation_status": "pending"}),
        ("config_hash_mismatch", {"active_runtime_hash": "c" * 64}),
        ("config_hash_mismatch", {"generated_runtime_hash": "c" * 64}),
        ("protocol_error", {"source_config_hash": "B" * 64}),
        ("protocol_error", {"active_runtime_hash": None}),
    ],
)
def test_any_other_hash_document_is_refused(reason: str, over: dict[str, Any]) -> None:
    with pytest.raises(BadRecipe) as caught:
        read_hashes(GOOD | over, HASH)
    assert caught.value.reason == reason


def test_a_configuration_counts_only_between_two_equal_hashes_and_under_its_tag() -> None:
    hashes = read_hashes(GOOD, HASH)
    check_bracket(hashes, (("etag", f'"{SOURCE}"'),), hashes)
    for reason, headers, after in (
        ("etag_mismatch", (("etag", SOURCE),), hashes),
        ("etag_mismatch", (), hashes),
        ("config_changed", (("etag", f'"{SOURCE}"'),), Hashes(source="c" * 64, generated=HASH, active=HASH)),
    ):
        with pytest.raises(BadRecipe) as caught:
            check_bracket(hashes, headers, after)
        assert caught.value.reason == reason


def test_only_what_decides_is_kept_and_its_digest_names_it() -> None:
    config = {
        "recipes": [{"name": "default"}],
        "entrypoints": [{"model": "auto"}],
        "routing": {"decisions": [{"name": "math", "priority": 10}]},
        "providers": {"models": [{"api_key": "sk-verysecretvalue"}]},
        "listeners": [{"port": 8899}],
        "global": {"router": {"learning": {"enabled": True}}, "stores": {"redis": "redis://x"}},
    }
    found = project(config)
    assert found.document == {
        "recipes": [{"name": "default"}],
        "entrypoints": [{"model": "auto"}],
        "routing": {"decisions": [{"name": "math", "priority": 10}]},
        "learning": {"enabled": True},
    }
    assert found.redactions == ()
    assert found.sha256 == digest(found.document)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("api_key", "x"),
        ("apiKey", "x"),
        ("access-token", "x"),
        ("base_url", "x"),
        ("endpoints", [{"a": 1}]),
        ("host", "x"),
        ("port", 8080),
        ("note", "see https://internal.example/x"),
        ("note", "/etc/router/config.yaml"),
        ("note", "10.1.2.3"),
        ("note", "10.1.2.3:8080"),
        ("note", "fe80::1:2:3"),
        ("note", "redis.cluster.local"),
        ("note", "localhost"),
        ("note", "qdrant:6333"),
        ("note", "sk-abcdefgh12345678"),
        ("note", "hf_abcdefgh12345678"),
        ("note", "Bearer abcdefgh12345678"),
        ("note", "eyJhbGciOiJIUzI1NiJ9.x.y"),
        ("note", "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZg=="),
    ],
)
def test_secrets_and_places_are_taken_out_and_listed(key: str, value: Any) -> None:
    found = project({"routing": {"rules": [{key: value, "weight": 1}]}})
    assert found.document == {"routing": {"rules": [{key: "<redacted>", "weight": 1}]}}
    assert found.redactions == (f"routing.rules[0].{key}",)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_tokens", 512),
        ("default_max_tokens", "auto"),
        ("model", "org/model-7b-instruct"),
        ("prompt", "Answer step by step: 1) think, 2) answer at 10:30."),
        ("keyword", "and/or"),
        ("api_key", ""),
        ("token", None),
        ("threshold", 0.75),
        ("name", "1.2.3"),
    ],
)
def test_what_decides_is_left_as_it_is(key: str, value: Any) -> None:
    found = project({"routing": {key: value}})
    assert (found.document, found.redactions) == ({"routing": {key: value}}, ())


@pytest.mark.parametrize("config", [None, [], "x", {}, {"providers": {}}])
def test_a_document_without_what_decides_is_no_recipe(config: Any) -> None:
    with pytest.raises(BadRecipe) as caught:
        project(config)
    assert caught.value.reason == "protocol_error"
