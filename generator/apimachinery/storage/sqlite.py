"""The SQLite driver: one append-only log table whose rowid is the revision.

Theory. The current records are in memory; the file is what they are rebuilt from, and what answers for the
past. The loop's thread decides (is the key free? is the expected revision the newest?) and numbers the writes; a
second thread only waits for the disk.

- **Group commit.** Writes that come while a commit is under way form the next transaction. A write returns when
  the transaction that holds it is committed with synchronous=FULL: it survives a power cut.
- **One write per key at a time.** Who wants a key that is being written waits, then sees the outcome. So a
  conflict is judged on what is durable, and events leave in the order of revisions, which is the order of
  commit: nothing is seen that could be taken back.
- **Failure.** A full disk fails the writes of that transaction and no others (their revisions stay unused: gaps
  are harmless). After an I/O error nobody can know what is on the disk, for fsync reports an error once: the
  driver refuses all further writes until it is opened anew.
- **Compaction** runs in short transactions between the others, and its revision is committed before the first
  row goes. The highest revision ever used is never lost: rows go only up to the compacted one, which is kept.
- One process at a time: a lock file beside the database says so.
"""

from __future__ import annotations

import asyncio
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from apimachinery.storage.file_lock import FileLock
from apimachinery.storage.interface import (
    Compacted,
    Event,
    FutureRevision,
    KeyExists,
    KeyNotFound,
    Page,
    Record,
    RevisionConflict,
    Sink,
    StorageClosed,
    StorageError,
    Value,
    Watch,
)
from apimachinery.storage.sqlite_log import Log
from apimachinery.storage.subscribers import Subscribers

COMPACTED_PER_STEP = 2_000


Batch = list[tuple[Event, asyncio.Future[None]]]


class WriteFailed(StorageError):
    """A write that did not happen; the disk's reason is in the text."""


