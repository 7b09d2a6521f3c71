"""`python -m srbench_testbed`: the testbed as a process."""

from __future__ import annotations

import gc
import os
import resource
import sys
from pathlib import Path

import click
import orjson
from srbench_kit.errors import EXIT_CODES, SrBenchError
from srbench_kit.serving import run, stop_event
from srbench_kit.values import Json

from srbench_testbed.answer_key import read_key
from srbench_testbed.config import Config, config_json, read_config
from srbench_testbed.server import Testbed
from srbench_testbed.targets import targets_document

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="A loopback address.")
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="0 takes any free port.")
@click.option("--config", "config_path", type=_FILE, help="Models, routers and faults, as YAML or JSON.")
@click.option("--answer-key", "key_path", type=_FILE, help="JSON lines written by srbench_testbed.answer_key.")
@click.option("--ledger", "ledger_path", type=_FILE, help="Appends every request to this file.")
@click.option(
    "--pace", default="live", show_default=True, type=click.Choice(["live", "zero"]), help="zero leaves out delays."
)
@click.option("--write-targets", "targets_path", type=_FILE, help="Writes a file for `sr-bench target register`.")
@click.option("--management-token-env", default="", help="Variable with the token that the routers' own API asks for.")
@click.option("--print-config", is_flag=True, help="Prints the configuration as JSON and ends.")
def main(
    host: str,
    port: int,
    config_path: Path | None,
    key_path: Path | None,
    ledger_path: Path | None,
    pace: str,
    targets_path: Path | None,
    management_token_env: str,
    print_config: bool,
) -> None:
    """An OpenAI-compatible upstream that answers deterministically, records every request, and fails on demand."""
    try:
        config = read_config(config_path)
        if print_config:
            click.echo(orjson.dumps(config_json(config), option=orjson.OPT_INDENT_2))
            return
        key = read_key(key_path) if key_path else {}
        testbed = Testbed(
            config,
            key,
            host=host,
            port=port,
            paced=pace == "live",
            ledger_path=ledger_path,
            management_token=os.environ.get(management_token_env, "") if management_token_env else "",
        )
        run(lambda: _serve(testbed, config, targets_path))
    except SrBenchError as error:
        print(f"{error.reason}: {error.message}", file=sys.stderr)
        sys.exit(EXIT_CODES.get(error.kind, 1))


async def _serve(testbed: Testbed, config: Config, targets_path: Path | None) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    stopped = stop_event()
    async with testbed:
        if targets_path is not None:
            _write(targets_path, targets_document(config, testbed.base_url))
        # Rows of the ledger stay; looking through them again and again would cost more than the calls.
        gc.freeze()
        gc.set_threshold(100_000, 50, 1000)
        print(f"listening {testbed.url}", flush=True)
        await stopped.wait()


def _write(path: Path, document: dict[str, Json]) -> None:
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
