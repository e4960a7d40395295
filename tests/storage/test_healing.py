"""What the SQLite driver lives through: a full disk, another program's lock, damaged and cut files, second servers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import sys
import threading
import time
from pathlib import Path

import pytest

from apimachinery.storage import sqlite_commits as driver
from apimachinery.storage import sqlite_log
from apimachinery.storage.file_lock import StorageFileError
from apimachinery.storage.interface import (
    REVISION_MARK,
    StorageBusy,
    StorageFull,
    Value,
    ValueTooLarge,
)
from apimachinery.storage.reserve import RESERVE_BYTES
from apimachinery.storage.sqlite import SqliteStorage
from apimachinery.storage.sqlite_checks import Damaged


def value(size: int = 10) -> Value:
    return Value.cut(f'{{"rv":"{REVISION_MARK}","v":"{"x" * size}"}}'.encode())


def run(story) -> None:
    asyncio.run(story())


async def fill(storage: SqliteStorage) -> list[str]:
    keys: list[str] = []
    with pytest.raises(StorageFull, match="disk is full"):
        for number in range(1000):
            await storage.create(f"/g/r/{number}", value(500_000))
            keys.append(f"/g/r/{number}")
    return keys


async def until(condition, seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        await asyncio.sleep(0.05)


async def created_when_there_is_room(storage: SqliteStorage, key: str) -> None:
    """Room that is there between two deletions may be taken by the second, which is a record too: on a slow machine the
    storage heals more than once."""
    for _ in range(5):
        await until(lambda: not storage.trouble)
        with contextlib.suppress(StorageFull):
            await storage.create(key, value(500_000))
            return
    pytest.fail("there was no room in the end")


def test_a_full_disk_takes_deletions_and_heals(small_disk):
    """A full disk wedged the log: deletions and compactions failed as well."""

    async def story() -> None:
        storage = await SqliteStorage.open(small_disk / "x.db")
        keys = await fill(storage)
        assert len(keys) > 10 and "disk is full" in storage.trouble and not storage.failed
        with pytest.raises(StorageFull):
            await storage.create("/g/r/small", value())
        record = await storage.get(keys[0])
        record = await storage.update(keys[0], record.revision, value(500_000))  # a finalizer less
        with pytest.raises(StorageFull):
            await storage.update(keys[0], record.revision, value(600_000))
        for key in keys[: len(keys) // 2]:
            record = await storage.get(key)
            await storage.delete(key, record.revision, value(500_000))
        await created_when_there_is_room(storage, "/g/r/after")
        await storage.close()
        storage = await SqliteStorage.open(small_disk / "x.db")
        assert {record.key for record in (await storage.list("")).records} == {
            *keys[len(keys) // 2 :],
            "/g/r/after",
        }
        await storage.close()

    run(story)


def test_a_disk_filled_by_others_is_noticed_and_left_behind(small_disk):
    async def story() -> None:
        storage = await SqliteStorage.open(small_disk / "x.db")
        first = await storage.create("/g/r/a", value())
        hog = small_disk / "hog"
        with hog.open("wb") as file, pytest.raises(OSError):
            while True:
                file.write(bytes(1 << 16))
                file.flush()
        with pytest.raises(StorageFull):
            for number in range(200):
                await storage.create(f"/g/r/b{number}", value(100_000))
        await storage.delete("/g/r/a", first.revision, value())
        hog.unlink()
        await until(lambda: not storage.trouble)
        await storage.create("/g/r/c", value(100_000))
        await storage.close()

    run(story)


def test_a_start_on_a_full_disk_takes_deletions(small_disk):
    async def story() -> None:
        storage = await SqliteStorage.open(small_disk / "x.db")
        await storage.create("/g/r/a", value())
        await storage.close()
        (small_disk / "hog").write_bytes(bytes((32 << 20) - RESERVE_BYTES))
        storage = await SqliteStorage.open(small_disk / "x.db")
        assert "disk is full" in storage.trouble
        record = await storage.get("/g/r/a")
        await storage.delete("/g/r/a", record.revision, value())
        await storage.close()

    run(story)


def test_a_lock_of_another_program_is_waited_for_beside_the_loop(tmp_path):
    """It froze the loop for five seconds, and the storage for good."""

    async def story() -> None:
        storage = await SqliteStorage.open(tmp_path / "x.db")
        shell = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        shell.execute("BEGIN IMMEDIATE")
        write = asyncio.create_task(storage.create("/g/r/a", value()))
        longest = 0.0
        for _ in range(150):
            before = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - before)
        assert longest < 4  # five seconds, when it waited on the loop
        assert not write.done() and "another program" in storage.trouble
        shell.execute("ROLLBACK")
        await write
        assert not storage.trouble
        shell.close()
        await storage.close()

    run(story)


def test_every_write_waits_equally_long_for_a_lock(tmp_path, monkeypatch):
    """Who came while others waited waited for them, and then as long again."""
    monkeypatch.setattr(driver, "BUSY_SECONDS", 3.0)
    monkeypatch.setattr(sqlite_log, "LOCK_SECONDS", 0.1)

    async def story() -> None:
        storage = await SqliteStorage.open(tmp_path / "x.db")
        shell = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        shell.execute("BEGIN IMMEDIATE")

        async def seconds_of_waiting(key: str) -> float:
            began = time.monotonic()
            with pytest.raises(StorageBusy):
                await storage.create(key, value())
            return time.monotonic() - began

        first = asyncio.create_task(seconds_of_waiting("/g/r/a"))
        await asyncio.sleep(0.5)
        second = await seconds_of_waiting("/g/r/b")
        # 5.5 seconds, when it waited for the first to give up before its own time began.
        assert first.done() and 2.9 < second < 1.7 * await first
        later = asyncio.create_task(storage.create("/g/r/c", value()))
        await asyncio.sleep(0.1)
        shell.execute("ROLLBACK")
        await later
        shell.close()
        await storage.close()

    run(story)


def test_a_start_waits_for_a_lock(tmp_path):
    async def story() -> None:
        path = tmp_path / "x.db"
        await (await SqliteStorage.open(path)).close()
        shell = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        shell.execute("BEGIN IMMEDIATE")
        shell.execute("UPDATE facts SET value = value")
        letting_go = threading.Timer(1.2, lambda: shell.execute("ROLLBACK"))
        letting_go.start()
        storage = await SqliteStorage.open(path)
        await storage.create("/g/r/a", value())
        letting_go.join()
        shell.close()
        await storage.close()

    run(story)


def test_a_log_that_a_reader_holds_is_told(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(driver, "GROWN_BYTES", 8 << 20)

    async def story() -> None:
        path = tmp_path / "x.db"
        storage = await SqliteStorage.open(path)
        await storage.create("/g/r/a", value())
        shell = sqlite3.connect(path, isolation_level=None)
        shell.execute("BEGIN")
        shell.execute("SELECT count(*) FROM log").fetchone()
        for number in range(26):
            await storage.create(f"/g/r/b{number}", value(1 << 20))
        told = [record.getMessage() for record in caplog.records if "grows" in record.getMessage()]
        assert len(told) == 2 and "has 8 MiB" in told[0] and "has 2" in told[1]
        shell.execute("ROLLBACK")
        shell.close()
        await storage.create("/g/r/c", value())
        await storage.create("/g/r/d", value(1 << 20))
        assert (tmp_path / "x.db-wal").stat().st_size < 30 << 20
        await storage.close()

    run(story)


@pytest.mark.skipif(sys.platform == "win32", reason="no limits for files")
def test_a_limit_for_files_is_a_full_disk(tmp_path):
    """So is a quota: to SQLite both are errors of writing, not a lack of room."""
    import resource

    async def story() -> None:
        storage = await SqliteStorage.open(tmp_path / "x.db")
        first = await storage.create("/g/r/a", value(100_000))
        _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (RESERVE_BYTES + (2 << 20), hard))
        try:
            number = 0
            with pytest.raises(StorageFull):
                for number in range(400):
                    await storage.create(f"/g/r/{number:03d}", value(500_000))
            assert number > 5 and not storage.failed
            for each in range(6):
                record = await storage.get(f"/g/r/{each:03d}")
                await storage.delete(record.key, record.revision, value(500_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        await until(lambda: not storage.trouble)
        await storage.create("/g/r/z", value(500_000))
        await storage.delete("/g/r/a", first.revision, value())
        keys = {record.key for record in (await storage.list("")).records}
        assert len(keys) == number - 6 + 1
        await storage.close()
        storage = await SqliteStorage.open(tmp_path / "x.db")
        assert {record.key for record in (await storage.list("")).records} == keys
        await storage.close()

    run(story)


def test_a_lock_that_is_not_let_go_fails_the_write_and_no_later_one(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "BUSY_SECONDS", 0.5)

    async def story() -> None:
        storage = await SqliteStorage.open(tmp_path / "x.db")
        shell = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageBusy):
            await storage.create("/g/r/a", value())
        shell.execute("ROLLBACK")
        shell.close()
        assert (await storage.create("/g/r/a", value())).revision == 3
        await storage.close()

    run(story)


async def _filled(path: Path) -> None:
    storage = await SqliteStorage.open(path)
    for name in "abc":
        await storage.create(f"/g/r/{name}", value(2000))
    await storage.close()


def damage(path: Path, key: str) -> None:
    """Changes one byte of a value, as a bad disk would: SQLite sees nothing of it."""
    connection = sqlite3.connect(path)
    (held,) = connection.execute("SELECT value FROM log WHERE key = ?", (key,)).fetchone()
    connection.close()
    data = path.read_bytes()
    place = data.index(held[:200]) + 100
    path.write_bytes(data[:place] + b"y" + data[place + 1 :])


def test_a_changed_byte_is_found_at_the_start(tmp_path):
    path = tmp_path / "x.db"
    asyncio.run(_filled(path))
    damage(path, "/g/r/b")
    with pytest.raises(Damaged, match=r"1 records are damaged \(/g/r/b at 3\): restore a backup"):
        asyncio.run(SqliteStorage.open(path))


def test_a_log_that_lost_its_newest_writes_is_not_served(tmp_path):
    """A database copied, or restored by a file system, without its write-ahead log."""

    async def story() -> None:
        path, copy = tmp_path / "x.db", tmp_path / "copy.db"
        storage = await SqliteStorage.open(path)
        await storage.create("/g/r/a", value())
        storage._log._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        await storage.create("/g/r/b", value())
        for end in ("", ".lock"):
            shutil.copy(f"{path}{end}", f"{copy}{end}")
        shutil.copy(path, tmp_path / "alone.db")
        await storage.close()
        with pytest.raises(StorageFileError, match="ends at revision 2, but 3 was acknowledged"):
            await SqliteStorage.open(copy)
        await (await SqliteStorage.open(tmp_path / "alone.db")).close()  # nothing says what it lacks

    run(story)


def test_a_database_made_again_has_no_mark(tmp_path):
    asyncio.run(_filled(tmp_path / "x.db"))
    (tmp_path / "x.db").unlink()
    asyncio.run(_filled(tmp_path / "x.db"))


def test_a_second_server_is_refused_by_whatever_name(tmp_path):
    async def story() -> None:
        path = tmp_path / "x.db"
        storage = await SqliteStorage.open(path)
        (tmp_path / "soft.db").symlink_to(path)
        os.link(path, tmp_path / "hard.db")
        for name in ("soft.db", "hard.db"):
            with pytest.raises(StorageFileError, match="held by another server"):
                await SqliteStorage.open(tmp_path / name)
        (tmp_path / "x.db.lock").unlink()
        with pytest.raises(StorageFileError, match="held by another server"):
            await SqliteStorage.open(path)
        (tmp_path / "x.db.lock").unlink()
        record = await storage.create("/g/r/a", value())
        # The next start knows what was acknowledged, though the file went.
        assert (tmp_path / "x.db.lock").read_bytes().split()[1] == b"%020d" % record.revision
        with pytest.raises(StorageFileError, match=r"x\.db\.lock is held by another server"):
            await SqliteStorage.open(path)
        await storage.close()

    run(story)


def test_nobody_but_the_owner_can_read_the_database(tmp_path):
    async def story() -> None:
        path = tmp_path / "x.db"
        storage = await SqliteStorage.open(path)
        await storage.create("/g/r/a", value())
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        assert len(modes) == 5 and set(modes.values()) == {0o600}
        await storage.close()
        path.chmod(0o644)
        (tmp_path / "x.db-wal").touch(0o644)
        storage = await SqliteStorage.open(path)
        await storage.create("/g/r/b", value())
        assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
        await storage.close()
        assert path.stat().st_mode & 0o777 == 0o600

    run(story)


def test_format_1_is_read_and_brought_up(tmp_path):
    path = tmp_path / "x.db"
    asyncio.run(_filled(path))
    connection = sqlite3.connect(path)
    connection.executescript(
        "ALTER TABLE log DROP COLUMN checksum; DELETE FROM facts WHERE name = 'identity'; PRAGMA user_version = 1;"
    )
    connection.close()

    async def story() -> None:
        storage = await SqliteStorage.open(path)
        assert storage.revision == 4
        await storage.create("/g/r/d", value())
        await storage.close()
        storage = await SqliteStorage.open(path)
        assert len((await storage.list("")).records) == 4
        await storage.close()

    run(story)


def test_a_value_above_the_limit_is_refused(tmp_path):
    async def story() -> None:
        storage = await SqliteStorage.open(tmp_path / "x.db")
        with pytest.raises(ValueTooLarge):
            await storage.create("/g/r/a", value(3 << 19))
        record = await storage.create("/g/r/a", value((3 << 19) - 60))
        with pytest.raises(ValueTooLarge):
            await storage.update("/g/r/a", record.revision, value(3 << 19))
        await storage.close()

    run(story)
