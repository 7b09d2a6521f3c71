"""Space kept aside: taken while there is some, given up once for a transaction that found the volume full."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from srbench_kit import ballast, db
from srbench_kit.ballast import Ballast
from srbench_kit.errors import Exhausted


def volume(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_bavail=free // 4096, f_frsize=4096))


@pytest.mark.parametrize(("free", "kept"), [(10**12, ballast.MOST_BYTES), (3 << 20, 1 << 20), (100_000, None)])
def test_a_small_volume_keeps_a_part_of_what_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, kept: int | None
) -> None:
    volume(monkeypatch, free)
    held = Ballast(tmp_path / "ballast")
    found = tmp_path / "ballast"
    assert (found.stat().st_blocks * 512 if found.exists() else None) == kept
    assert held.drop() is (kept is not None)
    assert not held.drop()
    assert not found.exists()


class FullUnlessDropped:
    """A volume that has room for one more insert when the ballast is gone."""

    def __init__(self, path: Path) -> None:
        self.path, self.room = path, 1
        self.engine = db.create_engine(f"sqlite:///{path.parent}/t.sqlite3")
        with self.engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE t (x)")

    def insert(self, connection: sa.Connection) -> None:
        pages = 3 if self.path.exists() or not self.room else 1000
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}").scalar()
        connection.exec_driver_sql("INSERT INTO t VALUES (zeroblob(100000))")
        self.room -= 1


async def test_a_full_volume_still_takes_the_transaction_that_the_ballast_makes_room_for(tmp_path: Path) -> None:
    full = FullUnlessDropped(tmp_path / "ballast")
    writer = db.GroupWriter(full.engine, ballast=Ballast(full.path))
    await writer.run(full.insert)
    # It is taken again with the next success, and given up in vain when there is no room at all.
    assert full.path.exists()
    with pytest.raises(Exhausted) as caught:
        await writer.run(full.insert)
    assert caught.value.reason == "STORAGE_FULL"
    writer.close()
    assert db.Reader(full.engine).run_now(lambda c: c.exec_driver_sql("SELECT count(*) FROM t").scalar()) == 1
