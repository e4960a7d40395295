"""Versions that are kept beyond compaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from apimachinery.storage.interface import REVISION_MARK, Record, Value
from apimachinery.storage.kept import NEVER, KeepOptions, PastRange
from apimachinery.storage.sqlite import SqliteStorage
from apimachinery.storage.url import StorageOptions, StorageUrlError, open_storage

FOREVER = 1e6


def value(text: str) -> Value:
    return Value.cut(f'{{"r":"{REVISION_MARK}","v":"{text}"}}'.encode())


def run(path: Path, keep: KeepOptions | None, work: Callable[[SqliteStorage], Awaitable[None]]) -> None:
    async def inside() -> None:
        storage = await SqliteStorage.open(path, keep=keep)
        try:
            await work(storage)
        finally:
            await storage.close()

    asyncio.run(inside())


async def texts(storage: SqliteStorage, key: str = "/core/x/a", **how: int) -> tuple[list[str], bool]:
    asked = PastRange(
        key, key + "\0", how.get("before", NEVER), how.get("limit", 100), how.get("most", 1 << 20)
    )
    versions, more = await storage.versions(asked, lambda record: True)
    return [_text(each.record) + ("-" if each.deleted else "") for each in versions], more


def _text(record: Record) -> str:
    return record.value.decode().partition('"v":"')[2].partition('"')[0]


async def life(storage: SqliteStorage, key: str = "/core/x/a", times: int = 3) -> None:
    record = await storage.create(key, value("0"))
    for number in range(1, times):
        record = await storage.update(key, record.revision, value(str(number)))
    await storage.delete(key, record.revision, value(str(times - 1)))


def test_versions_outlive_compaction_and_a_restart(tmp_path: Path) -> None:
    async def write(storage: SqliteStorage) -> None:
        await life(storage)
        await storage.create("/core/x/b", value("other"))
        before = await texts(storage)
        assert before == (["2-", "2", "1", "0"], False)
        await storage.compact(storage.revision)
        assert await texts(storage) == before
        assert (await texts(storage, "/core/x/b")) == (["other"], False)

    async def read(storage: SqliteStorage) -> None:
        assert await texts(storage) == (["2-", "2", "1", "0"], False)
        assert storage.past is storage

    path = tmp_path / "x.db"
    run(path, KeepOptions(FOREVER), write)
    run(path, KeepOptions(FOREVER), read)


def test_pages_and_sizes(tmp_path: Path) -> None:
    async def work(storage: SqliteStorage) -> None:
        await life(storage)
        await storage.compact(storage.revision)
        assert await texts(storage, limit=2) == (["2-", "2"], True)
        versions, _ = await storage.versions(PastRange("/core/x/a", "/core/x/b", NEVER, 2, 1), lambda r: True)
        assert len(versions) == 1, "one is shown however large it is"
        assert await texts(storage, before=versions[0].record.revision) == (["2", "1", "0"], False)

    run(tmp_path / "x.db", KeepOptions(FOREVER), work)


def test_who_and_when(tmp_path: Path) -> None:
    async def work(storage: SqliteStorage) -> None:
        await life(storage)
        await storage.compact(storage.revision)
        versions, _ = await storage.versions(PastRange("/core/", "/core0", NEVER, 9, 1 << 20), lambda r: True)
        assert [each.author for each in versions] == ["jane"] * 4
        assert all(each.time > 1e9 for each in versions)

    run(tmp_path / "x.db", KeepOptions(FOREVER, author=lambda: "jane"), work)


@pytest.mark.parametrize("keep", [KeepOptions(-1.0), KeepOptions(FOREVER, most_bytes=1)])
def test_what_is_too_old_or_too_much_goes(tmp_path: Path, keep: KeepOptions) -> None:
    async def work(storage: SqliteStorage) -> None:
        await life(storage)
        await storage.create("/core/x/b", value("other"))
        await storage.compact(storage.revision)
        assert await texts(storage) == ([], False)
        assert await texts(storage, "/core/x/b") == (["other"], False)

    run(tmp_path / "x.db", keep, work)
    database = sqlite3.connect(tmp_path / "x.db")
    assert database.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    assert database.execute("SELECT count(*) FROM written").fetchone() == (1,)
    database.close()


def test_the_oldest_go_first(tmp_path: Path) -> None:
    async def work(storage: SqliteStorage) -> None:
        await life(storage, times=6)
        await storage.compact(storage.revision)
        left, _ = await texts(storage)
        assert left and left == ["5-", "5", "4", "3", "2", "1", "0"][: len(left)] and len(left) < 7

    run(tmp_path / "x.db", KeepOptions(FOREVER, most_bytes=60), work)


def test_without_the_option_nothing_is_kept_or_asked(tmp_path: Path) -> None:
    async def work(storage: SqliteStorage) -> None:
        await life(storage)
        await storage.compact(storage.revision)
        assert storage.past is None

    run(tmp_path / "x.db", None, work)
    database = sqlite3.connect(tmp_path / "x.db")
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    database.close()
    assert tables == {"log", "facts"}


def test_a_database_with_kept_versions_opens_without_the_option(tmp_path: Path) -> None:
    path = tmp_path / "x.db"

    async def write(storage: SqliteStorage) -> None:
        await life(storage)
        await storage.compact(storage.revision)

    async def again(storage: SqliteStorage) -> None:
        await life(storage, "/core/x/c")

    run(path, KeepOptions(FOREVER), write)
    run(path, None, again)


@pytest.mark.parametrize("seconds", [0.0, FOREVER])
def test_what_was_kept_goes_in_its_time_without_the_option(
    tmp_path: Path, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "x.db"

    async def write(storage: SqliteStorage) -> None:
        # A later run bounds it by another time: the last one counts.
        await life(storage)
        await storage.compact(storage.revision)

    async def again(storage: SqliteStorage) -> None:
        assert storage.past is None
        await life(storage, "/core/x/c")
        await storage.compact(storage.revision)

    async def nothing(storage: SqliteStorage) -> None:
        pass

    run(path, KeepOptions(FOREVER), write)
    run(path, KeepOptions(seconds), nothing)
    run(path, None, again)
    assert "an earlier run kept versions" in caplog.text
    database = sqlite3.connect(path)
    kept = [key for (key,) in database.execute("SELECT DISTINCT key FROM kept")]
    assert kept == (["/core/x/a"] if seconds else [])
    assert database.execute("SELECT count(*) > 0 FROM written").fetchone() == (int(bool(seconds)),)
    database.close()


def test_memory_keeps_nothing() -> None:
    with pytest.raises(StorageUrlError, match="keeps no versions"):
        asyncio.run(open_storage("memory://", StorageOptions(keep=KeepOptions(1.0))))
