"""What every command shares: the options that may stand before or after its name, and the connection they lead to."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from srbench_cli import discovery
from srbench_cli.printing import notice

if TYPE_CHECKING:
    from srbench_cli.front_door import FrontDoor

F = TypeVar("F", bound=Callable[..., Any])

# The largest whole number that a message holds; every option that takes a number is bounded by it.
MOST_INT = 2**63 - 1
ANY_INT = click.IntRange(-MOST_INT, MOST_INT)


@dataclass(slots=True)
class Session:
    """One invocation.

    Attributes:
        program: how the person calls us, for hints: `sr-bench` or `vllm-sr benchmark`.
        url, store: the options as given; `None` when not given.
        no_autostart: a missing service is an error.
        as_json: print JSON on a terminal, too.
    """

    program: str
    url: str | None = None
    store: str | None = None
    no_autostart: bool = False
    as_json: bool = False
    _door: FrontDoor | None = None

    def location(self, port: int | None = None) -> discovery.Location:
        """The service that options and environment lead to. Raises: `InvalidInput`."""
        return discovery.locate(url=self.url, store=self.store, environment=os.environ, directory=Path.cwd(), port=port)

    def hint(self, *words: str, offline: bool = False) -> str:
        """The command of `words` as a shell takes it, led to the same service as this one unless it is `offline`."""
        named: list[str] = []
        # A store that was named with an address is proven to be that address's, and says by itself where that is.
        if self.store and not offline:
            named = ["--store", self.store]
        elif self.url and not offline:
            named = ["--url", self.url]
        return f"`{self.program} {shlex.join([*named, *words])}`"

    @property
    def door(self) -> FrontDoor:
        """The connection, made when first used."""
        if self._door is None:
            from srbench_cli.front_door import FrontDoor

            self._door = FrontDoor(self.location(), autostart=not self.no_autostart, notice=notice)
        return self._door

    def close(self) -> None:
        """Ends the connection, if there is one."""
        if self._door is not None:
            self._door.close()


pass_session = click.make_pass_decorator(Session)

_OPTIONS = (
    click.option("--url", metavar="URL", help="Service address; also SR_BENCH_URL. Found by itself for local services."),
    click.option("--store", metavar="DIR", help="Store directory; also SR_BENCH_STORE."),
    click.option("--no-autostart", is_flag=True, help="Never start a local service."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON on a terminal, too."),
)


def shared_options(command: F) -> F:
    """Adds the shared options, so that they may stand after the command's name as well as before it."""

    @functools.wraps(command)
    def wrapped(
        *arguments: Any, url: str | None, store: str | None, no_autostart: bool, as_json: bool, **options: Any
    ) -> Any:
        session = click.get_current_context().find_object(Session)
        assert session is not None
        session.url = url or session.url
        session.store = store or session.store
        session.no_autostart = no_autostart or session.no_autostart
        session.as_json = as_json or session.as_json
        return command(*arguments, **options)

    decorated: Any = wrapped
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def program_name() -> str:
    """How the person calls us."""
    return "vllm-sr benchmark" if Path(sys.argv[0]).name == "vllm-sr" else "sr-bench"
