"""A new store gets its tables at once, an old one by its scripts; both come to the same."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from srbench_accounting import schema
from srbench_kit import db
from srbench_kit.errors import Conflict, DataLoss
from srbench_planner import store

SERVICES = [("srbench_planner", store.HEAD, store.metadata), ("srbench_accounting", schema.HEAD, schema.metadata)]


def definitions(engine: sa.Engine) -> dict[str, list[str]]:
    """The words of every table's and index's definition, whatever their order."""
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {name: sorted(word for word in re.split(r'[\s(),"]+', sql.upper()) if word) for name, sql in rows}


@pytest.mark.parametrize(("package", "head", "metadata"), SERVICES)
def test_the_scripts_make_exactly_the_tables_of_a_new_store(
    package: str, head: str, metadata: sa.MetaData, tmp_path: Path
) -> None:
    scripted, new = (db.create_engine(f"sqlite:///{tmp_path}/{name}.sqlite3") for name in ("scripted", "new"))
    db.upgrade(scripted, package, head)
    db.upgrade(new, package, head, metadata)
    assert definitions(scripted) == definitions(new)
    for engine in (scripted, new):
        db.upgrade(engine, package, head, metadata)
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").fetchall() == [(head,)]
        engine.dispose()


def test_a_new_store_is_made_without_the_library_of_scripts(tmp_path: Path) -> None:
    code = (
        "import sys; from srbench_kit import db; from srbench_accounting import schema;"
        f"engine = db.create_engine('sqlite:///{tmp_path}/a.sqlite3');"
        "db.upgrade(engine, 'srbench_accounting', schema.HEAD, schema.metadata);"
        "print('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "False\n"


def test_tables_without_a_revision_are_left_to_the_scripts(tmp_path: Path) -> None:
    engine = db.create_engine(f"sqlite:///{tmp_path}/a.sqlite3")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE runs (foreign_to_us INTEGER)")
    with pytest.raises(sa.exc.OperationalError, match="already exists"):
        db.upgrade(engine, "srbench_accounting", schema.HEAD, schema.metadata)
    engine.dispose()


@pytest.mark.parametrize(("package", "head", "metadata"), SERVICES)
def test_a_store_of_a_newer_version_is_refused_in_one_sentence_and_left_alone(
    package: str, head: str, metadata: sa.MetaData, tmp_path: Path
) -> None:
    engine = db.create_engine(f"sqlite:///{tmp_path}/a.sqlite3")
    db.upgrade(engine, package, head, metadata)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0099_future'")
    before = definitions(engine)
    with pytest.raises(Conflict, match="at 0099_future, which this version does not know") as caught:
        db.upgrade(engine, package, head, metadata)
    assert caught.value.reason == "NEWER_STORE"
    assert definitions(engine) == before
    engine.dispose()


@pytest.mark.parametrize("header", [b"", b"SQLite format 3\x00"])
def test_a_damaged_database_is_named(header: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    path.write_bytes(header + b"\x5a" * 8192)
    engine = db.create_engine(f"sqlite:///{path}")
    with pytest.raises(DataLoss, match=r"a\.sqlite3 is damaged") as caught:
        db.upgrade(engine, "srbench_accounting", schema.HEAD, schema.metadata)
    assert caught.value.reason == "DAMAGED_DATABASE"
    engine.dispose()
