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
import contextlib
import logging
import sqlite3
import time
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
    Page,
    Record,
    Reset,
    RevisionConflict,
    Sink,
    StorageBusy,
    StorageClosed,
    StorageError,
    StorageFull,
    Value,
    Watch,
    check_size,
)
from apimachinery.storage.reserve import Reserve
from apimachinery.storage.sealing import Sealing
from apimachinery.storage.sqlite_log import Log
from apimachinery.storage.subscribers import Subscribers

log = logging.getLogger("kubewright.storage")

COMPACTED_PER_STEP = 2_000
REPLAYED_PER_STEP = 2_000
BUSY_SECONDS = 10.0
HEAL_SECONDS = 1.0
GROWTH_BYTES = 512
"""How much larger an update may make an object while the disk is full: a deletionTimestamp and its field's owner."""


Batch = list[tuple[Event, asyncio.Future[None]]]
_Result = TypeVar("_Result")


class WriteFailed(StorageError):
    """A compaction that did not happen; the disk's reason is in the text."""


class SqliteStorage:
    """See ``interface.Storage``. Use ``await SqliteStorage.open(path)``."""

    def __init__(self, log: Log, lock: FileLock, reserve: Reserve) -> None:
        self._log = log
        self._lock = lock
        self._reserve = reserve
        self._identity = log.identity
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
        self._readers = ThreadPoolExecutor(1, "kubewright-read")
        self._healing: asyncio.Task[None] | None = None
        self._failed = ""
        self._full = ""
        self._blocked = ""
        self._closed = False

    @classmethod
    async def open(cls, path: Path, sealing: Sealing | None = None) -> SqliteStorage:
        """Opens or makes a database. ``sealing`` encrypts what is in the file.

        Raises StorageFileError for a file that is none of ours, is in use, is damaged, or ends before the newest
        revision that was acknowledged.
        """
        path = path.resolve()
        lock = FileLock(path)
        lock.acquire()
        opened: Log | None = None
        try:
            opened = Log(path, sealing=sealing)
            refuse_lost_writes(path, opened, lock)
            storage = cls(opened, lock, Reserve(path.with_name(path.name + ".reserve")))
        except BaseException:
            if opened is not None:
                opened.close()
            lock.release()
            raise
        if lock.restrict():
            log.warning("others could read the database; now its owner alone can", extra={"path": str(path)})
        lock.set_mark(storage._identity, storage._revision)
        if not storage._reserve.take():
            storage._begin_full("there is no room for the reserve that deletions need on a full disk")
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
        return self._revision

    @property
    def compacted(self) -> int:
        """The oldest revision that can be read."""
        return self._compacted

    @property
    def failed(self) -> str:
        """Why nothing can be written any more."""
        return self._failed

    @property
    def trouble(self) -> str:
        """What is wrong for now, or for good."""
        return self._failed or self._full or self._blocked

    async def catch_up(self) -> None:
        """Nothing to wait for."""

    async def get(self, key: str, *, at: int = 0) -> Record | None:
        """See the contract."""
        revision = self._check(at)
        if revision == self._revision:
            return self._records.get(key)
        return await self._reading(lambda: self._log.record(key, revision))

    async def list(self, prefix: str, *, at: int = 0, after: str = "", limit: int = 0) -> Page:
        """See the contract."""
        revision = self._check(at)
        if revision != self._revision:
            records = await self._reading(lambda: self._log.state(revision, prefix))
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
        check_size(value)
        await self._settle(key)
        if key in self._records:
            raise KeyExists(key)
        self._refuse_growth(None, value)
        revision = self._number()
        return await self._append(Event(Record(key, revision, revision, value.at(revision)), None))

    async def update(self, key: str, expected: int, value: Value) -> Record:
        """See the contract."""
        check_size(value)
        await self._settle(key)
        current = self._current(key, expected)
        self._refuse_growth(current, value)
        revision = self._number()
        return await self._append(Event(Record(key, revision, current.created, value.at(revision)), current))

    async def delete(self, key: str, expected: int, last: Value) -> Record:
        """See the contract."""
        await self._settle(key)
        current = self._current(key, expected)
        revision = self._number()
        record = Record(key, revision, current.created, last.at(revision))
        return await self._append(Event(record, current, deleted=True))

    async def watch(self, prefix: str, after: int, sink: Sink, reset: Reset | None = None) -> Watch:
        """See the contract."""
        while after < self._revision:
            past, after = await self.events(prefix, after, REPLAYED_PER_STEP)
            if past:
                sink(past)
        return self._subscribers.add(prefix, max(after, self._revision), sink)

    async def events(self, prefix: str, after: int, limit: int) -> tuple[Sequence[Event], int]:
        """See the contract."""
        if after < self._compacted:
            raise Compacted(after, self._compacted)
        until = self._revision
        past = await self._reading(lambda: self._log.events(after, until, prefix, limit))
        if after < self._compacted:  # while it was read: what was there before may be gone
            raise Compacted(after, self._compacted)
        return past, past[-1].revision if len(past) == limit else until

    async def take_turn(self, revision: int) -> bool:
        """It is alone."""
        return True

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
            low = await self._on_disk(lambda low=low: self._log.forget(low, revision, COMPACTED_PER_STEP))  # type: ignore[misc]
            self._forgotten = low
        await self._on_disk(self._log.shrink)

    async def close(self) -> None:
        """See the contract."""
        if self._closed:
            return
        self._closed = True
        if self._healing is not None:
            self._healing.cancel()
            await asyncio.gather(self._healing, return_exceptions=True)
        while self._busy:
            await asyncio.wait(list(self._busy.values()))
        async with self._disk:
            self._failed = self._failed or "closed"
            self._thread.shutdown()
            self._readers.shutdown()
            self._log.close()
            self._reserve.remove()
            self._lock.release()

    # Reading.

    async def _reading(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

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
                failure = await self._write([event for event, _ in batch])
                if isinstance(failure, StorageFull):
                    spared = [pending for pending in batch if not self._grows(pending[0])]
                    self._settle_batch([pending for pending in batch if pending not in spared], failure)
                    batch = spared
                    failure = await self._write([event for event, _ in batch]) if batch else None
                    if isinstance(failure, StorageFull) and await self._forget_all():
                        failure = await self._write([event for event, _ in batch])
            if batch:
                self._settle_batch(batch, failure)
        self._scheduled = False

    async def _write(self, events: Sequence[Event]) -> StorageError | None:
        if self._failed:
            return StorageClosed(f"the storage is closed: {self._failed}")
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._write_events, events)
        except sqlite3.Error as fault:
            self._log.roll_back()
            code = getattr(fault, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_FULL:
                self._begin_full(str(fault))
                return StorageFull(f"the disk is full: {fault}")
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                return StorageBusy(f"another program holds a lock on the database: {fault}")
            self._failed = f"{fault}; open the storage again"
            log.error("the storage takes no more writes until the server is started again: %s", fault)
            return StorageClosed(f"the write may or may not be durable: {fault}")
        return None

    def _write_events(self, events: Sequence[Event]) -> None:
        """On the committing thread."""
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._log.begin(events)
                break
            except sqlite3.OperationalError as fault:
                if getattr(fault, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if not self._blocked:
                    self._blocked = f"another program holds a lock on the database: {fault}"
                    log.warning(
                        "writes wait: another program (a sqlite3 shell?) holds a lock on the database"
                    )
                if time.monotonic() > until:
                    raise
        self._log.commit()
        if self._blocked:
            self._blocked = ""
            log.warning("the database is no longer locked; writes go on")
        self._lock.set_mark(self._identity, events[-1].record.revision)

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

    # A full disk.

    def _refuse_growth(self, current: Record | None, value: Value) -> None:
        if self._full and (
            current is None or len(value.head) + len(value.tail) > len(current.value) + GROWTH_BYTES
        ):
            raise StorageFull(self._full)

    def _grows(self, event: Event) -> bool:
        if event.deleted:
            return False
        before = event.previous
        return before is None or len(event.record.value) > len(before.value) + GROWTH_BYTES

    def _begin_full(self, reason: str) -> None:
        self._reserve.give_quarter()
        if self._full:
            return
        self._full = f"the disk is full: {reason}"
        log.error("%s; only deletions are taken until there is room", self._full)
        self._healing = asyncio.get_running_loop().create_task(self._heal())

    async def _heal(self) -> None:
        """Takes writes again when there is room: made by somebody else, or by forgetting what was deleted."""
        while not self._failed:
            await asyncio.sleep(HEAL_SECONDS)
            async with self._disk:
                if await asyncio.get_running_loop().run_in_executor(self._thread, self._reserve.take):
                    self._full = ""
                    log.warning("the disk has room again; all writes are taken")
                    return
                await self._forget_all()

    async def _forget_all(self) -> bool:
        """Forgets all but the present state, for room; whether that went well. For who holds the disk."""
        revision = self._revision
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._forget_on_disk, revision)
        except sqlite3.Error as fault:
            with contextlib.suppress(sqlite3.Error):
                self._log.roll_back()
            log.warning("no room could be made on the full disk: %s", fault)
            return False
        self._compacted = self._forgotten = revision
        return True

    def _forget_on_disk(self, revision: int) -> None:
        """On the committing thread."""
        self._reserve.give_all()
        try:
            if revision > self._compacted:
                self._log.set_compacted(revision)
            low = self._forgotten
            while low < revision:
                low = self._log.forget(low, revision, COMPACTED_PER_STEP)
            self._log.shrink_in_steps()
        finally:
            self._reserve.take()
            self._reserve.give_quarter()

    def _remember(self, event: Event) -> None:
        key = event.record.key
        if event.deleted:
            del self._records[key]
            self._keys = None
        else:
            if event.previous is None:
                self._keys = None
            self._records[key] = event.record

    async def _on_disk(self, work: Callable[[], _Result]) -> _Result:
        async with self._disk:
            if self._closed or self._failed:
                raise StorageClosed(f"the storage is closed: {self._failed or 'closed'}")
            try:
                return await asyncio.get_running_loop().run_in_executor(self._thread, work)
            except sqlite3.Error as fault:
                with contextlib.suppress(sqlite3.Error):
                    self._log.roll_back()
                raise WriteFailed(f"compaction failed: {fault}") from fault


def refuse_lost_writes(path: Path, log: Log, lock: FileLock) -> None:
    """Raises StorageFileError for a log that ends before the newest revision that was acknowledged."""
    newest, mark = log.newest(), lock.mark(log.identity)
    if newest < mark:
        raise StorageFileError(
            f"{path} ends at revision {newest}, but {mark} was acknowledged: its write-ahead log was cut off or is "
            f"missing. Put {path.name}-wal back, restore a backup with 'kubewright storage restore', or give up those "
            f"writes with 'kubewright storage check --repair {path}'"
        )
