"""The commits of the SQLite driver: writes gathered into transactions on a thread that only waits for the disk, what
becomes of a full disk and of a locked file, and compaction between them. ``sqlite`` has the rules.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from apimachinery.storage.file_lock import FileLock
from apimachinery.storage.interface import (
    Event,
    Record,
    StorageBusy,
    StorageClosed,
    StorageError,
    StorageFull,
    Value,
)
from apimachinery.storage.own_thread import OwnThread
from apimachinery.storage.reserve import Reserve
from apimachinery.storage.sqlite_log import Log

log = logging.getLogger("kubewright.storage")

COMPACTED_PER_STEP = 2_000
BUSY_SECONDS = 10.0
HEAL_SECONDS = 1.0
LOOKED_BYTES = 8 << 20
"""What the write-ahead log grows by before somebody looks why: SQLite empties it at 4 MiB."""
LOOKS = 8
"""How often its size is asked for on the way there: each time lets go of the interpreter."""
COMMITTED_BYTES = 32 << 10
"""What an event of a few bytes adds to it: pages of the table and of the index."""
GROWN_BYTES = 96 << 20
"""Of the write-ahead log, which has some 64 MiB after a large transaction: what more is worth a word."""
GROWTH_BYTES = 512
"""How much larger an update may make an object while the disk is full: a deletionTimestamp and its field's owner."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A write that waits: the events of one key that are committed together, who is told (and may give up), and what is
    done once nobody writes the key any more."""

    events: tuple[Event, ...]
    told: asyncio.Future[None]
    settled: asyncio.Future[None]
    since: float

    @property
    def grows(self) -> bool:
        """Whether more is stored than before."""
        event = self.events[-1]
        if event.deleted:
            return False
        before = event.previous
        return before is None or len(event.record.value) > len(before.value) + GROWTH_BYTES


_Batch = list[_Pending]
_Result = TypeVar("_Result")


class WriteFailed(StorageError):
    """A compaction that did not happen; the disk's reason is in the text."""


