"""A real S3 API server for the session; each test has a place of its own in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.object_store import CREDENTIALS, ObjectStore, running_object_store


@pytest.fixture(scope="session")
def s3_server() -> Iterator[ObjectStore]:
    os.environ.update(CREDENTIALS)
    with running_object_store() as server:
        yield server


@pytest.fixture
def s3(s3_server: ObjectStore, request: pytest.FixtureRequest) -> Iterator[ObjectStore]:
    store = ObjectStore(s3_server.door, prefix=f"{request.node.name}".replace("[", "-").rstrip("]"))
    yield store
    store.door.pass_bytes = None
    store.door.shut()
    store.door.open()


@pytest.fixture(params=["folder", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where objects lie: a folder, or the S3 server."""
    if request.param == "folder":
        return (tmp_path / "objects").as_uri()
    found: ObjectStore = request.getfixturevalue("s3")
    return found.url
