"""Where both programs begin. Light, so that a Ctrl-C while the rest is imported ends like any other."""

from __future__ import annotations

import io
import os
import sys

EXIT_INTERRUPTED = 130


def sr_bench() -> None:
    """Runs `sr-bench` and exits."""
    _begin("srbench_cli.main")


def vllm_sr() -> None:
    """Runs `vllm-sr` and exits."""
    _begin("srbench_cli.vllm_sr")


def _begin(module: str) -> None:
    _open_streams()
    try:
        from importlib import import_module

        main = import_module(module).main
    except KeyboardInterrupt:
        print("error [INTERRUPTED]: stopped at your request", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    main()


def _open_streams() -> None:
    """Opens what the caller closed of stdin, stdout and stderr, or the next file or socket would get its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115
    # A locale that lacks a character of a model's text gets its escape, as on stderr, instead of an end of the command.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
