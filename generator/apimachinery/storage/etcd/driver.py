"""The etcd driver: a log that several servers share. The revision is etcd's.

Theory. Every server keeps the present records in memory (``present``) and follows all events below its prefix
(``follow``); etcd is asked for what is written (``writes``) and for the past (``past``). How far this server has seen,
and how a consistent read waits for more, is ``freshness``; whether etcd answers at all, ``health``; who forgets old
revisions, ``compaction``. This module composes them: it takes the events of the stream, applies and publishes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any, BinaryIO

from apimachinery.storage.etcd.compaction import Compaction
from apimachinery.storage.etcd.connection import READ_SECONDS, EtcdConnection
from apimachinery.storage.etcd.follow import Follower
from apimachinery.storage.etcd.freshness import Freshness
from apimachinery.storage.etcd.health import EtcdHealth, Members
from apimachinery.storage.etcd.keys import Keys
from apimachinery.storage.etcd.options import EtcdOptions
from apimachinery.storage.etcd.past import Past
from apimachinery.storage.etcd.present import Present
from apimachinery.storage.etcd.rpc import RpcFailed
from apimachinery.storage.etcd.separating import separate_custom
from apimachinery.storage.etcd.values import EtcdValues, log_unread
from apimachinery.storage.etcd.writes import EtcdWrites
from apimachinery.storage.interface import (
    Compacted,
    Event,
    FutureRevision,
    Record,
    RecordPage,
    Reset,
    RunningWatch,
    Sink,
    StorageUnreachable,
    Value,
)
from apimachinery.storage.subscribers import Subscribers

log = logging.getLogger("kubewright.storage")


class EtcdStorage:
    """See ``interface.Storage``. Use ``await EtcdStorage.open(options)``."""

    def __init__(self, options: EtcdOptions, values: EtcdValues) -> None:
        self._writable = not options.read_only
        self._connection = EtcdConnection(options)
        self._values = values
        self._keys = Keys(options.prefix)
        self._members = Members(self._connection)
        self._freshness = Freshness(self._connection, self._keys, self._members, self._writable)
        self._health = EtcdHealth(self._members, self._freshness.catch_up)
        self._present = Present(values)
        self._past = Past(self._connection, self._keys, self)
        self._compaction = Compaction(self._connection, self._freshness, self._writable)
        self._writes = EtcdWrites(
            self._connection, self._keys, values, self._present, self._freshness, self._writable
        )
        self._event_revision = 0  # of the newest event of this prefix; 0 where it is not known
        self._subscribers = Subscribers()
        self._closed = False
        self._follower: Follower | None = None

    @classmethod
    async def open(cls, options: EtcdOptions, values: EtcdValues | None = None) -> EtcdStorage:
        """Reads the present state and follows it. Raises StorageUnreachable, EtcdRefusal, OSError for a file that
        cannot be read."""
        storage = cls(options, values or EtcdValues())
        try:
            await storage._load()
            await storage._members.look()
            if storage.writable and await storage._separate_custom():
                await storage._load()
        except BaseException:
            await storage.close()
            raise
        log_unread(storage.unread)
        follower = storage._follow()
        storage._health.start()
        # A watch that begins at the newest revision is spared etcd's slower path for watches that lag.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(follower.started(), READ_SECONDS)
        return storage

    @property
    def shared(self) -> bool:
        """Others may write."""
        return True

    @property
    def writable(self) -> bool:
        """Unless it was opened to be read."""
        return self._writable

    @property
    def revision(self) -> int:
        """How far the stream has come."""
        return self._freshness.revision

    @property
    def compacted(self) -> int:
        """The oldest revision that is known to be readable."""
        return self._compaction.oldest

    @property
    def failed(self) -> str:
        """Empty until it is closed."""
        return "closed" if self._closed else ""

    @property
    def trouble(self) -> str:
        """Why this server cannot vouch for what it serves, or why etcd takes no writes."""
        return "closed" if self._closed else self._health.trouble

    @property
    def unread(self) -> dict[bytes, str]:
        """The keys whose values could not be read, and why."""
        return self._present.unread

    @property
    def unreadable(self) -> dict[str, str]:
        """See the contract; nothing where it is only read, and what cannot be is left out."""
        return self._present.named if self._writable else {}

    # Reading.

    async def catch_up(self) -> None:
        await self._freshness.catch_up()

    async def get(self, key: str, *, at: int = 0) -> Record | None:
        revision = await self._at(at)
        if revision == self.revision:
            return self._present.get(key)
        return await self._past.record(key, revision)

    async def list(self, prefix: str, *, at: int = 0, after: str = "", limit: int = 0) -> RecordPage:
        revision = await self._at(at)
        if revision == self.revision:
            return self._present.page(prefix, revision, after, limit)
        return await self._past.page(prefix, revision, after, limit)

    async def _at(self, at: int) -> int:
        """The revision to read at."""
        if at == 0 or at > self.revision:
            await self.catch_up()
        if at == 0:
            return self.revision
        if at < self.compacted:
            raise Compacted(at, self.compacted)
        if at > self.revision:
            raise FutureRevision(at, self.revision)
        return at

    # Writing.

    async def create(self, key: str, value: Value) -> Record:
        return await self._writes.create(key, value)

    async def update(self, key: str, expected: int, value: Value) -> Record:
        return await self._writes.update(key, expected, value)

    async def delete(self, key: str, expected: int, last: Value, *, marked: bool = False) -> Record:
        if marked:
            # Two transactions: etcd allows a key to be written only once in each.
            expected = (await self._writes.update(key, expected, last)).revision
        return await self._writes.delete(key, expected, last)

    async def make_event(self) -> None:
        """Takes etcd one revision further without an object. Nothing where nothing may be written."""
        await self._freshness.make_event()

    # Watching.

    async def watch(self, prefix: str, after: int, sink: Sink, reset: Reset | None = None) -> RunningWatch:
        while after < self.revision:
            past, after = await self.events(prefix, after, 1 << 30)
            if past:
                sink(past)
        return self._subscribers.add(prefix, max(after, self.revision), sink, reset)

    async def events(self, prefix: str, after: int, limit: int) -> tuple[Sequence[Event], int]:
        if after < self.compacted:
            raise Compacted(after, self.compacted)
        until = self.revision
        if after >= until:
            return [], until
        events = await self._past.events(prefix, after, until, self._event_revision)
        # Cut at whole events; the caller goes on from the revision of the last one.
        if len(events) > limit:
            events = events[:limit]
        return events, events[-1].revision if len(events) == limit else until

    def record(self, key: str, kv: Any) -> Record:
        """The record of a key and value of etcd. Raises NotAnObject."""
        return self._present.record(key, kv)

    # The stream of events.

    def _follow(self) -> Follower:
        """Starts the stream behind what was seen."""
        self._follower = self._freshness.stream = Follower(
            self._connection,
            self._keys,
            lambda: self.revision,
            self._take,
            self._freshness.advance,
            self._begin_again,
        )
        return self._follower

    def _take(self, raw: Sequence[Any]) -> None:
        """Takes what the stream brings."""
        events: list[Event] = []
        seen = self.revision
        for one in raw:
            kv = one.kv
            # Events of one revision come together, so only whole revisions are skipped.
            if kv.mod_revision <= seen and not events:
                continue  # seen before the stream broke
            key = self._keys.from_etcd(kv.key)
            self._event_revision = kv.mod_revision
            if key is not None and (event := self._present.apply(key, one)) is not None:
                events.append(event)
        self._publish(events, max(seen, raw[-1].kv.mod_revision))

    def _publish(self, events: Sequence[Event], revision: int) -> None:
        # The watches hear of an event before anybody who waits for its revision goes on.
        self._freshness.revision = revision
        if events:
            self._subscribers.publish(events)
        self._freshness.advance(revision)

    async def _separate_custom(self) -> int:
        known = [*self._present.all_keys(), *self._present.named]
        return await separate_custom(self._connection, self._keys, self._values, known)

    async def _load(self) -> dict[str, Record]:
        """Reads the present state, and publishes nothing; the records of before."""
        records, revision, unread = await self._past.state()
        self._freshness.revision = revision
        # Keys that are no objects of a resource have no name here.
        named = {self._keys.from_etcd(place) or "": reason for place, reason in unread.items()}
        return self._present.replace(records, unread, named)

    async def _begin_again(self, compacted: int) -> None:
        """Reads the state and publishes what differs, where the events past what was seen are compacted."""
        log.warning("events were compacted before they came; the state is read again")
        before = await self._load()
        self.note_compacted(compacted)
        # Not known any more; a replay must not take it for the end.
        self._event_revision = 0
        self._subscribers.reset()
        self._publish(self._present.differences(before, self.revision), self.revision)

    # The log as a whole.

    def note_compacted(self, revision: int) -> None:
        """States before ``revision`` are no longer kept."""
        self._compaction.note(revision)

    async def take_turn(self, revision: int) -> bool:
        return await self._compaction.take_turn(revision)

    async def compact(self, revision: int) -> None:
        await self._compaction.compact(revision)

    async def save(self, file: BinaryIO) -> int:
        """Writes a snapshot of the whole etcd, with its SHA-256 at the end as etcd sends it; how many bytes. Raises
        StorageUnreachable."""
        size = 0
        try:
            pieces = await self._connection.snapshot()
            while (piece := await pieces.read()) is not None:
                file.write(piece.blob)
                size += len(piece.blob)
        except RpcFailed as fault:
            raise StorageUnreachable(f"the snapshot broke off: {fault.details}") from None
        return size

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._freshness.close()
        await self._health.close()
        if self._follower is not None:
            await self._follower.close()
        await self._connection.close()
