"""The log table and its statements: all SQL of the project is here and in ``sqlite_checks``.

    log(revision, key, created, previous, deleted, value, checksum)
                           revision is the rowid; previous is 0 for a creation
    facts(name, value)     the compacted revision; a number that tells this database from every other
    kept, written          versions that outlive compaction, where they are kept: see ``kept``

Two connections: one writes, one reads, each used by one thread at a time. In WAL mode a reader sees the last commit and
blocks nobody. SQLite checks its own pages' structure, not what is in them: so each row has a checksum, which is looked
at whenever it is read. Rows of format 1 have none. Up to format 2 the keys of custom objects were those of a package:
``sqlite_upgrade`` gives them their own.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from apimachinery.storage.file_lock import StorageFileError
from apimachinery.storage.interface import Compacted, Event, Record, StorageError
from apimachinery.storage.kept import KeepOptions, KeptVersions, PastRange, PastVersion
from apimachinery.storage.layout import bound_place
from apimachinery.storage.sealing import Sealing, opened
from apimachinery.storage.sqlite_checks import (
    Damaged,
    checksum,
    damaged_rows,
    explained,
    faults,
    is_whole,
    rebuild_index,
    refuse_hidden_rows,
)
from apimachinery.storage.sqlite_upgrade import separate_custom

note = logging.getLogger("kubewright.storage")
APPLICATION_ID = 0x6B776C67  # "kwlg"
FORMAT = 3
LOCK_SECONDS = 1.0
START_SECONDS = 10.0
"""How long another program's lock is waited for: between two looks at the time, and at the start."""

_SCHEMA = """
CREATE TABLE log (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    created INTEGER NOT NULL,
    previous INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    value BLOB NOT NULL,
    checksum INTEGER
);
CREATE UNIQUE INDEX log_by_key ON log (key, revision);
CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO facts VALUES ('compacted', 1);
"""

INSERTED_AT_ONCE = 32
"""Rows of one statement, which is prepared once for each number of them."""
# A bare column next to max() comes from the row of the maximum (documented by SQLite).
# GROUP BY key uses the index, so a state is read without sorting.
_STATE = """
SELECT key, max(revision), created, deleted, value, checksum FROM log
WHERE key >= ? AND key < ? AND revision <= ? GROUP BY key ORDER BY key
"""
_RECORD = """
SELECT key, revision, created, deleted, value, checksum FROM log
WHERE key = ? AND revision <= ? ORDER BY revision DESC LIMIT 1
"""
_EVENTS = """
SELECT l.key, l.revision, l.created, l.deleted, l.value, l.checksum,
       p.revision, p.created, p.deleted, p.value, p.checksum
FROM log l LEFT JOIN log p ON p.revision = l.previous
WHERE l.revision > ? AND l.revision <= ? AND l.key >= ? AND l.key < ? ORDER BY l.revision
LIMIT ?
"""
_KEYS = "SELECT key, deleted, max(revision) FROM log GROUP BY key ORDER BY key"
_STEP = "SELECT max(revision) FROM (SELECT revision FROM log WHERE revision > ? ORDER BY revision LIMIT ?)"
_UPGRADE = "ALTER TABLE log ADD COLUMN checksum INTEGER"
_FORGET = """
DELETE FROM log WHERE revision IN (
    SELECT previous FROM log WHERE revision > :low AND revision <= :high AND previous > 0
    UNION ALL SELECT revision FROM log WHERE revision > :low AND revision <= :high AND deleted
)
"""
_LAST_KEY = "\U0010ffff"


@cache
def _insertion(rows: int) -> str:
    """The statement that inserts so many rows."""
    return "INSERT INTO log VALUES " + ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * rows)


