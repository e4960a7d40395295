"""The log table and its statements: all SQL of the project is here.

    log(revision, key, created, previous, deleted, value)    revision is the rowid; previous is 0 for a creation
    facts(name, value)                                       the compacted revision

Two connections: one writes, one reads. In WAL mode a reader sees the last commit and blocks nobody.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from apimachinery.storage.file_lock import StorageFileError
from apimachinery.storage.interface import Event, Record

APPLICATION_ID = 0x6B776C67  # "kwlg"
FORMAT = 1

_SCHEMA = """
CREATE TABLE log (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    created INTEGER NOT NULL,
    previous INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    value BLOB NOT NULL
);
CREATE UNIQUE INDEX log_by_key ON log (key, revision);
CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO facts VALUES ('compacted', 1);
"""

_INSERT = "INSERT INTO log (revision, key, created, previous, deleted, value) VALUES (?, ?, ?, ?, ?, ?)"
# A bare column beside max() comes from the row of the maximum (documented by SQLite).
_STATE = """
SELECT key, max(revision), created, deleted, value FROM log
WHERE key >= ? AND key < ? AND revision <= ? GROUP BY key ORDER BY key
"""
_RECORD = """
SELECT key, revision, created, deleted, value FROM log
WHERE key = ? AND revision <= ? ORDER BY revision DESC LIMIT 1
"""
_EVENTS = """
SELECT l.key, l.revision, l.created, l.value, l.deleted, p.revision, p.value
FROM log l LEFT JOIN log p ON p.revision = l.previous
WHERE l.revision > ? AND l.revision <= ? AND l.key >= ? AND l.key < ? ORDER BY l.revision
"""
_FORGET = """
DELETE FROM log WHERE revision IN (
    SELECT previous FROM log WHERE revision > :low AND revision <= :high AND previous > 0
    UNION ALL SELECT revision FROM log WHERE revision > :low AND revision <= :high AND deleted
)
"""
_LAST_KEY = "\U0010ffff"


class Log:
    """An open database. Raises StorageFileError where the file is none of ours."""

    def __init__(self, path: Path) -> None:
        try:
            self._writer = _connect(path)
            _prepare(self._writer, path)
            self._reader = _connect(path)
        except sqlite3.Error as fault:
            raise StorageFileError(f"cannot use {path}: {fault}") from None

    def newest(self) -> int:
        """The highest revision ever used."""
        (newest,) = self._reader.execute("SELECT max(revision) FROM log").fetchone()
        return max(newest or 1, self.compacted())

    def compacted(self) -> int:
        """The compacted revision."""
        (value,) = self._reader.execute("SELECT value FROM facts WHERE name = 'compacted'").fetchone()
        return int(value)

    def state(self, revision: int, prefix: str = "") -> list[Record]:
        """The living records under a prefix at a revision, by key."""
        rows = self._reader.execute(_STATE, (prefix, prefix + _LAST_KEY, revision))
        return [Record(key, at, created, value) for key, at, created, deleted, value in rows if not deleted]

    def record(self, key: str, revision: int) -> Record | None:
        """The living record of a key at a revision."""
        row = self._reader.execute(_RECORD, (key, revision)).fetchone()
        if row is None or row[3]:
            return None
        return Record(row[0], row[1], row[2], row[4])

    def events(self, after: int, until: int, prefix: str) -> list[Event]:
        """The events of the revisions past ``after`` up to ``until``, in order."""
        found: list[Event] = []
        rows = self._reader.execute(_EVENTS, (after, until, prefix, prefix + _LAST_KEY))
        for key, revision, created, value, deleted, previous, old in rows:
            before = None if previous is None else Record(key, previous, created, old)
            found.append(Event(Record(key, revision, created, value), before, bool(deleted)))
        return found

    def begin(self, events: Sequence[Event]) -> None:
        """Puts events into a transaction that ``commit`` ends. Cheap: nothing is synced."""
        self._writer.execute("BEGIN IMMEDIATE")
        self._writer.executemany(
            _INSERT,
            [
                (
                    event.record.revision,
                    event.record.key,
                    event.record.created,
                    event.previous.revision if event.previous else 0,
                    int(event.deleted),
                    event.record.value,
                )
                for event in events
            ],
        )

    def commit(self) -> None:
        """Makes the transaction durable."""
        self._writer.execute("COMMIT")

    def roll_back(self) -> None:
        """Gives up the transaction where one is open."""
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def set_compacted(self, revision: int) -> None:
        """Says durably that states before ``revision`` are no longer kept."""
        self._writer.execute("UPDATE facts SET value = ? WHERE name = 'compacted'", (revision,))

    def forget(self, low: int, high: int) -> None:
        """Drops what the revisions past ``low`` up to ``high`` superseded or deleted."""
        self._writer.execute(_FORGET, {"low": low, "high": high})

    def shrink(self) -> None:
        """Gives free pages back to the file system and empties the write-ahead log."""
        self._writer.execute("PRAGMA incremental_vacuum(4096)").fetchall()
        self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Closes the file; the write-ahead log is merged and gone."""
        self._reader.close()
        self._writer.close()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute(f"PRAGMA journal_size_limit = {64 << 20}").fetchone()
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (form,) = connection.execute("PRAGMA user_version").fetchone()
    if application == APPLICATION_ID:
        if form != FORMAT:
            raise StorageFileError(f"{path} has format {form}, this version reads format {FORMAT}")
        return
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application or tables:
        raise StorageFileError(f"{path} is another program's database; choose another file")
    connection.executescript(
        f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {APPLICATION_ID};"
        f" PRAGMA user_version = {FORMAT}; COMMIT;"
    )
