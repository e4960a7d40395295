"""Versions that are kept beyond compaction, in two tables of the log's database.

    kept(revision, key, created, previous, deleted, value, checksum, moved)
                              rows of the log that compaction would have dropped, and when it moved them here
    written(revision, time, author)
                              when each write was made, and by whom; in milliseconds of the Unix epoch

Theory. Compaction says what no state needs any more. Instead of dropping these rows it moves them, in the
transaction in which they leave the log: a version is in one of the two tables at any time, byte for byte, sealed
where the log is. So keeping costs a write one small row, and a compaction what it moves; reads of the present meet
nothing of it.

Bounds. A version goes ``seconds`` after it was moved, which is that long after something took its place (a
compaction later). Before that the oldest go as soon as all of them are more than ``most_bytes``. On a full disk all
of them go: the past makes room for the present.

A database that is opened without keeping has no more of what was kept before than it was kept for: it is still
pruned, by the time that the database has noted, and nobody reads it.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from apimachinery.storage.interface import Event, Record

PRUNED_PER_STEP = 2_000
MOST_BYTES = 256 << 20
MOST_EXPECTED = 10_000
"""Writes under way: their times wait in memory until they are durable."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS kept (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    created INTEGER NOT NULL,
    previous INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    value BLOB NOT NULL,
    checksum INTEGER,
    moved INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS kept_by_key ON kept (key, revision);
