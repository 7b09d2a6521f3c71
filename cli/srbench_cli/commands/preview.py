"""`preview`: ask routers what they would do with each case; no model is called."""

from __future__ import annotations

from pathlib import Path

import click
from srbench_kit import views
from srbench_kit.errors import InvalidInput

from srbench_cli import manifests, printing, tables
from srbench_cli.commands.run import check_key, show_report, start, wait
from srbench_cli.context import Session, pass_session, shared_options


@click.command()
@click.option("--manifest", required=True, help="Manifest or frozen plan of mode preview; - reads stdin.")
@click.option("--detach", is_flag=True, help="Print the run and return at once.")
@click.option("--idempotency-key", help="The same key with the same manifest is the same run, however often it is sent.")
@shared_options
@pass_session
def preview(session: Session, manifest: str, detach: bool, idempotency_key: str | None) -> None:
    """Asks every router of a manifest for its decision on every case. Costs nothing and has no score.

    A manifest without a mode is taken for a preview; one of another mode is refused.
    """
    check_key(idempotency_key)
    document = manifests.read_manifest(manifest, Path.cwd())
    mode = document.setdefault("mode", "preview")
    if mode != "preview":
        raise InvalidInput("BAD_MODE", f"the manifest's mode is {mode!r}; expected preview, or use `run`", field="mode")
    started = start(session, document, idempotency_key)
    if detach:
        shown = views.run(started, views.frozen_manifest(started))
        printing.show(shown, lambda: tables.run(started), as_json=session.as_json)
        return
    show_report(session, wait(session, started))