class Log:
    """An open database. Raises StorageFileError where the file is none of ours."""

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        sealing: Sealing | None = None,
        keep: KeepOptions | None = None,
    ) -> None:
        self.kept: KeptVersions | None = None
        self.pruned: KeptVersions | None = None
        self._path = path
        self._sealing = sealing
        self._wal = path.with_name(path.name + "-wal")
        try:
            if read_only:
                uri = f"{path.absolute().as_uri()}?mode=ro"
                self._reader = self._writer = sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS)
                _recognize(self._reader, path)
                return
            self._writer = _connect(path, START_SECONDS)
            _prepare(self._writer, path)
            self._writer.execute(f"PRAGMA busy_timeout = {int(LOCK_SECONDS * 1000)}").fetchone()
            self._reader = _connect(path)
            if keep is not None:
                self.pruned = self.kept = KeptVersions(self._writer, self._reader, keep)
            else:
                self.pruned = KeptVersions.left_in(self._writer, self._reader)
        except sqlite3.Error as fault:
            raise explained(path, fault) from None

    @property
    def identity(self) -> int:
        """The number that tells this database from every other."""
        return self._fact("identity")

    def _fact(self, name: str) -> int:
        row = self._reader.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return int(row[0]) if row else 0

    def newest(self) -> int:
        """The highest revision ever used."""
        (newest,) = self._reader.execute("SELECT max(revision) FROM log").fetchone()
        return max(newest or 1, self.compacted())

    def compacted(self) -> int:
        """The compacted revision."""
        return self._fact("compacted")

    def state(
        self, revision: int, prefix: str = "", *, unreadable: dict[str, str] | None = None
    ) -> list[Record]:
        """The living records under a prefix at a revision, by key. What cannot be decrypted is named in ``unreadable``.
        Raises Damaged, and Compacted for the rest of a state of which something is not named so."""
        living: list[Record] = []
        damaged: list[tuple[str, int]] = []
        rows = self._reader.execute(_STATE, (prefix, prefix + _LAST_KEY, revision))
        # The checksum is checked before decryption, to tell a damaged row from a lost key.
        for key, at, created, deleted, value, said in rows:
            if not is_whole(key, at, created, deleted, value, said):
                damaged.append((key, at))
            elif not deleted:
                try:
                    living.append(self._record(key, at, created, value))
                except StorageError as fault:
                    if unreadable is None:
                        raise Compacted(revision, at + 1) from None
                    unreadable[key] = str(fault)
        if damaged:
            raise Damaged(self._path, damaged)
        return living

    def record(self, key: str, revision: int) -> Record | None:
        """The living record of a key at a revision. Raises Damaged."""
        row = self._reader.execute(_RECORD, (key, revision)).fetchone()
        if row is None:
            return None
        found = self._read(*row)
        return None if row[3] else found

    def _record(self, key: str, revision: int, created: int, stored: bytes) -> Record:
        value = opened(self._sealing, key, bound_place(key).encode(), stored)
        stale = self._sealing is not None and self._sealing.is_stale(key, stored)
        # One number, not two that are equal, where the key came to be with this revision.
        return Record(
            key, revision, revision if created == revision else created, value, stale=stale, foreign=True
        )

    def _stored(self, record: Record) -> bytes:
        if self._sealing is None:
            return record.value
        return self._sealing.seal(record.key, bound_place(record.key).encode(), record.value)

    def events(self, after: int, until: int, prefix: str, limit: int = -1) -> list[Event]:
        """The events of the revisions past ``after`` up to ``until``, in order, ``limit`` at most. Raises Damaged."""
        events: list[Event] = []
        rows = self._reader.execute(_EVENTS, (after, until, prefix, prefix + _LAST_KEY, limit))
        for key, revision, created, deleted, value, said, previous, *past in rows:
            record = self._read(key, revision, created, deleted, value, said)
            before = None if previous is None else self._read(key, previous, *past)
            events.append(Event(record, before, bool(deleted)))
        return events

    def _read(
        self, key: str, revision: int, created: int, deleted: int, value: bytes, said: int | None
    ) -> Record:
        """A row as a record. Raises Damaged, and Compacted for one whose key of encryption is gone: that past is gone
        with it, and who wants to go on from there has to begin anew."""
        if not is_whole(key, revision, created, deleted, value, said):
            raise Damaged(self._path, [(key, revision)])
        try:
            return self._record(key, revision, created, value)
        except StorageError:
            raise Compacted(revision, revision + 1) from None

    def damaged(self) -> Iterator[tuple[str, int]]:
        """Key and revision of each row whose checksum is not that of its bytes."""
        return damaged_rows(self._reader)

    def living_keys(self) -> Iterator[str]:
        """The keys of the living records."""
        for key, deleted, _ in self._reader.execute(_KEYS):
            if not deleted:
                yield key

    def faults(self) -> list[str]:
        """What SQLite itself finds wrong with the file."""
        return faults(self._reader)

    def refuse_hidden_rows(self) -> None:
        """Raises StorageFileError where a row would not be found."""
        refuse_hidden_rows(self._path, self._reader)

    def rebuild_index(self) -> list[tuple[str, int]] | None:
        """Makes the index again from the rows; see ``sqlite_checks``."""
        return rebuild_index(self._writer)

    def write(self, events: Sequence[Event]) -> None:
        """Makes events durable in one transaction. Waits ``LOCK_SECONDS`` for the lock of another program."""
        # Encoded before BEGIN, so that the lock is held for as short as possible.
        rows = list(map(self._row, events))
        if len(rows) <= INSERTED_AT_ONCE and self.kept is None:
            # One statement is a transaction. Each more lets go of the interpreter, and others keep it for a while;
            # executemany does for each row.
            self._insert(rows)
            return
        # IMMEDIATE: a deferred transaction could fail with BUSY in the middle, where SQLite does not wait.
        self._writer.execute("BEGIN IMMEDIATE")
        for low in range(0, len(rows), INSERTED_AT_ONCE):
            self._insert(rows[low : low + INSERTED_AT_ONCE])
        if self.kept is not None:
            self.kept.note(events)
        self._writer.execute("COMMIT")
        if self.kept is not None:
            self.kept.forget_times(events)

    def _insert(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._writer.execute(_insertion(len(rows)), tuple(chain.from_iterable(rows)))

    def _row(self, event: Event) -> tuple[Any, ...]:
        record = event.record
        stored = self._stored(record)
        return (
            record.revision,
            record.key,
            record.created,
            event.previous.revision if event.previous else 0,
            int(event.deleted),
            stored,
            checksum(record.key, record.revision, record.created, event.deleted, stored),
        )

    def roll_back(self) -> None:
        """Gives up the transaction where one is open."""
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def set_compacted(self, revision: int) -> None:
        """Says durably that states before ``revision`` are no longer kept."""
        self._writer.execute("UPDATE facts SET value = ? WHERE name = 'compacted'", (revision,))

    def forget(self, low: int, until: int, rows: int, *, for_room: bool = False) -> int:
        """Drops what the next ``rows`` revisions past ``low`` superseded or deleted, none past ``until``, or moves it
        to where it is kept; the revision up to which it came. ``for_room``: the disk is full, so nothing is kept."""
        (high,) = self._writer.execute(_STEP, (low, rows)).fetchone()
        high = until if high is None else min(high, until)
        if self.kept is None or for_room:
            self._writer.execute(_FORGET, {"low": low, "high": high})
            return high
        # In one transaction: a version is in one of the two tables at any time.
        self._writer.execute("BEGIN IMMEDIATE")
        self.kept.move(low, high)
        self._writer.execute(_FORGET, {"low": low, "high": high})
        self._writer.execute("COMMIT")
        return high

    def versions(self, asked: PastRange, wanted: Callable[[Record], bool]) -> tuple[list[PastVersion], bool]:
        """See ``KeepsVersions``. What is damaged, or sealed with a key that is gone, is passed over."""
        found: list[PastVersion] = []
        size = 0
        for revision, key, created, deleted, value, said, at, author in (
            self.kept.rows(asked) if self.kept else ()
        ):
            if not is_whole(key, revision, created, deleted, value, said):
                continue
            try:
                record = self._record(key, revision, created, value)
            except StorageError:
                continue
            if not wanted(record):
                continue
            # One version is always answered, however large it is.
            if len(found) == asked.limit or (found and size + len(record.value) > asked.most_bytes):
                return found, True
            size += len(record.value)
            found.append(PastVersion(record, bool(deleted), (at or 0) / 1000, author or ""))
        return found, False

    def drop(self, rows: Sequence[tuple[str, int]], newest: int) -> None:
        """Drops damaged rows, and every older one of their keys: what a key was before its last write is not what
        it is. Says that ``newest`` is compacted, so that nobody goes on from a state before."""
        self._writer.execute("BEGIN IMMEDIATE")
        for key, revision in rows:
            self._writer.execute("DELETE FROM log WHERE key = ? AND revision <= ?", (key, revision))
        self.set_compacted(newest)
        self._writer.execute("COMMIT")

    def begin_anew(self, revision: int) -> None:
        """Says that the state is that of ``revision``, all before it is compacted, and that this is another database
        than the one it was copied from."""
        self._writer.execute("BEGIN IMMEDIATE")
        self.set_compacted(revision)
        self._writer.execute("INSERT OR REPLACE INTO facts VALUES ('identity', ?)", (_identity(),))
        self._writer.execute("COMMIT")

    def shrink(self) -> None:
        """Gives free pages back to the file system and empties the write-ahead log."""
        # 4,096 pages at a time: moving all of them would hold the disk for seconds.
        self._writer.execute("PRAGMA incremental_vacuum(4096)").fetchall()
        self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def shrink_in_steps(self) -> None:
        """Shrinks with little room to do it in: a page that is moved is a page in the write-ahead log first, and what
        was appended last, freed by now, need not reach the database at all."""
        free = -1
        while (left := self._writer.execute("PRAGMA freelist_count").fetchone()[0]) != free:
            free = left
            for step in ("PRAGMA incremental_vacuum(256)", "PRAGMA wal_checkpoint(TRUNCATE)"):
                with contextlib.suppress(sqlite3.OperationalError):
                    self._writer.execute(step).fetchall()

    def checkpoint(self) -> bool:
        """Moves what it can from the write-ahead log to the database; False where somebody reads an old state, so that
        the log cannot be emptied. Raises sqlite3.OperationalError where the database cannot be written."""
        busy, pages, moved = self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return bool(busy or moved >= pages)

    def wal_bytes(self) -> int:
        """How large the write-ahead log is."""
        try:
            return self._wal.stat().st_size
        except OSError:
            return 0

    def close(self) -> None:
        """Closes the file; the write-ahead log is merged and gone."""
        # The reader first: the last connection that closes merges the log, and must be able to write.
        self._reader.close()
        self._writer.close()


def _connect(path: Path, timeout: float = LOCK_SECONDS) -> sqlite3.Connection:
    # isolation_level None: transactions are begun and ended here, never by the module.
    connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
    # Takes effect only before the first table is made, hence first.
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    # FULL syncs the log with each commit; NORMAL could lose acknowledged writes in a power cut.
    connection.execute("PRAGMA synchronous = FULL")
    # On macOS a plain fsync leaves the data in the drive's cache.
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute(f"PRAGMA journal_size_limit = {64 << 20}").fetchone()
    return connection


def _recognize(connection: sqlite3.Connection, path: Path) -> int:
    """The format of a database; 0 for an empty one. Raises StorageFileError for what is none of ours."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (form,) = connection.execute("PRAGMA user_version").fetchone()
    if application == APPLICATION_ID:
        # A newer program may have written what this one would misread.
        if form > FORMAT:
            raise StorageFileError(f"{path} has format {form}, this version reads format {FORMAT}")
        return int(form)
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application or tables:
        raise StorageFileError(f"{path} is another program's database; choose another file")
    return 0


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    form = _recognize(connection, path)
    if not form:
        connection.executescript(
            f"BEGIN IMMEDIATE; {_SCHEMA} INSERT INTO facts VALUES ('identity', {_identity()});"
            f" PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT}; COMMIT;"
        )
    elif form < FORMAT:
        # In one transaction: who is killed in the middle has changed nothing, and begins again.
        connection.execute("BEGIN IMMEDIATE")
        if form == 1:
            connection.execute(_UPGRADE)
            connection.execute("INSERT OR REPLACE INTO facts VALUES ('identity', ?)", (_identity(),))
        moved = separate_custom(connection)
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
        note.warning(
            "the database was brought to format %d; older versions of kubewright do not open it",
            FORMAT,
            extra={"path": str(path), "custom_objects": moved},
        )


def copy_database(source: Path, target: Path) -> None:
    """SQLite's online copy, synced: one state of a database that may be in use. Raises StorageFileError."""
    try:
        reading = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=LOCK_SECONDS)
        writing = sqlite3.connect(target)
        try:
            _recognize(reading, source)
            reading.backup(writing)
        finally:
            writing.close()
            reading.close()
    except sqlite3.Error as fault:
        if getattr(fault, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise StorageFileError(f"cannot copy {source} to {target}: {fault}") from None
        raise explained(source, fault) from None


def _identity() -> int:
    return secrets.randbits(62)
