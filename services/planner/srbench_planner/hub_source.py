"""Files of a Hugging Face dataset at a fixed revision: resumed, tried again, and refused in one sentence."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from srbench_kit.errors import Exhausted, Forbidden, NotFound, SrBenchError, Unreachable

from srbench_planner.benchmark import HubSource
from srbench_planner.files import make_private

ATTEMPTS = 5
FIRST_PAUSE_S = 1.0
# The hub counts requests over five minutes.
MOST_PAUSE_S = 300.0
_SECONDS = re.compile(r"([0-9]{1,6})")
# As the hub writes it: `"resolvers";r=0;t=55`, no requests left for 55 seconds.
_RESET = re.compile(r";\s?t=([0-9]{1,6})")
TIMEOUT_S = 30.0
_log = logging.getLogger(__name__)


def download(
    source: HubSource, cache: Path, report: Callable[[int], None], pause_s: float = FIRST_PAUSE_S
) -> tuple[tuple[str, Path], ...]:
    """The source's files below `cache`; what lies there whole already is not fetched again.

    The endpoint is `HF_ENDPOINT`, the token `HF_TOKEN`; saved logins of this machine are not used. A dropped transfer
    goes on where it stopped. `pause_s` is the wait before the second of five attempts; it doubles, and is longer where the
    hub asks for that.

    Raises: `Forbidden` (`GATED`), `NotFound` (`SOURCE_NOT_FOUND`), `Unreachable` (`SOURCE_UNREACHABLE`),
    `Exhausted` (`NO_SPACE`).
    """
    folder = cache / source.repository.replace("/", "--") / source.revision
    make_private(folder)
    counted = _Counter(report)
    return tuple((Path(name).name, _with_retries(source, name, folder, counted, pause_s)) for name in source.files)


class _Counter:
    """Adds up bytes over files and passes the sum on."""

    def __init__(self, report: Callable[[int], None]) -> None:
        self._report, self._total = report, 0

    def add(self, count: float | None) -> None:
        self._total += int(count or 0)
        self._report(self._total)


def _with_retries(source: HubSource, name: str, folder: Path, counted: _Counter, pause_s: float) -> Path:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _download_once(source, name, folder, counted)
        except Unreachable as error:
            if attempt == ATTEMPTS:
                raise
            _log.warning("attempt %d of %d for %s: %s", attempt, ATTEMPTS, name, error)
            time.sleep(max(pause_s * 2 ** (attempt - 1), _asked_pause_s(error)))
    raise AssertionError("the loop returns or raises")


def _asked_pause_s(error: Unreachable) -> float:
    """How long the hub asks to be left alone; asked sooner, it only refuses for longer."""
    headers = getattr(getattr(error.__cause__, "response", None), "headers", {})
    named = _SECONDS.fullmatch(str(headers.get("retry-after", ""))) or _RESET.search(str(headers.get("ratelimit", "")))
    return min(float(named[1]), MOST_PAUSE_S) if named else 0.0


def _download_once(source: HubSource, name: str, folder: Path, counted: _Counter) -> Path:
    # Imported here: it takes a while, and only downloads pay for it.
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import HTTPError, LocalEntryNotFoundError  # type: ignore[attr-defined]
    from huggingface_hub.utils.tqdm import tqdm

    class Quiet(tqdm):
        """Counts instead of drawing."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **(kwargs | {"disable": True}))  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> bool | None:
            counted.add(n)
            return None

    endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    token = os.environ.get("HF_TOKEN") or False
    if source.gated and not token and not os.environ.get("HF_ENDPOINT"):
        # Known without asking; a mirror may have other terms.
        raise _gated(source, "HF_TOKEN is not set")
    url = hf_hub_url(source.repository, name, repo_type="dataset", revision=source.revision, endpoint=endpoint)
    try:
        if not (folder / name).exists():
            # Asked first because the download's own attempts take minutes to find out that nobody answers.
            get_hf_file_metadata(url, token=token, timeout=TIMEOUT_S, endpoint=endpoint)
        path = hf_hub_download(
            source.repository,
            name,
            repo_type="dataset",
            revision=source.revision,
            endpoint=endpoint,
            local_dir=folder,
            token=token,
            etag_timeout=TIMEOUT_S,
            library_name="sr-bench",
            tqdm_class=Quiet,
        )
    except (HTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise explain(error, source, name) from error
    return Path(path)


def _gated(source: HubSource, why: str) -> Forbidden:
    where = f"{source.repository} at revision {source.revision[:12]}"
    sentence = f"{where} is gated and {why}; accept the terms at {source.url} and set HF_TOKEN for the planner"
    return Forbidden("GATED", sentence)


def explain(error: Exception, source: HubSource, name: str) -> SrBenchError:
    """The error of our taxonomy that a failed download stands for."""
    from huggingface_hub import errors
    from srbench_kit.db import storage_error

    cause = error.__cause__ if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ else error
    where = f"{source.repository} at revision {source.revision[:12]}"
    if isinstance(cause, errors.GatedRepoError):
        token = (
            "the account of HF_TOKEN has not been granted access" if os.environ.get("HF_TOKEN") else "HF_TOKEN is not set"
        )
        return _gated(source, token)
    if isinstance(cause, errors.RemoteEntryNotFoundError | errors.RevisionNotFoundError | errors.RepositoryNotFoundError):
        return NotFound("SOURCE_NOT_FOUND", f"the hub has no {name} in {where}, or hides it from this account")
    status = getattr(getattr(cause, "response", None), "status_code", None)
    if status in (401, 403):
        return Forbidden("GATED", f"the hub refuses {where} with status {status}; set HF_TOKEN for the planner")
    stored = storage_error(cause)
    if isinstance(stored, Exhausted):
        return Exhausted("NO_SPACE", f"the disk is full while {name} is downloaded; free some space and ask again")
    detail = f"status {status}" if status else type(cause).__name__
    return Unreachable("SOURCE_UNREACHABLE", f"{name} of {where} could not be downloaded: {detail}")
