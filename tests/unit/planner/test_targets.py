"""Targets: strict fields, exact prices, one canonical form."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from planner_doubles import PRICE, target
from srbench.v1 import target_pb2
from srbench_kit.errors import InvalidInput
from srbench_planner import convert, target_registry, targets
from srbench_planner.operator_documents import Folder
from srbench_planner.target_registry import TargetRegistry


def refusal(**fields: object) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        targets.freeze_target(target(**fields), "targets[0]")
    return caught.value


@pytest.mark.parametrize(
    ("fields", "reason", "part"),
    [
        ({"request_param": {}}, "UNKNOWN_FIELD", "did you mean targets[0].request_params?"),
        ({"max_concurency": 1}, "UNKNOWN_FIELD", "did you mean targets[0].max_concurrency?"),
        ({"api_key": "sk-123456789"}, "SECRET_IN_TARGET", "api_key_env"),
        ({"headers": {}}, "SECRET_IN_TARGET", "targets[0].headers"),
        ({"kind": "router"}, "BAD_FIELD", 'targets[0].kind is "router"; expected single or mom'),
        ({"model": ""}, "BAD_FIELD", "targets[0].model"),
        ({"id": None}, "MISSING_FIELD", "targets[0].id is missing"),
        ({"api_key_env": "sk-live-very-secret"}, "BAD_FIELD", "environment variable"),
        ({"capture_recipe": True}, "BAD_FIELD", "only a target of kind mom"),
        ({"max_inference_calls": 3}, "BAD_FIELD", "only a target of kind mom"),
        ({"kind": "mom", "max_inference_calls": 257}, "BAD_FIELD", "from 1 to 256"),
        ({"kind": "mom", "max_inference_calls": True}, "BAD_FIELD", "an integer"),
        ({"max_concurrency": 0}, "BAD_FIELD", "at least 1"),
        ({"requests_per_minute": 1.5}, "BAD_FIELD", "an integer"),
        ({"usage_dialect": "gemni"}, "BAD_FIELD", "openai, anthropic, deepseek or gemini"),
        ({"session_mode": "sticky"}, "BAD_FIELD", "none or session_aware"),
        ({"prices": {"m": {"input": 1, "output": 2}}}, "MISSING_FIELD", "targets[0].prices.m.cached_input"),
        ({"prices": {"m": PRICE | {"cache_read": 1}}}, "UNKNOWN_FIELD", "targets[0].prices.m.cache_read"),
        ({"prices": {"m": PRICE | {"input": -1}}}, "BAD_PRICE", "from 0"),
        ({"prices": {"m": PRICE | {"input": 0.0000001}}}, "BAD_PRICE", "at most 6 decimals"),
        ({"prices": {"m": PRICE | {"input": "1"}}}, "BAD_PRICE", "US dollars"),
        ({"prices": {"m": PRICE | {"input": True}}}, "BAD_PRICE", "US dollars"),
        ({"prices": {"m": PRICE}, "model_aliases": {"m-2026": "x"}}, "BAD_FIELD", "a model that has a price"),
        ({"request_params": {"logprobs": True}}, "UNKNOWN_FIELD", "targets[0].request_params.logprobs"),
        ({"request_params": {"n": 2}}, "BAD_FIELD", "expected 1"),
        ({"request_params": {"n": 1.0}}, "BAD_FIELD", "expected 1"),
        ({"request_params": {"temperature": 2.1}}, "BAD_FIELD", "from 0 to 2"),
        ({"request_params": {"top_k": 0}}, "BAD_FIELD", "-1 or"),
        ({"request_params": {"stop": [1]}}, "BAD_FIELD", "a list of texts"),
        ({"request_params": {"chat_template_kwargs": {"x": "y" * 70000}}}, "TOO_LARGE", "65536"),
    ],
)
def test_a_bad_target_is_refused_by_field(fields: dict[str, object], reason: str, part: str) -> None:
    error = refusal(**fields)
    assert error.reason == reason
    assert part in error.message


def test_a_key_in_place_of_a_variable_name_is_not_repeated() -> None:
    error = refusal(api_key_env="sk-live-very-secret")
    assert "secret" not in error.message + str(error.facts)


def test_prices_are_exact_picodollars_a_token() -> None:
    assert targets.price_picodollars(1.25, "p") == 1_250_000
    assert targets.price_picodollars(0.000001, "p") == 1
    assert targets.price_picodollars(0.1, "p") == 100_000
    assert targets.price_picodollars(0, "p") == 0


def test_two_spellings_of_one_target_have_one_form() -> None:
    plain = targets.freeze_target(target(), "t")
    spelled = target(
        request_params={}, prices={}, response_mode="stream", session_mode="none", api_key_env="", usage_dialect=None,
        capture_recipe=False, base_url="http://127.0.0.1:1/v1/", native_limits={}, model_aliases={},
    )  # fmt: skip
    assert targets.freeze_target(spelled, "t") == plain
    assert targets.freeze_target(plain, "t") == plain


def test_every_field_reaches_the_contract() -> None:
    router = target(
        kind="mom",
        prices={"m": PRICE | {"cache_write_1h": 2.5}},
        model_aliases={"m-2026": "m"},
        max_inference_calls=3,
        config_hash="abc",
        usage_dialect="deepseek",
        cache_reporting="none",
        response_mode="json",
        session_mode="session_aware",
        requests_per_minute=60,
        request_params={"temperature": None, "max_completion_tokens": 9},
    )
    message = convert.target(targets.freeze_target(router, "t"))
    assert message.kind == target_pb2.TARGET_KIND_MOM
    assert message.prices["m"].cache_write_1h_picodollars == 2_500_000
    assert message.prices["m"].output_picodollars == 4_000_000
    assert message.usage_dialect == target_pb2.USAGE_DIALECT_DEEPSEEK
    assert (message.response_mode, message.session_mode) == (1, 1)
    assert (message.requests_per_minute, message.HasField("max_concurrency")) == (60, False)
    assert [m.key for m in message.request_params.object_value.members] == ["temperature", "max_completion_tokens"]


async def test_the_registry_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    registry = TargetRegistry(Folder(tmp_path))
    assert registry.load() == []
    await registry.replace([target("a"), target("b")])
    with pytest.raises(InvalidInput, match="twice"):
        await registry.replace({"targets": [target("c"), target("c")]})
    assert [found["id"] for found in registry.load()] == ["a", "b"]
    assert stat.S_IMODE((tmp_path / "targets.json").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["targets.json"]


@pytest.mark.parametrize(
    ("document", "reason"), [({"target": []}, "UNKNOWN_FIELD"), ("x", "BAD_TARGET"), ({}, "BAD_TARGET")]
)
def test_a_document_that_is_no_registry_is_refused(document: object, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        target_registry.parse(document)  # type: ignore[arg-type]
    assert caught.value.reason == reason
