"""Which service a command talks to."""

from __future__ import annotations

from pathlib import Path

import pytest
from srbench_cli.discovery import Location, locate, stack_name, stack_port, workspace
from srbench_kit.errors import InvalidInput


def found(directory: Path, url: str | None = None, store: str | None = None, **environment: str) -> Location:
    return locate(url=url, store=store, environment={"HOME": str(directory / "home")} | environment, directory=directory)


def test_without_anything_it_is_the_persons_own_store_on_port_8090(tmp_path: Path) -> None:
    location = found(tmp_path)
    assert location.store == tmp_path / "home/.local/share/vllm-sr/sr-bench"
    assert location.url == "http://127.0.0.1:8090"
    assert location.may_autostart
    assert location.checks_store
    assert not location.managed


def test_a_workspaces_store_is_found_and_its_token_makes_it_managed(tmp_path: Path) -> None:
    store = tmp_path / ".sr-bench/vllm-sr/store"
    store.mkdir(parents=True)
    assert found(tmp_path).store == store
    assert found(tmp_path, VLLM_SR_PORT_OFFSET="10").url == "http://127.0.0.1:8090"
    (store.parent / "service-token").write_text("t" * 40)
    managed = found(tmp_path, VLLM_SR_PORT_OFFSET="10")
    assert managed.managed
    assert managed.url == "http://127.0.0.1:8100"
    assert managed.token_file == store.parent / "service-token"
    assert not managed.may_autostart


def test_the_state_root_and_the_stack_name_move_the_workspace(tmp_path: Path) -> None:
    root = tmp_path / "root"
    moved = workspace({"VLLM_SR_STATE_ROOT_DIR": str(root), "VLLM_SR_STACK_NAME": "my stack"}, tmp_path)
    assert moved.store == root / ".sr-bench/my-stack/store"


def test_an_explicit_address_disables_discovery_and_autostart(tmp_path: Path) -> None:
    store = tmp_path / ".sr-bench/vllm-sr/store"
    store.mkdir(parents=True)
    (store.parent / "service-token").write_text("t" * 40)
    for location in (found(tmp_path, url="http://127.0.0.1:7/"), found(tmp_path, SR_BENCH_URL="http://127.0.0.1:7")):
        assert location.url == "http://127.0.0.1:7"
        assert location.explicit_url
        assert not location.managed
        assert not location.may_autostart
        assert not location.checks_store
    both = found(tmp_path, url="http://127.0.0.1:7", store="s")
    assert both.checks_store
    assert not found(tmp_path, url="http://10.0.0.1:7", store="s").checks_store


def test_options_win_over_variables_and_blank_ones_count_as_not_given(tmp_path: Path) -> None:
    assert found(tmp_path, store="mine", SR_BENCH_STORE="/other").store == tmp_path / "mine"
    assert found(tmp_path, store="", SR_BENCH_STORE=str(tmp_path / "other")).store == tmp_path / "other"
    assert not found(tmp_path, SR_BENCH_URL="").explicit_url


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8090",
        "ftp://h",
        "http://",
        "http://u:p@h",
        "http://h/x",
        "http://h?q=1",
        "http://h#f",
        "http://h:99999",
        "http://h:x",
    ],
)
def test_anything_but_an_http_origin_is_refused_without_repeating_a_secret(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        found(tmp_path, url=url)
    assert caught.value.reason == "BAD_URL"
    assert "u:p" not in caught.value.message


@pytest.mark.parametrize(
    ("raw", "name"), [("", "vllm-sr"), ("  ", "vllm-sr"), ("a b", "a-b"), ("..x..", "x"), ("ä", None), ("../..", None)]
)
def test_stack_names_are_safe_folder_names(raw: str, name: str | None) -> None:
    if name is not None:
        assert stack_name(raw) == name
        return
    with pytest.raises(InvalidInput) as caught:
        stack_name(raw)
    assert caught.value.reason == "BAD_STACK_NAME"


@pytest.mark.parametrize(
    ("environment", "port"),
    [
        ({}, 8090),
        ({"VLLM_SR_PORT_OFFSET": "0"}, 8090),
        ({"VLLM_SR_PORT_OFFSET": "7"}, 8097),
        ({"VLLM_SR_BENCH_PORT": "9000", "VLLM_SR_PORT_OFFSET": "7"}, 9000),
        ({"VLLM_SR_BENCH_PORT": "0"}, None),
        ({"VLLM_SR_BENCH_PORT": "65535"}, None),
        ({"VLLM_SR_BENCH_PORT": "x"}, None),
        ({"VLLM_SR_PORT_OFFSET": "-1"}, None),
        ({"VLLM_SR_PORT_OFFSET": "999999999999"}, None),
    ],
)
def test_ports_come_from_the_stack_and_leave_room_for_grpc(environment: dict[str, str], port: int | None) -> None:
    if port is not None:
        assert stack_port(environment) == port
        return
    with pytest.raises(InvalidInput) as caught:
        stack_port(environment)
    assert caught.value.reason == "BAD_PORT"
