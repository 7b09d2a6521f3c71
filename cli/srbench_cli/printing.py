"""What a command prints: a table on a terminal, JSON otherwise. Data goes to stdout, everything else to stderr."""

from __future__ import annotations

import codecs
import contextlib
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click
from srbench_kit.errors import InvalidInput

from srbench_cli.terminal import json_ascii, json_text, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from srbench_kit.values import Json


# Of an error's sentence; it may repeat a value from outside.
MOST_CHARS = 1000


def wants_json(asked: bool) -> bool:
    """Whether data is printed as JSON: when asked for, and whenever nobody looks at the output."""
    return asked or not sys.stdout.isatty()


def show(value: Json, table: Callable[[], RenderableType], *, as_json: bool) -> None:
    """Prints `value`: as JSON, or as what `table` makes of it."""
    if wants_json(as_json):
        print_json(value)
        return
    print_renderable(table())


def print_json(value: Json) -> None:
    """Prints `value` as JSON, which is UTF-8 wherever it is read: a locale of another kind gets escapes in its strings."""
    encoding = codecs.lookup(sys.stdout.encoding or "utf-8").name
    text = json_text(value)
    click.echo(text if encoding == "utf-8" else json_ascii(text))


def print_renderable(renderable: RenderableType) -> None:
    """Prints a table or text, as wide as the terminal is; in a pipe as wide as most are."""
    from rich.console import Console

    Console(highlight=False, width=None if sys.stdout.isatty() else 120).print(renderable)


def notice(text: str) -> None:
    """Says one line on stderr."""
    click.echo(one_line(text), err=True)


def print_error(reason: str, message: str) -> None:
    """Prints the one line by which every command reports an error; what makes it very long is left out of its middle."""
    if len(message) > MOST_CHARS:
        message = f"{message[: MOST_CHARS * 2 // 3]} … {message[-(MOST_CHARS // 3) :]}"
    notice(f"error [{reason}]: {message}")


def check_new_file(path: Path | None) -> None:
    """Raises: `InvalidInput` (`OUTPUT_EXISTS`, `BAD_OUTPUT`) when `path` cannot become a new file. Before any call."""
    if path is None:
        return
    try:
        taken = os.path.lexists(path) or path.exists()
    except OSError as error:
        raise InvalidInput("BAD_OUTPUT", f"--output names {path}: {error.strerror}", value=path) from None
    if taken:
        raise InvalidInput("OUTPUT_EXISTS", f"--output names {path}, which exists; nothing is ever overwritten", value=path)
    if not path.absolute().parent.is_dir():
        raise InvalidInput("BAD_OUTPUT", f"--output names {path}, but its folder does not exist", value=path)
    if not os.access(path.absolute().parent, os.W_OK):
        raise InvalidInput("BAD_OUTPUT", f"--output names {path}, but its folder cannot be written to", value=path)


@contextlib.contextmanager
def new_file(path: Path, *, mode: int = 0o644, replace: bool = False) -> Iterator[IO[bytes]]:
    """A file that gets its name when it is whole, and another's name only with `replace`; on any error nothing stays.

    Raises: `InvalidInput` (`OUTPUT_EXISTS`, `BAD_OUTPUT`).
    """
    beside = path.absolute().with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(beside, path)
        else:
            # Linking fails where a name exists; renaming would replace it.
            os.link(beside, path)
    except FileExistsError:
        raise InvalidInput("OUTPUT_EXISTS", f"{path} appeared in the meantime; nothing is ever overwritten") from None
    except OSError as error:
        raise InvalidInput("BAD_OUTPUT", f"{path} cannot be written: {error.strerror}", value=path) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()


def write_new_file(path: Path, data: bytes, *, replace: bool = False) -> None:
    """Makes the file `path` of `data`. Raises: as `new_file`."""
    with new_file(path, replace=replace) as file:
        file.write(data)


def write_json(path: Path | None, value: Json) -> None:
    """Writes `value` as a new file; does nothing without a path."""
    if path is not None:
        write_new_file(path, (json_text(value) + "\n").encode())
        notice(f"wrote {path}")
