"""The SQLite driver: one append-only log table whose rowid is the revision.

Theory. The current records are in memory; the file is what they are rebuilt from, and what answers for the
past. The loop's thread decides (is the key free? is the expected revision the newest?) and numbers the writes; a
second thread only waits for the disk.

- **Group commit.** Writes that come while a commit is under way form the next transaction. A write returns when
  the transaction that holds it is committed with synchronous=FULL: it survives a power cut.
- **One write per key at a time.** Who wants a key that is being written waits, then sees the outcome. So a
  conflict is judged on what is durable, and events leave in the order of revisions, which is the order of
  commit: nothing is seen that could be taken back.
- **Failure.** After an I/O error nobody can know what is on the disk, for fsync reports an error once: the driver
  refuses all further writes until it is opened again.
- **A full disk** is a state. The writes that found no room fail, and so do all that would store more; deletions, and
  updates that make nothing larger (a finalizer less, a deletionTimestamp), go into space that was kept for that
  day (``reserve``). Every second the driver forgets what it may and looks whether there is room again.
- **A locked file** (a ``sqlite3`` shell in a transaction) is waited for, off the loop; then those writes fail and
  the next ones try again.
- **Compaction** runs in short transactions between the others, and its revision is committed before the first
  row goes. The highest revision ever used is never lost: rows go only up to the compacted one, which is kept.
- One process at a time, and no start on a log that lost what it had acknowledged: see ``file_lock``.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from apimachinery.storage.file_lock import FileLock, StorageFileError
from apimachinery.storage.interface import (
    Compacted,
    Event,
    FutureRevision,
    KeyExists,
    KeyNotFound,
    Record,
    RecordPage,
    Reset,
    RevisionConflict,
    RunningWatch,
    Sink,
    Value,
    check_size,
)
from apimachinery.storage.kept import KeepOptions, KeepsVersions, PastRange, PastVersion
from apimachinery.storage.reserve import Reserve
from apimachinery.storage.sealing import Sealing
from apimachinery.storage.sqlite_checks import explained
from apimachinery.storage.sqlite_commits import Commits
from apimachinery.storage.sqlite_log import Log
from apimachinery.storage.subscribers import Subscribers

log = logging.getLogger("kubewright.storage")

REPLAYED_PER_STEP = 2_000
_Result = TypeVar("_Result")


class SqliteStorage:
    """See ``interface.Storage``. Use ``await SqliteStorage.open(path)``."""

    def __init__(self, log: Log, lock: FileLock, reserve: Reserve) -> None:
        self._path = lock.database
        self._log = log
        self._lock = lock
        self._reserve = reserve
        self._commits = Commits(log, lock, reserve, self._publish)
        self.unreadable: dict[str, str] = {}
        """See the contract."""
        self._records = {
            record.key: record for record in log.state(self._commits.revision, unreadable=self.unreadable)
        }
        self._keys: list[str] | None = None
        self._subscribers = Subscribers()
        self._readers = ThreadPoolExecutor(1, "kubewright-read")
        self._closed = False

    @classmethod
    async def open(
        cls, path: Path, sealing: Sealing | None = None, keep: KeepOptions | None = None
    ) -> SqliteStorage:
        """Opens or makes a database. ``sealing`` encrypts what is in the file, ``keep`` keeps versions.

        Raises StorageFileError for a file that is none of ours, is in use, is damaged, or ends before the newest
        revision that was acknowledged.
        """
        path = path.resolve()
        # Looked at before the lock: that makes an empty file where there is none.
        lock = FileLock(path)
        emptied = lock.emptied()
        lock.acquire()
        opened: Log | None = None
        try:
            if emptied:
                raise StorageFileError(emptied)
            opened = Log(path, sealing=sealing, keep=keep)
            if lock.restrict():
                log.warning(
                    "others could read the database; now its owner alone can", extra={"path": str(path)}
                )
            # Before the state is read: a log that lost writes must not be served.
            refuse_lost_writes(path, opened, lock)
            opened.refuse_hidden_rows()
            storage = cls(opened, lock, Reserve(path.with_name(path.name + ".reserve")))
        except BaseException as fault:
            # The database first: releasing the lock lets another process open it.
            if opened is not None:
                opened.close()
            lock.release()
            if isinstance(fault, sqlite3.Error):
                raise explained(path, fault) from None
            raise
        storage._commits.begin()
        return storage

    @property
    def shared(self) -> bool:
        """Nobody else writes."""
        return False

    @property
    def writable(self) -> bool:
        """It takes writes."""
        return True

    @property
    def revision(self) -> int:
        """The newest durable revision."""
        return self._commits.revision

    @property
    def compacted(self) -> int:
        """The oldest revision that can be read."""
        return self._commits.compacted

    @property
    def failed(self) -> str:
        """Why nothing can be written any more."""
        return self._commits.failed

    @property
    def trouble(self) -> str:
        """What is wrong for now, or for good."""
        return self._commits.trouble

    async def catch_up(self) -> None:
        """Returns at once: nothing is behind."""

    async def get(self, key: str, *, at: int = 0) -> Record | None:
        revision = self._check(at)
        if revision == self._commits.revision:
            return self._records.get(key)
        return await self._reading(lambda: self._log.record(key, revision))

    async def list(self, prefix: str, *, at: int = 0, after: str = "", limit: int = 0) -> RecordPage:
        revision = self._check(at)
        if revision != self._commits.revision:
            records = await self._reading(lambda: self._log.state(revision, prefix))
            keys: Sequence[str] = [record.key for record in records]
            low = bisect_right(keys, after)
            high = min(low + limit, len(keys)) if limit else len(keys)
            return RecordPage(records[low:high], revision, len(keys) - high)
        if self._keys is None:
            # Sorted on demand: most requests read the watch cache instead.
            self._keys = sorted(self._records)
        low = max(bisect_left(self._keys, prefix), bisect_right(self._keys, after))
        end = bisect_left(self._keys, prefix + "\U0010ffff", low) if prefix else len(self._keys)
        high = min(low + limit, end) if limit else end
        return RecordPage([self._records[key] for key in self._keys[low:high]], revision, end - high)

    async def create(self, key: str, value: Value) -> Record:
        check_size(value)
        # After this nothing is awaited up to number(), so nobody else can take the key.
        await self._commits.settled(key)
        if key in self._records or key in self.unreadable:
            raise KeyExists(key)
        self._commits.refuse_growth(None, value)
        revision = self._commits.number()
        return await self._commits.append(Event(Record(key, revision, revision, value.at(revision)), None))

    async def update(self, key: str, expected: int, value: Value) -> Record:
        check_size(value)
        await self._commits.settled(key)
        current = self._current(key, expected)
        self._commits.refuse_growth(current, value)
        revision = self._commits.number()
        return await self._commits.append(
            Event(Record(key, revision, current.created, value.at(revision)), current)
        )

    async def delete(self, key: str, expected: int, last: Value, *, marked: bool = False) -> Record:
        await self._commits.settled(key)
        current = self._current(key, expected)
        mark: Event | None = None
        if marked:
            revision = self._commits.number()
            mark = Event(Record(key, revision, current.created, last.at(revision)), current)
            current = mark.record
        revision = self._commits.number()
        record = Record(key, revision, current.created, last.at(revision))
        return await self._commits.append(Event(record, current, deleted=True), mark)

    async def watch(self, prefix: str, after: int, sink: Sink, reset: Reset | None = None) -> RunningWatch:
        # The past is read in steps; events may be committed meanwhile, so the end is looked at again.
        while after < self._commits.revision:
            past, after = await self.events(prefix, after, REPLAYED_PER_STEP)
            if past:
                sink(past)
        return self._subscribers.add(prefix, max(after, self._commits.revision), sink)

    async def events(self, prefix: str, after: int, limit: int) -> tuple[Sequence[Event], int]:
        if after < self._commits.compacted:
            raise Compacted(after, self._commits.compacted)
        until = self._commits.revision
        past = await self._reading(lambda: self._log.events(after, until, prefix, limit))
        if after < self._commits.compacted:  # while it was read: what was there before may be gone
            raise Compacted(after, self._commits.compacted)
        return past, past[-1].revision if len(past) == limit else until

    @property
    def past(self) -> KeepsVersions | None:
        """Itself where it keeps versions."""
        return None if self._log.kept is None else self

    async def versions(
        self, asked: PastRange, wanted: Callable[[Record], bool]
    ) -> tuple[Sequence[PastVersion], bool]:
        return await self._reading(lambda: self._log.versions(asked, wanted))

    async def take_turn(self, revision: int) -> bool:
        """It is alone."""
        return True

    async def compact(self, revision: int) -> None:
        if revision > self._commits.revision:
            raise FutureRevision(revision, self._commits.revision)
        if revision <= self._commits.compacted:
            return
        await self._commits.compact(revision)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._commits.close()
        self._readers.shutdown()
        self._log.close()
        self._reserve.remove()
        self._lock.release()

    # Reading.

    async def _reading(self, work: Callable[[], _Result]) -> _Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, work)
        except sqlite3.Error as fault:
            raise explained(self._path, fault) from None

    def _check(self, at: int) -> int:
        if at == 0:
            return self._commits.revision
        if at < self._commits.compacted:
            raise Compacted(at, self._commits.compacted)
        if at > self._commits.revision:
            raise FutureRevision(at, self._commits.revision)
        return at

    def _current(self, key: str, expected: int) -> Record:
        current = self._records.get(key)
        if current is None:
            raise KeyNotFound(key)
        if current.revision != expected:
            raise RevisionConflict(expected, current)
        return current

    def _publish(self, events: Sequence[Event]) -> None:
        for event in events:
            self._remember(event)
        self._subscribers.publish(events)

    def _remember(self, event: Event) -> None:
        key = event.record.key
        if event.deleted:
            del self._records[key]
            self._keys = None
        else:
            if event.previous is None:
                self._keys = None
            self._records[key] = event.record


def refuse_lost_writes(path: Path, log: Log, lock: FileLock) -> None:
    """Raises StorageFileError for a log that ends before the newest revision that was acknowledged."""
    newest, mark = log.newest(), lock.mark(log.identity)
    if newest < mark:
        raise StorageFileError(
            f"{path} ends at revision {newest}, but {mark} was acknowledged: its write-ahead log was cut off or is "
            f"missing. Put {path.name}-wal back, restore a backup with 'kubewright storage restore', or give up those "
            f"writes with 'kubewright storage check --repair {path}'"
        )
