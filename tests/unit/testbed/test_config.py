"""The testbed's configuration: strict, printable, with sensible defaults."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from srbench_kit.errors import InvalidInput, NotFound
from srbench_kit.values import Json
from srbench_testbed.config import DEFAULT, config_json, parse_config, read_config
from srbench_testbed.targets import targets_document

SMALL: Json = {
    "seed": 3,
    "models": [{"id": "one", "skill": {"default": 1}, "price": {"input": 1}}, {"id": "two"}],
    "routers": [
        {
            "id": "mix",
            "routes": [
                {"decision": "maths", "subject": "mmlu-pro/math", "calls": ["one", "two"]},
                {"decision": "rest", "model": "one"},
            ],
        }
    ],
    "faults": [
        {"fault": "http_status", "match": {"model": "one", "nth": 2}, "params": {"status": 429, "retry_after_s": 1}}
    ],
}


def test_a_printed_configuration_reads_back_the_same() -> None:
    for config in (DEFAULT, parse_config(SMALL)):
        assert parse_config(orjson.loads(orjson.dumps(config_json(config)))) == config


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(orjson.dumps(SMALL))
    (tmp_path / "c.yaml").write_text("models:\n- id: one\n  ttft_ms: 5\n")
    assert read_config(tmp_path / "c.json") == parse_config(SMALL)
    assert read_config(tmp_path / "c.yaml").models[0].ttft_ms == 5


def test_without_a_file_there_are_three_models_and_a_router() -> None:
    config = read_config(None)
    assert [model.id for model in config.models] == ["small", "medium", "large"]
    assert [router.id for router in config.routers] == ["router"]
    assert all(model.price.output > 0 for model in config.models)


@pytest.mark.parametrize(
    ("document", "reason", "words"),
    [
        ({"modells": []}, "UNKNOWN_FIELD", "did you mean 'models'"),
        ({"models": []}, "NO_MODELS", "at least one"),
        ({"models": [{"id": "a", "ttft": 3}]}, "UNKNOWN_FIELD", "models[0] has no member 'ttft'"),
        ({"models": [{"id": "a", "skill": {"default": 1.5}}]}, "BAD_FIELD", "models[0].skill.default is 1.5"),
        ({"models": [{"id": "a", "usage": "openia"}]}, "BAD_FIELD", "one of openai"),
        ({"models": [{"id": "a", "chunks": True}]}, "BAD_FIELD", "whole number"),
        ({"models": [{"id": "a"}, {"id": "a"}]}, "LISTED_TWICE", "'a'"),
        ({"models": [{"id": ""}]}, "BAD_FIELD", "models[0].id"),
        ({"models": ["a"]}, "BAD_FIELD", "expected an object"),
        ({"models": [{"id": "a"}], "routers": [{"id": "r", "routes": []}]}, "NO_ROUTES", "at least one"),
        (
            {"models": [{"id": "a"}], "routers": [{"id": "r", "routes": [{"decision": "d", "model": "b"}]}]},
            "NO_SUCH_MODEL",
            "'b'",
        ),
        (
            {"models": [{"id": "a"}], "routers": [{"id": "r", "routes": [{"decision": "d", "model": "a", "share": 0.5}]}]},
            "NO_DEFAULT_ROUTE",
            "always holds",
        ),
        ({"models": [{"id": "a"}], "faults": [{"fault": "http_statu"}]}, "NO_SUCH_FAULT", "did you mean 'http_status'"),
        (
            {"models": [{"id": "a"}], "faults": [{"fault": "slow_drip", "params": {"delay": 3}}]},
            "UNKNOWN_FIELD",
            "did you mean 'delay_ms'",
        ),
    ],
)
def test_bad_configurations_get_one_clear_sentence(document: Json, reason: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_config(document)
    assert caught.value.reason == reason
    assert words in caught.value.message


def test_a_missing_file_is_named() -> None:
    with pytest.raises(NotFound, match=r"nowhere\.yaml"):
        read_config(Path("nowhere.yaml"))


def test_the_configuration_hash_changes_with_the_routes_alone() -> None:
    config = parse_config(SMALL)
    other = parse_config({**SMALL, "seed": 4})  # type: ignore[dict-item]
    changed = orjson.loads(orjson.dumps(SMALL))
    changed["routers"][0]["routes"][0]["subject"] = "mmlu-pro/law"
    assert len(config.routers[0].config_hash) == 64
    assert config.routers[0].config_hash == other.routers[0].config_hash
    assert config.routers[0].config_hash != parse_config(changed).routers[0].config_hash
    assert config.routers[0].source_hash != config.routers[0].config_hash


def test_the_targets_file_prices_what_a_router_may_call() -> None:
    targets = targets_document(parse_config(SMALL), "http://127.0.0.1:1/v1")["targets"]
    assert isinstance(targets, list)
    assert [(target["id"], target["kind"]) for target in targets] == [("one", "single"), ("two", "single"), ("mix", "mom")]  # type: ignore[index, call-overload]
    mom = targets[2]
    assert isinstance(mom, dict)
    assert set(mom) == {"id", "kind", "model", "base_url", "prices", "max_inference_calls", "config_hash", "preview_url"}
    assert mom["preview_url"] == "http://127.0.0.1:1/api/v1/routing/preview"
    assert sorted(mom["prices"]) == ["one", "two"]  # type: ignore[arg-type]
