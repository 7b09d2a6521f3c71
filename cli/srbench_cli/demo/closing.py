"""The demo's end: what the change of the router brought, and a bundle with which anybody can check every number of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from srbench.v1 import comparison_pb2 as pb
from srbench_kit.errors import Unreachable

from srbench_cli import comparison_table, printing, verify_table
from srbench_cli.commands.bundle import run_verifier, write_bundle
from srbench_cli.context import Session
from srbench_cli.demo.loop import Improved
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S


def close(session: Session, improved: Improved, bundle: Path, say: Callable[[str], None]) -> None:
    """Compares the loop's runs, bundles them and verifies the bundle.

    Raises: `Unreachable` (`DEMO_STEP_FAILED`) when a number of the bundle is not equal, and what the services answer.
    """
    runs = improved.baseline.id, improved.candidate.id
    say(f"comparing: {session.hint('compare', *runs)}")
    request = pb.CompareRunsRequest(baseline_run_id=runs[0], candidate_run_ids=runs[1:])
    found = session.door.call(session.door.accounting.CompareRuns, request, SLOW_CALL_TIMEOUT_S)
    # A reader of JSON gets one document, the report; people see what each command shows.
    for_people = not session.as_json
    if for_people:
        printing.print_renderable(comparison_table.comparison(found))
    else:
        for one in found.comparisons:
            say(one.verdict_sentence)
    say("bundling both runs, then deriving every number again from the raw streams, without the service")
    bundle.unlink(missing_ok=True)
    write_bundle(session, runs, bundle)
    verified, code = run_verifier(bundle)
    if for_people:
        printing.print_renderable(verify_table.verification(verified, show_all=False))
    if code:
        raise Unreachable(
            "DEMO_STEP_FAILED",
            f"numbers of {bundle} are not equal; see {session.hint('verify', str(bundle), offline=True)}",
        )
    say("every number of the bundle is equal")