class Commits:
    """What becomes durable. ``publish`` is given the events of each commit, in order."""

    def __init__(
        self, log: Log, lock: FileLock, reserve: Reserve, publish: Callable[[Sequence[Event]], None]
    ) -> None:
        self._log = log
        self._lock = lock
        self._reserve = reserve
        self._publish = publish
        self._identity = log.identity
        self.revision = log.newest()
        self._numbered = self.revision
        self.compacted = log.compacted()
        self._forgotten = 0
        self._busy: dict[str, asyncio.Future[None]] = {}
        self._next: _Batch = []
        self._scheduled = False
        self._disk = asyncio.Lock()
        # One thread: SQLite's writer is used by one thread at a time, and commits stay in order.
        self._thread = OwnThread("kubewright-commit")
        self._healing: asyncio.Task[None] | None = None
        self.failed = ""
        self._full = ""
        self._blocked = ""
        self._looked_bytes, self._told_bytes = LOOKED_BYTES, GROWN_BYTES
        self._written = 0
        """Bytes since the size of the log was asked for."""
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def begin(self) -> None:
        """Notes the newest revision, and takes the space that deletions need on a full disk; without it the disk is
        full already."""
        # A power cut may lose the log's end; the mark in the lock file then shows that something is missing.
        self._lock.set_mark(self._identity, self.revision)
        if not self._reserve.take():
            self._begin_full("there is no room for the reserve that deletions need on a full disk")

    @property
    def trouble(self) -> str:
        """What is wrong for now, or for good."""
        return self.failed or self._full or self._blocked

    async def settled(self, key: str) -> None:
        """Returns when nobody writes a key. Raises StorageClosed."""
        # Again: whoever is woken first may have begun another write of the key.
        while (busy := self._busy.get(key)) is not None:
            await asyncio.wait((busy,))
        if self._closed or self.failed:
            raise StorageClosed(f"the storage is closed: {self.failed or 'closed'}")

    def number(self) -> int:
        """The next revision, for an event that is appended at once."""
        self._numbered += 1
        return self._numbered

    async def compact(self, revision: int) -> None:
        """Forgets what is older than a revision. Raises WriteFailed, StorageClosed."""
        self.compacted = revision
        await self._on_disk(lambda: self._log.set_compacted(revision))
        # Not from the last compaction on: one that was cut short left rows behind, and where only a later deletion
        # of their key were forgotten, they would be taken for the living record. After opening, all is gone over once.
        low = self._forgotten
        while low < revision:
            low = await self._on_disk(lambda low=low: self._log.forget(low, revision, COMPACTED_PER_STEP))  # type: ignore[misc]
            self._forgotten = low
        if self._log.pruned is not None:
            await self._on_disk(self._log.pruned.prune)
        await self._on_disk(self._log.shrink)

    async def close(self) -> None:
        """Takes nothing more, and returns when all is on the disk."""
        self._closed = True
        if self._healing is not None:
            self._healing.cancel()
            await asyncio.gather(self._healing, return_exceptions=True)
        while self._busy:
            await asyncio.wait(list(self._busy.values()))
        async with self._disk:
            self.failed = self.failed or "closed"
            self._thread.end()

    async def append(self, event: Event, before: Event | None = None) -> Record:
        """The event's record, once it is durable, and what comes right before it. Raises StorageError."""
        loop = asyncio.get_running_loop()
        events = (event,) if before is None else (before, event)
        if self._log.kept is not None:
            self._log.kept.expect(events)
        pending = _Pending(events, loop.create_future(), loop.create_future(), time.monotonic())
        # From here on the key is busy; a second write of it waits in settled.
        self._busy[event.record.key] = pending.settled
        self._next.append(pending)
        if not self._scheduled:
            self._scheduled = True
            # It begins in the next turn, with all that is appended in this one. The loop itself keeps only a weak
            # reference to a task.
            self._committing = loop.create_task(self._commit())
        # Not a shield around one future for both: under load each turn of the loop that a write waits for is long.
        await pending.told
        return event.record

    async def _commit(self) -> None:
        while self._next:
            # Nobody else writes meanwhile; what arrives now goes into the next batch.
            async with self._disk:
                batch, self._next = self._next, []
                failure = await self._write(batch)
                # Deletions, and updates that do not grow, still fit into the reserve.
                if isinstance(failure, StorageFull):
                    self._settle_batch([pending for pending in batch if pending.grows], failure)
                    batch = [pending for pending in batch if not pending.grows]
                    failure = await self._write(batch) if batch else None
                    if isinstance(failure, StorageFull) and await self._forget_all():
                        failure = await self._write(batch)
                if isinstance(failure, StorageBusy):
                    # Everybody waits equally long: who came later is tried again.
                    late = time.monotonic() - BUSY_SECONDS
                    self._next[:0] = [pending for pending in batch if pending.since > late]
                    batch = [pending for pending in batch if pending.since <= late]
            if batch and failure is not None:
                self._settle_batch(batch, failure)
        # Only now: an append during the last write would otherwise begin a second task.
        self._scheduled = False

    async def _write(self, batch: _Batch) -> StorageError | None:
        if self.failed:
            return StorageClosed(f"the storage is closed: {self.failed}")
        events = _events(batch)
        try:
            await self._thread.do(
                partial(self._write_events, events, batch[0].since + BUSY_SECONDS),
                # Not after the future: that would cost the loop one turn more for each batch.
                then=partial(self._settle_batch, batch, None),
            )
        except sqlite3.Error as fault:
            self._log.roll_back()
            # The extended code's low byte is the primary one.
            code = getattr(fault, "sqlite_errorcode", 0) & 0xFF
            if _is_full(fault):
                self._begin_full(str(fault))
                return StorageFull(f"the disk is full: {fault}")
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                return StorageBusy(f"another program holds a lock on the database: {fault}")
            # After a failed sync nobody knows what is on the disk; going on could acknowledge what is lost.
            self.failed = f"{fault}; open the storage again"
            log.error("the storage takes no more writes until the server is started again: %s", fault)
            return StorageClosed(f"the write may or may not be durable: {fault}")
        return None

    def _write_events(self, events: Sequence[Event], until: float) -> None:
        """Writes events on the committing thread; waits ``until`` then (monotonic) for another program's lock."""
        while True:
            try:
                self._log.write(events)
                break
            except sqlite3.OperationalError as fault:
                self._log.roll_back()
                if getattr(fault, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if not self._blocked:
                    self._blocked = f"another program holds a lock on the database: {fault}"
                    log.warning(
                        "writes wait: another program (a sqlite3 shell?) holds a lock on the database"
                    )
                # busy_timeout is short, so that the time is looked at between two waits.
                if time.monotonic() > until:
                    raise
        if self._blocked:
            self._blocked = ""
            log.warning("the database is no longer locked; writes go on")
        self._lock.set_mark(self._identity, events[-1].record.revision)
        self._written += sum(len(event.record.value) + COMMITTED_BYTES for event in events)
        if self._written >= LOOKED_BYTES // LOOKS:
            self._written = 0
            self._look_at_log()

    def _look_at_log(self) -> None:
        """Empties the write-ahead log on the committing thread, if it has grown and nobody reads an old state, which is
        reported each time the log has doubled. Where the database may not grow, the disk is full while the log still
        has room for deletions."""
        size = self._log.wal_bytes()
        if size < self._looked_bytes:
            return
        self._looked_bytes = size + LOOKED_BYTES
        try:
            held = not self._log.checkpoint()
        except sqlite3.OperationalError as fault:
            if _is_full(fault) and not self._full:
                self._loop.call_soon_threadsafe(self._begin_full, str(fault))
            return
        if held and size > self._told_bytes:
            self._told_bytes = size * 2
            log.warning(
                "the write-ahead log has %d MiB and grows: another program (a sqlite3 shell?) reads the database in a "
                "transaction that does not end",
                size >> 20,
            )

    def _settle_batch(self, batch: _Batch, failure: StorageError | None) -> None:
        # First all keys become free: publishing may make somebody write one of them again.
        for pending in batch:
            del self._busy[pending.events[-1].record.key]
        if failure is None:
            events = _events(batch)
            self.revision = events[-1].revision
            # Watches before writers: whoever wrote finds the write in the watch cache.
            self._publish(events)
        for pending in batch:
            pending.settled.set_result(None)
            if pending.told.done():  # whoever waited has given up
                continue
            if failure is None:
                pending.told.set_result(None)
            else:
                pending.told.set_exception(failure)

    # A full disk.

    def refuse_growth(self, current: Record | None, value: Value) -> None:
        """Raises StorageFull for what would make the stored objects larger while the disk is full."""
        if self._full and (
            current is None or len(value.head) + len(value.tail) > len(current.value) + GROWTH_BYTES
        ):
            raise StorageFull(self._full)

    def _begin_full(self, reason: str) -> None:
        self._reserve.give_quarter()
        if self._full:
            return
        self._full = f"the disk is full: {reason}"
        log.error("%s; only deletions are taken until there is room", self._full)
        self._healing = asyncio.get_running_loop().create_task(self._heal())

    async def _heal(self) -> None:
        """Takes writes again when there is room: made by somebody else, or by forgetting what was deleted."""
        while not self.failed:
            # Polling: no event says that there is room again.
            await asyncio.sleep(HEAL_SECONDS)
            async with self._disk:
                if await self._thread.do(self._has_room):
                    self._full = ""
                    log.warning("the disk has room again; all writes are taken")
                    return
                await self._forget_all()

    def _has_room(self) -> bool:
        """On the committing thread: whether the disk has room for the reserve, and the database may grow."""
        if not self._reserve.take():
            return False
        try:
            self._log.checkpoint()
        except sqlite3.OperationalError as fault:
            return not _is_full(fault)
        return True

    async def _forget_all(self) -> bool:
        """Forgets all but the present state, for room; whether that went well. For who holds the disk."""
        revision = self.revision
        try:
            await self._thread.do(partial(self._forget_on_disk, revision))
        except sqlite3.Error as fault:
            with contextlib.suppress(sqlite3.Error):
                self._log.roll_back()
            log.warning("no room could be made on the full disk: %s", fault)
            return False
        self.compacted = self._forgotten = revision
        return True

    def _forget_on_disk(self, revision: int) -> None:
        """Compacts on the committing thread, in steps; gives the reserve back first, so that there is room for it."""
        # A deletion of rows needs pages in the write-ahead log before it frees any.
        self._reserve.give_all()
        try:
            if revision > self.compacted:
                self._log.set_compacted(revision)
            if self._log.pruned is not None:
                self._log.pruned.clear()
            low = self._forgotten
            while low < revision:
                low = self._log.forget(low, revision, COMPACTED_PER_STEP, for_room=True)
            self._log.shrink_in_steps()
        finally:
            # Taken again as far as there is room now; a quarter stays free for SQLite's own files.
            self._reserve.take()
            self._reserve.give_quarter()

    async def _on_disk(self, work: Callable[[], _Result]) -> _Result:
        async with self._disk:
            if self._closed or self.failed:
                raise StorageClosed(f"the storage is closed: {self.failed or 'closed'}")
            try:
                return await self._thread.do(work)
            except sqlite3.Error as fault:
                with contextlib.suppress(sqlite3.Error):
                    self._log.roll_back()
                raise WriteFailed(f"compaction failed: {fault}") from fault


def _is_full(fault: sqlite3.Error) -> bool:
    """Whether there is no room for a write. One that failed, unlike a sync, is known not to be there: a quota or a
    limit for files is a full disk too."""
    code = getattr(fault, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_WRITE


def _events(batch: _Batch) -> list[Event]:
    return [event for pending in batch for event in pending.events]