CREATE TABLE IF NOT EXISTS written (revision INTEGER PRIMARY KEY, time INTEGER NOT NULL, author TEXT NOT NULL);
"""
_MOVE = """
INSERT OR IGNORE INTO kept SELECT revision, key, created, previous, deleted, value, checksum, :now FROM log
WHERE revision IN (
    SELECT previous FROM log WHERE revision > :low AND revision <= :high AND previous > 0
    UNION ALL SELECT revision FROM log WHERE revision > :low AND revision <= :high AND deleted
)
"""
_MOVED_BYTES = "SELECT coalesce(sum(length(value)), 0) FROM kept"
_OLDEST = "SELECT revision, length(value), moved FROM kept ORDER BY moved, revision LIMIT ?"
_VERSIONS = """
SELECT v.revision, v.key, v.created, v.deleted, v.value, v.checksum, w.time, w.author FROM (
    SELECT revision, key, created, deleted, value, checksum FROM log
    WHERE key >= :low AND key < :high AND revision < :before
    UNION ALL SELECT revision, key, created, deleted, value, checksum FROM kept
    WHERE key >= :low AND key < :high AND revision < :before
) v LEFT JOIN written w ON w.revision = v.revision ORDER BY v.revision DESC
"""
_HAS_TABLE = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'kept'"
_LEFT = "SELECT count(*), coalesce(sum(length(value)), 0) FROM kept"
_SECONDS = "kept_seconds"
NEVER = 1 << 62
log = logging.getLogger("kubewright.storage")


@dataclass(frozen=True, slots=True)
class KeepOptions:
    """How long and how much; ``author`` says for whom the present task writes."""

    seconds: float
    most_bytes: int = MOST_BYTES
    author: Callable[[], str] = lambda: ""


@dataclass(frozen=True, slots=True)
class PastVersion:
    """A version of a key. ``time`` is in seconds of the Unix epoch, 0 where nobody noted it."""

    record: Record
    deleted: bool
    time: float
    author: str


@dataclass(frozen=True, slots=True)
class PastRange:
    """Which versions: of the keys from ``low`` on up to ``high``, before a revision, so many and so large at most."""

    low: str
    high: str
    before: int
    limit: int
    most_bytes: int


class KeepsVersions(Protocol):
    """A storage that keeps versions."""

    async def versions(
        self, asked: PastRange, wanted: Callable[[Record], bool]
    ) -> tuple[Sequence[PastVersion], bool]:
        """The versions that are wanted, newest first, and whether there are more."""


class KeptVersions:
    """The tables, over the log's connections; each method says on whose thread it is called."""

    def __init__(
        self,
        writer: sqlite3.Connection,
        reader: sqlite3.Connection,
        options: KeepOptions,
        *,
        is_left: bool = False,
    ) -> None:
        """``is_left``: nothing is kept any more, and what is there goes in its time."""
        self._writer, self._reader = writer, reader
        self._options = options
        self._is_left = is_left
        self._expected: dict[int, tuple[int, str]] = {}
        if not is_left:
            writer.executescript(_SCHEMA)
            writer.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_SECONDS, int(options.seconds)))
        (self._bytes,) = writer.execute(_MOVED_BYTES).fetchone()

    @classmethod
    def left_in(cls, writer: sqlite3.Connection, reader: sqlite3.Connection) -> KeptVersions | None:
        """What an earlier run kept in a database that now keeps nothing; None where nothing is left."""
        if not writer.execute(_HAS_TABLE).fetchone():
            return None
        left, size = writer.execute(_LEFT).fetchone()
        if not left and not writer.execute("SELECT 1 FROM written LIMIT 1").fetchone():
            return None
        (seconds,) = writer.execute("SELECT value FROM facts WHERE name = ?", (_SECONDS,)).fetchone() or (0,)
        if left:
            log.warning(
                "an earlier run kept versions; they go in their time",
                extra={"versions": left, "bytes": size, "kept_seconds": seconds},
            )
        return cls(writer, reader, KeepOptions(seconds), is_left=True)

    def expect(self, events: Sequence[Event]) -> None:
        """Notes time and author of what is appended. On the loop."""
        # Times are kept for people; losing some is better than growing without bound while the disk hangs.
        if len(self._expected) >= MOST_EXPECTED:
            self._expected.clear()
        stamp = (int(time.time() * 1000), self._options.author())
        self._expected.update((event.revision, stamp) for event in events)

    def note(self, events: Sequence[Event]) -> None:
        """Stores them, in the transaction of the events. On the committing thread."""
        rows = [
            (event.revision, *self._expected[event.revision])
            for event in events
            if event.revision in self._expected
        ]
        self._writer.executemany("INSERT OR REPLACE INTO written VALUES (?, ?, ?)", rows)

    def forget_times(self, events: Sequence[Event]) -> None:
        """Forgets what is durable. On the committing thread."""
        for event in events:
            self._expected.pop(event.revision, None)

    def move(self, low: int, high: int) -> None:
        """Takes what compaction is about to drop, in its transaction. On the committing thread."""
        before = self._writer.total_changes
        self._writer.execute(_MOVE, {"low": low, "high": high, "now": int(time.time() * 1000)})
        # Summing the sizes reads the whole table.
        if self._writer.total_changes != before:
            (self._bytes,) = self._writer.execute(_MOVED_BYTES).fetchone()

    def prune(self) -> None:
        """Drops what is too old or too much, a step at a time. On the committing thread."""
        until = int((time.time() - self._options.seconds) * 1000)
        while True:
            gone: list[tuple[int]] = []
            for revision, size, moved in self._writer.execute(_OLDEST, (PRUNED_PER_STEP,)).fetchall():
                # The rows come oldest first, so the first that may stay ends it.
                if moved > until and self._bytes <= self._options.most_bytes:
                    break
                gone.append((revision,))
                self._bytes -= size
            # In steps, each a short transaction: writes are committed in between.
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.executemany("DELETE FROM kept WHERE revision = ?", gone)
            self._writer.executemany("DELETE FROM written WHERE revision = ?", gone)
            self._writer.execute("COMMIT")
            if len(gone) < PRUNED_PER_STEP:
                break
        if self._is_left and not self._writer.execute("SELECT 1 FROM kept LIMIT 1").fetchone():
            self._writer.execute("DELETE FROM written")

    def clear(self) -> None:
        """Drops everything: the disk is full. On the committing thread."""
        self._writer.execute("DELETE FROM kept")
        self._bytes = 0

    def rows(self, asked: PastRange) -> Iterator[tuple[Any, ...]]:
        """Rows of log and kept: revision, key, created, deleted, value, checksum, time, author. On the reading
        thread."""
        return self._reader.execute(_VERSIONS, {"low": asked.low, "high": asked.high, "before": asked.before})
