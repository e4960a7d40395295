"""``kubewright storage``: checks find faults, backups are of one state, restored servers break watches honestly."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.storage.test_healing import _filled, damage, value

from apimachinery.storage.file_lock import StorageFileError
from apimachinery.storage.interface import Compacted
from apimachinery.storage.maintenance import REVISIONS_SKIPPED, back_up, check, repair, restore
from apimachinery.storage.sqlite import SqliteStorage
from kubewright.cli import main


def run(story) -> None:
    asyncio.run(story())


def test_a_good_database(tmp_path, capsys):
    path = tmp_path / "x.db"
    asyncio.run(_filled(path))
    report = check(path)
    assert (report.good, report.newest, report.objects) == (True, 4, {"/g/r": 3})
    assert main(["storage", "check", str(path)]) == 0
    assert "revision 4, compacted 1, 3 objects\nno faults\n" in capsys.readouterr().out


def test_damage_is_named_and_given_up_on_demand(tmp_path, capsys):
    path = tmp_path / "x.db"
    asyncio.run(_filled(path))
    damage(path, "/g/r/b")
    assert main(["storage", "check", str(path)]) == 1
    assert "damaged: /g/r/b at revision 3\n" in capsys.readouterr().out
    assert main(["storage", "check", "--repair", str(path)]) == 0
    assert check(path).good

    async def story() -> None:
        storage = await SqliteStorage.open(path)
        assert [record.key for record in (await storage.list("")).records] == ["/g/r/a", "/g/r/c"]
        with pytest.raises(Compacted):
            await storage.events("", 4, 10)
        await storage.close()

    run(story)


def test_lost_writes_are_given_up_on_demand(tmp_path):
    async def story() -> None:
        path = tmp_path / "x.db"
        storage = await SqliteStorage.open(path)
        await storage.create("/g/r/a", value())
        storage._lock.set_mark(storage._log.identity, 77)
        storage._lock.set_mark = lambda *_: None  # type: ignore[method-assign]
        await storage.close()
        with pytest.raises(StorageFileError, match="77 was acknowledged"):
            await SqliteStorage.open(path)
        assert check(path).lost == (3, 77)
        repair(path)
        storage = await SqliteStorage.open(path)
        assert storage.revision == 77 + REVISIONS_SKIPPED
        await storage.close()

    run(story)


def test_a_backup_of_a_running_server_is_restored(tmp_path):
    async def story() -> None:
        path, backup = tmp_path / "x.db", tmp_path / "x.backup"
        storage = await SqliteStorage.open(path)
        a = await storage.create("/g/r/a", value())
        assert await asyncio.to_thread(back_up, path, backup) == 2
        assert backup.stat().st_mode & 0o777 == 0o600
        await storage.update("/g/r/a", a.revision, value(20))
        b = await storage.create("/g/r/b", value())
        with pytest.raises(StorageFileError, match="held by another server"):
            restore(backup, path, replace=True)
        await storage.close()
        with pytest.raises(StorageFileError, match="--replace"):
            restore(backup, path)
        assert restore(backup, path, replace=True) == b.revision + REVISIONS_SKIPPED
        storage = await SqliteStorage.open(path)
        assert (await storage.get("/g/r/a")) == a and await storage.get("/g/r/b") is None
        with pytest.raises(Compacted):
            await storage.watch("", b.revision, list)
        assert (await storage.create("/g/r/c", value())).revision > b.revision + REVISIONS_SKIPPED
        await storage.close()
        assert check(Path(f"{path}.replaced")).newest == 4

    run(story)


@pytest.mark.parametrize("words", [["check", "FILE"], ["backup", "FILE", "out"], ["restore", "FILE", "out"]])
def test_what_is_no_database(tmp_path, capsys, words):
    text = tmp_path / "notes.txt"
    text.write_text("not a database " * 100)
    for file in (text, tmp_path / "absent"):
        given = [
            str(file) if word == "FILE" else str(tmp_path / word) if word == "out" else word for word in words
        ]
        assert main(["storage", *given]) == 1
        assert "error: " in capsys.readouterr().err
    assert text.read_text().startswith("not a database")
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_full_disk_leaves_neither_half_a_backup_nor_half_a_database(tmp_path, small_disk):
    """What was there before is there afterwards, and nothing else."""

    async def story() -> None:
        storage = await SqliteStorage.open(tmp_path / "x.db")
        for number in range(40):
            await storage.create(f"/g/r/{number}", value(1 << 20))
        await storage.close()

    run(story)
    with pytest.raises(StorageFileError, match="full"):
        back_up(tmp_path / "x.db", small_disk / "backup")
    assert list(small_disk.iterdir()) == []
    with pytest.raises(StorageFileError, match="full"):
        restore(tmp_path / "x.db", small_disk / "new.db")
    assert [file.name for file in small_disk.iterdir()] == ["new.db.lock"]
    asyncio.run(_filled(small_disk / "old.db"))
    with pytest.raises(StorageFileError, match="full"):
        restore(tmp_path / "x.db", small_disk / "old.db", replace=True)
    assert check(small_disk / "old.db").newest == 4
    assert {file.name for file in small_disk.iterdir()} <= {
        "new.db.lock", "old.db", "old.db.lock", "old.db-wal", "old.db-shm",
    }  # fmt: skip
