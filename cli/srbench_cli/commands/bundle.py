"""`bundle` and `verify`: everything known of runs in one archive, and every number of it derived again."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click
from srbench_kit.errors import EXIT_CODES, InvalidInput, NotFound, SrBenchError
from srbench_kit.given_files import read_given
from srbench_kit.values import Json

from srbench_cli import manifests, printing
from srbench_cli.context import Session, pass_session, shared_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from srbench_kit.signing import Signer

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
    from srbench_kit.signing import load_signer

    from srbench_cli import tables
    from srbench_cli.bundling import answers_by_digest

    printing.check_new_file(output)
    signer = None if sign_key is None else load_signer(read_given(sign_key))
    answers = None if with_answers is None else answers_by_digest(manifests.read_document(with_answers), with_answers)
    shown = write_bundle(session, run_ids, output, signer, answers, answers_name=with_answers)
    printing.show(shown, lambda: tables.pairs(list(shown.items())), as_json=session.as_json)


def write_bundle(
    session: Session,
    run_ids: Sequence[str],
    output: Path,
    signer: Signer | None = None,
    answers: dict[str, dict[str, Json]] | None = None,
    *,
    answers_name: str | None = None,
) -> dict[str, Json]:
    """Writes the bundle to a new file and says what is in it. `answers` by digest come from the file `answers_name`.

    Raises: `InvalidInput` (`NO_ANSWERS`, `OUTPUT_EXISTS`, `BAD_OUTPUT`), `Conflict` (`RUN_NOT_OVER`, `CHANGED_MEANWHILE`).
    """
    from srbench_kit.archive import ArchiveWriter
    from srbench_kit.bundles import seal

    from srbench_cli.bundling import Bundler

    with printing.new_file(output, mode=0o600) as file:
        writer = ArchiveWriter(file)
        bundler = Bundler(session.door, writer, f"sr-bench {version('sr-bench')}", answers or {})
        bundler.write(run_ids)
        if answers is not None and answers_name is not None and not bundler.answer_count:
            sentence = f"no case in {answers_name} is a dev case of these runs; the bundle would be no better for it"
            raise InvalidInput("NO_ANSWERS", sentence, value=answers_name)
        member_count = len(writer.written)
        root = seal(writer, signer)
    if bundler.no_comparison:
        printing.notice(f"the runs are bundled without a comparison: {bundler.no_comparison}")
    printing.notice(f"wrote {output}; check it with {session.hint('verify', str(output), offline=True)}")
    return {
        "bundle": str(output),
        "root_sha256": root,
        "member_count": member_count,
        "answer_count": bundler.answer_count,
        "signed": signer is not None,
    }


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

    found, code = run_verifier(bundle_file, public_key)
    printing.show(found, lambda: verify_table.verification(found, show_all=show_all), as_json=session.as_json)
    if code:
        raise click.exceptions.Exit(code)


def run_verifier(bundle_file: Path, public_key: Path | None = None) -> tuple[dict[str, Json], int]:
    """(what the verifier found, its exit code). Raises: what the verifier ended with, when it found nothing."""
    arguments = [sys.executable, "-m", VERIFIER, str(bundle_file)]
    arguments += ["--public-key", str(public_key)] if public_key is not None else []
    done = subprocess.run(arguments, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    try:
        found: Json = json.loads(done.stdout)
    except ValueError:
        raise _failed(done.stderr.decode("utf-8", "replace"), done.returncode) from None
    assert isinstance(found, dict)
    return found, done.returncode


def _failed(said: str, code: int) -> SrBenchError:
    """The error that the verifier ended with: its last line is `REASON: sentence`."""
    reason, _, sentence = said.strip().rpartition("\n")[2].partition(": ")
    kinds = {number: kind for kind, number in EXIT_CODES.items()}
    if not sentence or code not in kinds:
        return SrBenchError("VERIFIER_FAILED", f"the verifier ended with code {code}: {said.strip()[-500:]}")
    error = NotFound if kinds[code] == "not_found" else InvalidInput
    return error(reason, sentence)
