"""What the SQLite driver promises beyond the contract: durability, one process, its own files only, failure."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from apimachinery.storage.file_lock import StorageFileError
from apimachinery.storage.interface import REVISION_MARK, StorageClosed, Value
from apimachinery.storage.sqlite import SqliteStorage
from apimachinery.storage.url import StorageUrlError, open_storage, storage_path

KILLS = int(os.environ.get("KUBEWRIGHT_KILLS", "3"))
VALUE = Value.cut(f'{{"rv":"{REVISION_MARK}"}}'.encode())


def run(story) -> None:
    asyncio.run(story())


def test_what_was_written_is_there_after_opening_again(tmp_path):
    async def story() -> None:
        storage = await SqliteStorage.open(tmp_path / "x.db")
        a = await storage.create("/g/r/a", VALUE)
        b = await storage.create("/g/r/b", VALUE)
        await storage.update("/g/r/a", a.revision, VALUE)
        await storage.delete("/g/r/b", b.revision, VALUE)
        await storage.close()
        storage = await SqliteStorage.open(tmp_path / "x.db")
        assert storage.revision == 5
        assert (await storage.get("/g/r/a")).revision == 4
        assert [r.revision for r in (await storage.list("", at=3)).records] == [2, 3]
        await storage.close()

    run(story)


def test_a_revision_is_never_used_twice_even_where_all_rows_are_compacted(tmp_path):
    async def story() -> None:
        storage = await SqliteStorage.open(tmp_path / "x.db")
        a = await storage.create("/g/r/a", VALUE)
        await storage.delete("/g/r/a", a.revision, VALUE)
        await storage.compact(3)
        await storage.close()
        storage = await SqliteStorage.open(tmp_path / "x.db")
        assert (storage.revision, storage.compacted) == (3, 3)
        assert (await storage.create("/g/r/b", VALUE)).revision == 4
        await storage.close()

    run(story)


def test_what_was_deleted_stays_so_after_a_compaction_that_was_cut_short(tmp_path):
    async def story() -> None:
        storage = await SqliteStorage.open(tmp_path / "x.db")
        a = await storage.create("/g/r/a", VALUE)
        b = await storage.update("/g/r/a", a.revision, VALUE)
        storage._log.set_compacted(b.revision)  # killed here: said, not yet done
        await storage.close()
        storage = await SqliteStorage.open(tmp_path / "x.db")
        gone = await storage.delete("/g/r/a", b.revision, VALUE)
        await storage.create("/g/r/b", VALUE)
        await storage.compact(gone.revision)
        await storage.close()
        storage = await SqliteStorage.open(tmp_path / "x.db")
        assert await storage.get("/g/r/a") is None
        assert await storage.get("/g/r/b") is not None
        await storage.close()

    run(story)


def test_nothing_acknowledged_is_lost_by_kill_9_under_load(tmp_path):
    """16 writers and a compaction, killed again and again; each time all that was acknowledged must be there."""
    path = tmp_path / "x.db"
    acknowledged: dict[str, tuple[int, str]] = {}
    for turn in range(KILLS):
        writer = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("kill_writer.py")), str(path), str(turn)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(random.Random(turn).uniform(0.1, 0.6))
        writer.send_signal(signal.SIGKILL)
        said = (first + writer.stdout.read()).decode()
        writer.wait()
        writer.stdout.close()
        before = len(acknowledged)
        for line in said.split("\n")[:-1]:
            key, revision, state = line.split()
            acknowledged[key] = (int(revision), state)
        assert len(acknowledged) > before + 10
        asyncio.run(_check(path, acknowledged))


async def _check(path: Path, acknowledged: dict[str, tuple[int, str]]) -> None:
    storage = await SqliteStorage.open(path)
    assert storage.revision >= max(revision for revision, _ in acknowledged.values())
    living = {record.key: record for record in (await storage.list("")).records}
    for key, (revision, state) in acknowledged.items():
        record = living.get(key)
        if state == "-" or (state == "b" and record is None):
            # A deletion may have been durable before it was acknowledged.
            assert record is None
            assert state == "-" or int(key.rpartition("/")[2]) % 3 == 0
        else:
            assert record is not None and record.revision >= revision
            assert record.value.startswith(b"%d " % record.revision)
    await storage.close()


def test_a_second_process_is_refused(tmp_path):
    async def story() -> None:
        storage = await SqliteStorage.open(tmp_path / "x.db")
        with pytest.raises(StorageFileError, match="held by another server"):
            await SqliteStorage.open(tmp_path / "x.db")
        await storage.close()
        await (await SqliteStorage.open(tmp_path / "x.db")).close()

    run(story)


def test_a_file_of_another_program_is_left_alone(tmp_path):
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(StorageFileError, match="another program's database"):
        asyncio.run(SqliteStorage.open(foreign))
    text = tmp_path / "notes.txt"
    text.write_text("not a database, whatever it is called " * 100)
    with pytest.raises(StorageFileError, match="cannot use"):
        asyncio.run(SqliteStorage.open(text))
    assert text.read_text().startswith("not a database")
    with pytest.raises(StorageFileError, match="cannot write"):
        asyncio.run(SqliteStorage.open(tmp_path / "no" / "such" / "folder.db"))


def test_a_later_format_is_refused(tmp_path):
    asyncio.run(_make(tmp_path / "x.db"))
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StorageFileError, match="format 99"):
        asyncio.run(SqliteStorage.open(tmp_path / "x.db"))


async def _make(path: Path) -> None:
    await (await SqliteStorage.open(path)).close()


def test_after_an_io_error_nothing_is_written_until_it_is_opened_anew(tmp_path, monkeypatch):
    async def story() -> None:
        storage = await SqliteStorage.open(tmp_path / "x.db")
        await storage.create("/g/r/a", VALUE)

        def broken(*_: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        monkeypatch.setattr(storage._log, "write", broken)
        with pytest.raises(StorageClosed, match="may or may not be durable"):
            await storage.create("/g/r/b", VALUE)
        monkeypatch.undo()
        with pytest.raises(StorageClosed, match="open the storage again"):
            await storage.create("/g/r/c", VALUE)
        assert storage.failed
        assert (await storage.get("/g/r/a")) is not None
        await storage.close()
        storage = await SqliteStorage.open(tmp_path / "x.db")
        await storage.create("/g/r/c", VALUE)
        await storage.close()

    run(story)


def test_compaction_goes_on_beside_writes_and_the_log_does_not_grow(tmp_path):
    async def story() -> None:
        path = tmp_path / "x.db"
        storage = await SqliteStorage.open(path)
        record = await storage.create("/g/r/a", VALUE)
        big = Value(b"x" * 5_000, b"")
        for _ in range(8):
            for _ in range(500):
                record = await storage.update("/g/r/a", record.revision, big)
            await asyncio.gather(
                storage.compact(storage.revision), storage.create(f"/g/r/{_}{record.revision}", VALUE)
            )
        assert path.stat().st_size < 6_000_000
        assert path.with_name("x.db-wal").stat().st_size < 6_000_000
        await storage.close()
        assert not path.with_name("x.db-wal").exists()

    run(story)


@pytest.mark.parametrize("url", ["", "sqlite://x", "sqlite:///", "postgres:///x", "sqlite:////", "memory"])
def test_what_is_no_storage_url(url):
    with pytest.raises(StorageUrlError, match="use memory://"):
        asyncio.run(open_storage(url))


def test_storage_urls():
    assert storage_path("memory://") is None
    assert storage_path("sqlite:///a/b.db") == Path("a/b.db")
    assert storage_path("sqlite:////a/b.db") == Path("/a/b.db")
