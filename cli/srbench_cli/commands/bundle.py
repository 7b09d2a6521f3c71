"""`bundle` and `verify`: everything known of runs in one archive, and every number of it derived again."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click
from srbench_kit.errors import EXIT_CODES, InvalidInput, NotFound, SrBenchError
from srbench_kit.values import Json

from srbench_cli import manifests, printing
from srbench_cli.context import Session, pass_session, shared_options

if TYPE_CHECKING:
    from collections.abc import Iterator

VERIFIER = "srbench_accounting.verify"


@click.command()
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True)
@click.option("--output", type=click.Path(path_type=Path), required=True, help="New file for the bundle (a tar archive).")
@click.option("--sign-key", type=click.Path(path_type=Path), help="PEM of an Ed25519 private key: sign the bundle.")
@click.option(
    "--with-answers",
    help="A dataset's cases.jsonl: put the dev cases of the runs into the bundle, so that grades can be made again.",
)
@shared_options
@pass_session
def bundle(
    session: Session, run_ids: tuple[str, ...], output: Path, sign_key: Path | None, with_answers: str | None
) -> None:
    """Writes runs that are over, and their recoveries, into one archive: plan, ledger, raw streams, report.

    The same runs give the same bytes. Answers are in it only with --with-answers, and never those of a holdout.
    """
    from srbench_kit.archive import ArchiveWriter
    from srbench_kit.bundles import seal
    from srbench_kit.signing import load_signer

    from srbench_cli import tables
    from srbench_cli.bundling import Bundler, answers_by_digest

    printing.check_new_file(output)
    signer = None if sign_key is None else load_signer(_read(sign_key))
    answers = {} if with_answers is None else answers_by_digest(manifests.read_document(with_answers), with_answers)
    with _new_file(output) as file:
        writer = ArchiveWriter(file)
        bundler = Bundler(session.door, writer, f"sr-bench {version('sr-bench')}", answers)
        bundler.write(run_ids)
        if with_answers is not None and not bundler.answer_count:
            sentence = f"no case in {with_answers} is a dev case of these runs; the bundle would be no better for it"
            raise InvalidInput("NO_ANSWERS", sentence, value=with_answers)
        member_count = len(writer.written)
        root = seal(writer, signer)
    shown: dict[str, Json] = {
        "bundle": str(output),
        "root_sha256": root,
        "member_count": member_count,
        "answer_count": bundler.answer_count,
        "signed": signer is not None,
    }
    if bundler.no_comparison:
        printing.notice(f"the runs are bundled without a comparison: {bundler.no_comparison}")
    printing.notice(f"wrote {output}; check it with `{session.program} verify {output}`")
    printing.show(shown, lambda: tables.pairs(list(shown.items())), as_json=session.as_json)


@click.command()
@click.argument("bundle_file", metavar="BUNDLE", type=click.Path(path_type=Path))
@click.option("--public-key", type=click.Path(path_type=Path), help="PEM of the Ed25519 key that must have signed it.")
@click.option("--all", "show_all", is_flag=True, help="Show every number, not only those that differ.")
@shared_options
@pass_session
def verify(session: Session, bundle_file: Path, public_key: Path | None, show_all: bool) -> None:
    """Derives every number of a bundle again from its raw streams and says, number by number, whether it is equal.

    Needs no service. Exits with 0 when all are equal, 1 when one is not, 9 when the bundle is damaged.
    """
    from srbench_cli import verify_table

    arguments = [sys.executable, "-m", VERIFIER, str(bundle_file)]
    arguments += ["--public-key", str(public_key)] if public_key is not None else []
    done = subprocess.run(arguments, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    try:
        found: Json = json.loads(done.stdout)
    except ValueError:
        raise _failed(done.stderr.decode("utf-8", "replace"), done.returncode) from None
    assert isinstance(found, dict)
    printing.show(found, lambda: verify_table.verification(found, show_all=show_all), as_json=session.as_json)
    if done.returncode:
        raise click.exceptions.Exit(done.returncode)


def _failed(said: str, code: int) -> SrBenchError:
    """The error that the verifier ended with: its last line is `REASON: sentence`."""
    reason, _, sentence = said.strip().rpartition("\n")[2].partition(": ")
    kinds = {number: kind for kind, number in EXIT_CODES.items()}
    if not sentence or code not in kinds:
        return SrBenchError("VERIFIER_FAILED", f"the verifier ended with code {code}: {said.strip()[-500:]}")
    error = NotFound if kinds[code] == "not_found" else InvalidInput
    return error(reason, sentence)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput("NO_SUCH_FILE", f"{path} cannot be read: {error.strerror}", value=path) from None


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that gets its name when it is whole; on any error nothing stays. Raises: as `printing.write_new_file`."""
    beside = path.absolute().with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.link(beside, path)
    except FileExistsError:
        raise InvalidInput("OUTPUT_EXISTS", f"{path} appeared in the meantime; nothing is ever overwritten") from None
    except OSError as error:
        raise InvalidInput("BAD_OUTPUT", f"{path} cannot be written: {error.strerror}", value=path) from None
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()