class SqliteStorage:
    """See ``interface.Storage``. Use ``await SqliteStorage.open(path)``."""

    def __init__(self, log: Log, lock: FileLock) -> None:
        self._log = log
        self._lock = lock
        self._revision = log.newest()
        self._numbered = self._revision
        self._compacted = log.compacted()
        self._forgotten = 0
        self._records = {record.key: record for record in log.state(self._revision)}
        self._keys: list[str] | None = None
        self._subscribers = Subscribers()
        self._busy: dict[str, asyncio.Future[None]] = {}
        self._next: Batch = []
        self._scheduled = False
        self._disk = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "kubewright-commit")
        self._failed = ""
        self._closed = False

    @classmethod
    async def open(cls, path: Path) -> SqliteStorage:
        """Opens or makes a database. Raises StorageFileError for a file that is none of ours or is in use."""
        lock = FileLock(path.with_name(path.name + ".lock"))
        lock.acquire()
        try:
            return cls(Log(path), lock)
        except BaseException:
            lock.release()
            raise

    @property
    def revision(self) -> int:
        """The newest durable revision."""
        return self._revision

    @property
    def compacted(self) -> int:
        """The oldest revision that can be read."""
        return self._compacted

    @property
    def failed(self) -> str:
        """Why nothing can be written any more."""
        return self._failed

    async def get(self, key: str, *, at: int = 0) -> Record | None:
        """See the contract."""
        revision = self._check(at)
        if revision == self._revision:
            return self._records.get(key)
        return self._log.record(key, revision)

    async def list(self, prefix: str, *, at: int = 0, after: str = "", limit: int = 0) -> Page:
        """See the contract."""
        revision = self._check(at)
        if revision != self._revision:
            records = self._log.state(revision, prefix)
            keys: Sequence[str] = [record.key for record in records]
            low = bisect_right(keys, after)
            high = min(low + limit, len(keys)) if limit else len(keys)
            return Page(records[low:high], revision, len(keys) - high)
        if self._keys is None:
            self._keys = sorted(self._records)
        low = max(bisect_left(self._keys, prefix), bisect_right(self._keys, after))
        end = bisect_left(self._keys, prefix + "\U0010ffff", low) if prefix else len(self._keys)
        high = min(low + limit, end) if limit else end
        return Page([self._records[key] for key in self._keys[low:high]], revision, end - high)

    async def create(self, key: str, value: Value) -> Record:
        """See the contract."""
        await self._settle(key)
        if key in self._records:
            raise KeyExists(key)
        revision = self._number()
        return await self._append(Event(Record(key, revision, revision, value.at(revision)), None))

    async def update(self, key: str, expected: int, value: Value) -> Record:
        """See the contract."""
        await self._settle(key)
        current = self._current(key, expected)
        revision = self._number()
        return await self._append(Event(Record(key, revision, current.created, value.at(revision)), current))

    async def delete(self, key: str, expected: int, last: Value) -> Record:
        """See the contract."""
        await self._settle(key)
        current = self._current(key, expected)
        revision = self._number()
        record = Record(key, revision, current.created, last.at(revision))
        return await self._append(Event(record, current, deleted=True))

    def watch(self, prefix: str, after: int, sink: Sink) -> Watch:
        """See the contract."""
        if after < self._compacted:
            raise Compacted(after, self._compacted)
        if after < self._revision:
            past = self._log.events(after, self._revision, prefix)
            if past:
                sink(past)
        return self._subscribers.add(prefix, max(after, self._revision), sink)

    async def compact(self, revision: int) -> None:
        """See the contract."""
        if revision > self._revision:
            raise FutureRevision(revision, self._revision)
        if revision <= self._compacted:
            return
        self._compacted = revision
        await self._on_disk(lambda: self._log.set_compacted(revision))
        # Not from the last compaction on: one that was cut short left rows behind, and where only a later deletion
        # of their key were forgotten, they would be taken for the living record. After opening, all is gone over once.
        low = self._forgotten
        while low < revision:
            high = min(low + COMPACTED_PER_STEP, revision)
            await self._on_disk(lambda low=low, high=high: self._log.forget(low, high))  # type: ignore[misc]
            self._forgotten = low = high
        await self._on_disk(self._log.shrink)

    async def close(self) -> None:
        """See the contract."""
        if self._closed:
            return
        self._closed = True
        while self._busy:
            await asyncio.wait(list(self._busy.values()))
        async with self._disk:
            self._failed = self._failed or "closed"
            self._thread.shutdown()
            self._log.close()
            self._lock.release()

    # Reading.

    def _check(self, at: int) -> int:
        if at == 0:
            return self._revision
        if at < self._compacted:
            raise Compacted(at, self._compacted)
        if at > self._revision:
            raise FutureRevision(at, self._revision)
        return at

    def _current(self, key: str, expected: int) -> Record:
        current = self._records.get(key)
        if current is None:
            raise KeyNotFound(key)
        if current.revision != expected:
            raise RevisionConflict(expected, current)
        return current

    # Writing.

    async def _settle(self, key: str) -> None:
        while (busy := self._busy.get(key)) is not None:
            await asyncio.wait((busy,))
        if self._closed or self._failed:
            raise StorageClosed(f"the storage is closed: {self._failed or 'closed'}")

    def _number(self) -> int:
        self._numbered += 1
        return self._numbered

    async def _append(self, event: Event) -> Record:
        loop = asyncio.get_running_loop()
        durable: asyncio.Future[None] = loop.create_future()
        self._busy[event.record.key] = durable
        self._next.append((event, durable))
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._start_commit)
        await asyncio.shield(durable)
        return event.record

    def _start_commit(self) -> None:
        self._committing = asyncio.get_running_loop().create_task(self._commit())

    async def _commit(self) -> None:
        while self._next:
            async with self._disk:
                batch, self._next = self._next, []
                failure = await self._write(batch)
            self._settle_batch(batch, failure)
        self._scheduled = False

    async def _write(self, batch: Batch) -> StorageError | None:
        if self._failed:
            return StorageClosed(f"the storage is closed: {self._failed}")
        try:
            self._log.begin([event for event, _ in batch])
            await asyncio.get_running_loop().run_in_executor(self._thread, self._log.commit)
        except sqlite3.Error as fault:
            self._log.roll_back()
            if getattr(fault, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                return WriteFailed(f"the disk is full: {fault}")
            self._failed = f"{fault}; open the storage anew"
            return StorageClosed(f"the write may or may not be durable: {fault}")
        return None

    def _settle_batch(self, batch: Batch, failure: StorageError | None) -> None:
        for event, _ in batch:
            del self._busy[event.record.key]
        if failure is None:
            events = [event for event, _ in batch]
            self._revision = events[-1].revision
            for event in events:
                self._remember(event)
            self._subscribers.publish(events)
        for _, durable in batch:
            if failure is None:
                durable.set_result(None)
            else:
                durable.set_exception(failure)
                durable.exception()  # whoever waits sees it; nobody may be left

    def _remember(self, event: Event) -> None:
        key = event.record.key
        if event.deleted:
            del self._records[key]
            self._keys = None
        else:
            if event.previous is None:
                self._keys = None
            self._records[key] = event.record

    async def _on_disk(self, work: Callable[[], None]) -> None:
        async with self._disk:
            if self._closed or self._failed:
                raise StorageClosed(f"the storage is closed: {self._failed or 'closed'}")
            try:
                await asyncio.get_running_loop().run_in_executor(self._thread, work)
            except sqlite3.Error as fault:
                self._log.roll_back()
                raise WriteFailed(f"compaction failed: {fault}") from fault
