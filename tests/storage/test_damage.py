"""Damage of every part of a database: it is told at the start and by a check, and never served as fewer writes."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.storage.test_healing import value

from apimachinery.storage.file_lock import StorageFileError
from apimachinery.storage.maintenance import REVISIONS_SKIPPED, back_up, check, repair, restore
from apimachinery.storage.sqlite import SqliteStorage
from apimachinery.storage.sqlite_checks import Damaged
from kubewright.cli import main

PAGE = 4096
TABLE_LEAF, INDEX_LEAF = 13, 10
OBJECTS = 300


async def _fill(path: Path) -> None:
    storage = await SqliteStorage.open(path)
    await asyncio.gather(*(storage.create(f"/g/r/{n:04d}", value(n * 7 % 900)) for n in range(OBJECTS)))
    for n in range(20):
        record = await storage.get(f"/g/r/{n:04d}")
        await storage.update(record.key, record.revision, value(30))
    await storage.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    asyncio.run(_fill(folder / "x.db"))
    return folder


@pytest.fixture
def path(filled: Path, tmp_path: Path) -> Path:
    for name in ("x.db", "x.db.lock"):
        shutil.copy(filled / name, tmp_path / name)
    return tmp_path / "x.db"


async def _living(path: Path) -> int:
    storage = await SqliteStorage.open(path)
    try:
        return len((await storage.list("")).records)
    finally:
        await storage.close()


def living(path: Path) -> int:
    return asyncio.run(_living(path))


def pages(data: bytearray, kind: int) -> list[int]:
    return [at for at in range(PAGE, len(data), PAGE) if data[at] == kind]


def without_a_cell(data: bytearray, kind: int) -> None:
    """A page forgets one of its entries: SQLite reads on as if it had never been there."""
    at = pages(data, kind)[1]
    (cells,) = struct.unpack(">H", data[at + 3 : at + 5])
    data[at + 3 : at + 5] = struct.pack(">H", cells - 1)


def with_another_key(data: bytearray, kind: int) -> None:
    at = data.index(b"/g/r/", pages(data, kind)[1])
    data[at + 1] ^= 1


def zeros(data: bytearray, kind: int) -> None:
    at = pages(data, kind)[1]
    data[at : at + PAGE] = bytes(PAGE)


BROKEN: dict[str, tuple[Callable[[bytearray], object], str]] = {
    "an entry of the index": (lambda data: without_a_cell(data, INDEX_LEAF), "entries for 320 records"),
    "a row": (lambda data: without_a_cell(data, TABLE_LEAF), "is damaged"),
    "a key in the index": (lambda data: with_another_key(data, INDEX_LEAF), "damaged"),
    "a page of the index": (lambda data: zeros(data, INDEX_LEAF), "is damaged"),
    "a page of rows": (lambda data: zeros(data, TABLE_LEAF), "is damaged"),
    "the first page": (lambda data: data.__setitem__(slice(0, PAGE), bytes(PAGE)), "is not a database"),
    "the name of the program": (lambda data: data.__setitem__(68, 1), "another program's database"),
    "the second half": (lambda data: data.__delitem__(slice(len(data) // 2, None)), "is damaged"),
    "the last page": (lambda data: data.__delitem__(slice(len(data) - PAGE, None)), "is damaged"),
    "everything": (lambda data: data.clear(), r"is empty, but revision 321 was acknowledged"),
}


@pytest.mark.parametrize("part", BROKEN)
def test_what_is_broken_is_told_and_not_served(
    part: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harm, told = BROKEN[part]
    data = bytearray(path.read_bytes())
    harm(data)
    path.write_bytes(data)
    with pytest.raises(StorageFileError, match=told):
        living(path)
    assert main(["storage", "check", str(path)]) == 1
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err and len(shown.err.splitlines()) <= 1
    assert "fault: " in shown.out or "error: " in shown.err


@pytest.mark.parametrize(
    "wrong", ["value = CAST(value AS TEXT)", "value = 7", "created = 'a'", "deleted = 'b'"]
)
def test_a_column_of_another_type_is_damage(wrong, path):
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE log SET {wrong} WHERE revision = 200")
    connection.commit()
    connection.close()
    with pytest.raises(Damaged, match="/g/r/0198 at 200"):
        living(path)
    assert check(path).damaged == (("/g/r/0198", 200),)


@pytest.mark.parametrize("harm", [without_a_cell, with_another_key])
def test_an_index_is_made_again_without_loss(harm, path, capsys):
    data = bytearray(path.read_bytes())
    harm(data, INDEX_LEAF)
    path.write_bytes(data)
    assert main(["storage", "check", "--repair", str(path)]) == 0
    assert "the index was rebuilt" in capsys.readouterr().out
    assert check(path).good
    assert living(path) == OBJECTS


def in_schema(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_an_index_that_knows_of_rows_that_are_gone_says_which(path):
    # While its index is not in the schema a row goes from the table alone.
    in_schema(
        path,
        "CREATE TABLE kept AS SELECT * FROM sqlite_schema WHERE name = 'log_by_key'",
        "DELETE FROM sqlite_schema WHERE name = 'log_by_key'",
    )
    in_schema(
        path,
        "DELETE FROM log WHERE key = '/g/r/0042'",
        "INSERT INTO sqlite_schema SELECT * FROM kept",
    )
    in_schema(path, "DROP TABLE kept")
    with pytest.raises(StorageFileError, match="319 records"):
        living(path)
    report = repair(path)
    assert report.damaged == (("/g/r/0042", 44),)
    assert check(path).good and living(path) == OBJECTS - 1


def test_a_log_without_its_database_is_not_made_anew(path):
    path.rename(path.with_name("away"))
    path.with_name("x.db-wal").write_bytes(b"x" * 100)
    for _ in range(2):  # the first does not leave an empty one
        with pytest.raises(
            StorageFileError, match=r"x\.db is (gone|empty), but x\.db-wal holds writes of it"
        ):
            living(path)
    path.with_name("x.db-wal").unlink()
    path.unlink(missing_ok=True)
    assert living(path) == 0  # who removes all of it begins anew


def test_a_record_of_the_past_is_checked_when_it_is_read(path):
    connection = sqlite3.connect(path)
    connection.execute("UPDATE log SET value = CAST(replace(value, 'x', 'y') AS BLOB) WHERE revision = 9")
    connection.commit()
    connection.close()

    async def story() -> None:
        storage = await SqliteStorage.open(path)
        assert len((await storage.events("", 10, 5))[0]) == 5
        for read in (
            storage.events("", 5, 10),
            storage.watch("", 5, list),
            storage.get("/g/r/0007", at=9),
            storage.list("", at=15),
            storage.events("", 300, 20),  # the update that follows it
        ):
            with pytest.raises(Damaged, match="/g/r/0007 at 9"):
                await read
        assert (await storage.get("/g/r/0007")).revision == 309
        await storage.close()

    asyncio.run(story())


def test_a_restored_database_is_not_given_the_log_of_the_lost(path, tmp_path):
    """SQLite takes whatever write-ahead log has the right name for that of the database."""

    async def story() -> None:
        storage = await SqliteStorage.open(path)
        back_up(path, tmp_path / "backup")
        for n in range(50):
            await storage.create(f"/g/s/{n}", value())
        for end in ("-wal", ".lock"):
            shutil.copy(f"{path}{end}", tmp_path / f"kept{end}")
        await storage.close()

    asyncio.run(story())
    path.unlink()
    for end in ("-wal", ".lock"):
        shutil.copy(tmp_path / f"kept{end}", f"{path}{end}")
    revision = restore(tmp_path / "backup", path)
    assert revision == 371 + REVISIONS_SKIPPED  # above what the lost one acknowledged
    assert (tmp_path / "x.db.replaced-wal").exists()
    assert check(path).good and living(path) == OBJECTS


def test_a_backup_does_not_replace_a_database_in_use(path, tmp_path):
    async def story() -> None:
        storage = await SqliteStorage.open(path)
        (tmp_path / "link").symlink_to(path)
        for target in (path, tmp_path / "link"):
            with pytest.raises(StorageFileError, match="is a database in use"):
                back_up(path, target)
        other = await SqliteStorage.open(tmp_path / "other.db")
        with pytest.raises(StorageFileError, match="is a database in use"):
            back_up(path, tmp_path / "other.db")
        await other.close()
        for _ in range(2):  # one of before is replaced
            assert back_up(path, tmp_path / "backup") == 321
        with pytest.raises(StorageFileError, match=r"cannot write .*/absent/backup: No such file"):
            back_up(path, tmp_path / "absent" / "backup")
        (tmp_path / "folder").mkdir()
        with pytest.raises(StorageFileError, match=r"cannot write .*/folder: Is a directory"):
            back_up(path, tmp_path / "folder")
        await storage.close()

    asyncio.run(story())
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "backup", "folder", "link", "other.db", "other.db.lock", "x.db", "x.db.lock",
    ]  # fmt: skip


def test_a_start_shows_all_or_refuses(path):
    """Whatever bit of a page's head, or whatever page, is another: no object is missing, none is other than it was."""

    async def state() -> dict[str, tuple[int, bytes]]:
        storage = await SqliteStorage.open(path)
        try:
            return {
                record.key: (record.revision, record.value) for record in (await storage.list("")).records
            }
        finally:
            await storage.close()

    good, wanted, chance, refused = path.read_bytes(), asyncio.run(state()), random.Random(20), 0
    for turn in range(50):
        data = bytearray(good)
        at = chance.randrange(len(data) // PAGE) * PAGE
        if turn % 4:
            data[at + chance.randrange(120)] ^= 1 << chance.randrange(8)
        else:
            other = chance.randrange(1, len(data) // PAGE) * PAGE
            data[at : at + PAGE] = data[other : other + PAGE]
        path.write_bytes(data)
        try:
            assert asyncio.run(state()) == wanted
        except StorageFileError:
            refused += 1
    assert 5 < refused < 50
