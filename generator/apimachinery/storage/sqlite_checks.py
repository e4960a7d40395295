"""Whether a database still is what was written to it: the SQL that looks, and mends what can be mended without loss.

SQLite notices pages whose structure makes no sense, when it comes to them. It does not notice bytes of a value that
changed (each row has a checksum for that), nor an entry that is gone from an index: the state is read by the index, so
an object whose entry is gone would be gone without a word. At the start what the index reaches is counted and added
up against the rows; a check goes through everything. An index can be made again from the rows; for rows there is only
a backup.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from apimachinery.storage.file_lock import StorageFileError

_ROWS = "SELECT revision, key, created, deleted, value, checksum FROM log NOT INDEXED ORDER BY revision"
_INDEXED = "SELECT key, revision FROM log INDEXED BY log_by_key"
# Bounded as lists are: an entry that is no text ends them.
_REACHED = (
    "SELECT count(*), total(revision) FROM log INDEXED BY log_by_key WHERE key >= '' AND key < char(1114111)"
)


class Damaged(StorageFileError):
    """Rows whose bytes are not those that were written; ``keys`` says whose, with their revisions."""

    def __init__(self, path: Path, keys: Sequence[tuple[str, int]]) -> None:
        first = ", ".join(f"{key} at {revision}" for key, revision in keys[:3])
        more = ", …" if len(keys) > 3 else ""
        super().__init__(
            f"{path}: {len(keys)} records are damaged ({first}{more}): restore a backup with 'kubewright storage "
            f"restore', or drop them with 'kubewright storage check --repair {path}'"
        )
        self.keys = tuple(keys)


def checksum(key: str, revision: int, created: int, deleted: int, value: bytes) -> int:
    """CRC-32 of a row; finds bits that changed, not a forger."""
    seed = (revision ^ created << 1 ^ deleted) & 0xFFFFFFFF
    # The revision is part of it, so a row that was copied to another place is noticed.
    return zlib.crc32(value, zlib.crc32(key.encode(), seed))


def is_whole(key: Any, revision: int, created: Any, deleted: Any, value: Any, said: Any) -> bool:
    """Whether a row has its checksum. A byte that changed may have changed the type of a column too. Rows of format 1
    have none."""
    try:
        return said is None or said == checksum(key, revision, created, deleted, value)
    except (TypeError, AttributeError):
        return False


def explained(path: Path, fault: sqlite3.Error) -> StorageFileError:
    """What an error of SQLite means for a database, and what to do about it."""
    code = getattr(fault, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageFileError(
            f"another program (a sqlite3 shell?) holds a lock on {path}: {fault}; end that program"
        )
    if code == sqlite3.SQLITE_NOTADB:
        return StorageFileError(
            f"cannot use {path}: {fault}, or its first page is damaged; choose another file, or restore a backup with "
            "'kubewright storage restore'"
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return StorageFileError(
            f"{path} is damaged: {fault}; restore a backup with 'kubewright storage restore'"
        )
    return StorageFileError(f"cannot use {path}: {fault}")


def refuse_hidden_rows(path: Path, connection: sqlite3.Connection) -> None:
    """Raises StorageFileError where the index lacks rows, which a start would not see then."""
    # total() instead of sum(): that one fails on overflow.
    rows = connection.execute("SELECT count(*), total(revision) FROM log NOT INDEXED").fetchone()
    entries = connection.execute(_REACHED).fetchone()
    if rows != entries:
        what = "other records" if rows[0] == entries[0] else f"{entries[0]} entries for {rows[0]} records"
        raise StorageFileError(
            f"{path} is damaged: its index has {what}. Make it again with 'kubewright storage check --repair {path}', "
            "or restore a backup with 'kubewright storage restore'"
        )


def damaged_rows(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    """Key and revision of each row whose checksum is not that of its bytes. Raises sqlite3.Error."""
    columns = [row[1] for row in connection.execute("PRAGMA table_info(log)")]
    if "checksum" not in columns:  # format 1, which is only read here
        return
    for revision, key, created, deleted, value, said in connection.execute(_ROWS):
        if not is_whole(key, revision, created, deleted, value, said):
            yield str(key), revision


def faults(connection: sqlite3.Connection) -> list[str]:
    """What SQLite itself finds wrong with the pages."""
    try:
        rows = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
    except sqlite3.DatabaseError as fault:
        return [str(fault)]
    lines = [line for row in rows for line in row.splitlines() if line and not line.startswith("***")]
    return [] if rows == ["ok"] else lines


def rebuild_index(connection: sqlite3.Connection) -> list[tuple[str, int]] | None:
    """Makes the index again from the rows, where nothing else is wrong; None where something is, and nothing was
    changed. Answers the rows, by key and revision, that the index knew of and that are not there."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        there = {revision for (revision,) in connection.execute("SELECT revision FROM log NOT INDEXED")}
        lost = [(key, at) for key, at in connection.execute(_INDEXED) if at not in there]
        connection.execute("REINDEX log_by_key")
        if faults(connection):
            connection.execute("ROLLBACK")
            return None
        connection.execute("COMMIT")
        return lost
    except sqlite3.DatabaseError:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return None
