"""How long a command waits for a service to say how it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from srbench_cli import front_door
from srbench_cli.discovery import locate
from srbench_cli.front_door import FrontDoor
from srbench_cli.health import KNOWN_S, UNKNOWN_S
from srbench_kit.errors import Unreachable


@pytest.mark.parametrize(("url", "waited_s"), [("http://127.0.0.1:9", KNOWN_S), (None, UNKNOWN_S)])
def test_a_service_that_was_named_may_be_held_up_and_who_merely_has_the_port_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str | None, waited_s: float
) -> None:
    asked: list[float] = []
    monkeypatch.setattr(front_door, "probe", lambda _url, _token, timeout_s: asked.append(timeout_s))
    where = locate(url=url, store=str(tmp_path), environment={"HOME": str(tmp_path)}, directory=tmp_path)
    with pytest.raises(Unreachable) as caught:
        _ = FrontDoor(where, autostart=False, notice=print).planner
    assert caught.value.reason == "NO_SERVICE"
    assert asked == [waited_s]
