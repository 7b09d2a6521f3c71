"""Verifies a bundle without any service: `python -m srbench_accounting.verify FILE`.

Prints one JSON object. Exit codes: 0 every value is equal, 1 one differs, 9 the bundle is damaged, 2 and 3 bad input.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from srbench_kit.bundles import Opened, open_bundle
from srbench_kit.errors import EXIT_CODES, InvalidInput, SrBenchError
from srbench_kit.given_files import open_given, read_given
from srbench_kit.values import Json

from srbench_accounting.verification import Verification

EXIT_DIFFERS = 1
EXIT_DAMAGED = EXIT_CODES["data_loss"]


def verify(path: Path, public_key: Path | None) -> dict[str, Json]:
    """What is found in the bundle. Raises: `InvalidInput` (`NO_SUCH_FILE`, `NOT_A_FILE`)."""
    key = None if public_key is None else read_given(public_key)
    with open_given(path) as file:
        try:
            opened = open_bundle(file, key)
            verification = Verification(opened)
            if opened.members:
                verification.run()
        except OSError as error:
            raise InvalidInput("NO_SUCH_FILE", f"{path} cannot be read: {error.strerror}", value=path) from None
    return _result(path, opened, verification)


def _result(path: Path, opened: Opened, verification: Verification) -> dict[str, Json]:
    results = list(verification.results.values())
    compared = verification.comparison
    equal = bool(results) and all(result.equal for result in results) and not opened.problems
    equal = equal and all(row["equal"] for row in compared)
    return {
        "bundle": str(path),
        "equal": equal,
        "root_sha256": opened.root_sha256 or None,
        "signature": opened.signature or None,
        "signed_by": opened.signer or None,
        "problems": [{"member": member, "fault": fault} for member, fault in opened.problems],
        "runs": [result.to_json() for result in results],
        "comparison_values": list(compared),
    }


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--public-key", type=click.Path(path_type=Path), help="PEM of the Ed25519 key that must have signed it.")
def main(bundle: Path, public_key: Path | None) -> None:
    """Derives every number of BUNDLE again and compares it."""
    try:
        found = verify(bundle, public_key)
    except SrBenchError as error:
        click.echo(f"{error.reason}: {error.message}", err=True)
        sys.exit(EXIT_CODES.get(error.kind, 70))
    click.echo(json.dumps(found, ensure_ascii=False))
    sys.exit(EXIT_DAMAGED if found["problems"] else 0 if found["equal"] else EXIT_DIFFERS)


if __name__ == "__main__":
    main()
