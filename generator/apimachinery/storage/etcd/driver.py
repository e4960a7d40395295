"""The etcd driver: a log that several servers share. The revision is etcd's.

Theory. Every server keeps the present records in memory and follows all events below its prefix (``follow``); etcd is
asked for what is written and for the past.

- **A write** is a transaction that compares the key's last revision. It returns when its event has come back by the
  stream, so whoever reads from memory then sees it; the event of a write of our own is known by its bytes, and costs
  no decoding.
- **A consistent read** asks etcd which revision is the newest, by a read that a quorum confirms, and waits until the
  stream has come that far. All who ask at one time share one question.
- **Where the stream stays behind** because the newest revision is not below this prefix, etcd is asked to report
  progress. Its answer may overtake events before releases 3.4.25 and 3.5.8 (etcd issue 15220): there, a write to a key
  of our own, whose event comes in order, says the same.
- **Compaction** follows kube-apiserver's convention: a key that every server of the log tries to advance once a period;
  who succeeds compacts. So servers of both kinds may share one etcd.
- **Cut off**, a server serves what it has; ``trouble`` says so after ``STALE_SECONDS``, and reads that must be
  consistent fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import time
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import count
from typing import Any, BinaryIO

import grpc.aio

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.connection import READ_SECONDS, Connection, EtcdRefusal
from apimachinery.storage.etcd.follow import Follower
from apimachinery.storage.etcd.keys import Keys
from apimachinery.storage.etcd.leases import Leases
from apimachinery.storage.etcd.options import EtcdOptions
from apimachinery.storage.etcd.past import Past
from apimachinery.storage.etcd.values import Values, log_unread
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
    StorageClosed,
    StorageError,
    StorageReadOnly,
    StorageUnreachable,
    Value,
    Watch,
    check_size,
)
from apimachinery.storage.objects import NotAnObject, at_other_revision
from apimachinery.storage.subscribers import Subscribers

log = logging.getLogger("kubewright.storage")

STALE_SECONDS = 5.0
PROBE_SECONDS = 2.0
MEMBERS_SECONDS = 10.0
PROGRESS_SECONDS = 0.2
SILENCE_SECONDS = 2.0
COMPACTION_KEY = b"compact_rev_key"


class EtcdStorage:
    """See ``interface.Storage``. Use ``await EtcdStorage.open(options)``."""

    def __init__(self, options: EtcdOptions, values: Values) -> None:
        self._values = values
        self._writable = not options.read_only
        self._connection = Connection(options)
        self._keys = Keys(options.prefix)
        self._leases = Leases(self._connection)
        self._past = Past(self._connection, self._keys, self)
        self._revision = 1
        self._event_revision = 0
        self._compacted = 1
        self._turn = 0
        self._records: dict[str, Record] = {}
        self._sorted: list[str] | None = None
        self._own: dict[str, tuple[bytes, Value]] = {}
        self._subscribers = Subscribers()
        self._waiting: list[tuple[int, int, float, asyncio.Future[None]]] = []
        self._pressing: asyncio.Task[None] | None = None
        self._fresh = time.monotonic()
        self._numbers = count()
        self._asking: asyncio.Task[None] | None = None
        self._asked: list[asyncio.Future[None]] = []
        self._unread: dict[bytes, str] = {}
        self._members = ""
        self._silent: set[str] = set()
        self._exact_progress = False
        self._closed = False
        self._tasks: list[asyncio.Task[None]] = []
        self._follower: Follower | None = None

    @classmethod
    async def open(cls, options: EtcdOptions, values: Values | None = None) -> EtcdStorage:
        """Reads the present state and follows it. Raises StorageUnreachable, EtcdRefusal, OSError for a file that
        cannot be read."""
        storage = cls(options, values or Values())
        try:
            await storage._load()
            await storage._look_at_members()
        except BaseException:
            await storage.close()
            raise
        log_unread(storage._unread)
        storage._follower = Follower(
            storage._connection,
            storage._keys,
            lambda: storage._revision,
            storage._take,
            storage._advance,
            storage._begin_again,
        )
        storage._tasks = [asyncio.create_task(storage._probe())]
        # A watch that begins behind the newest revision is served by etcd's slower way.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(storage._follower.started(), READ_SECONDS)
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
        return self._revision

    @property
    def compacted(self) -> int:
        """The oldest revision that is known to be readable."""
        return self._compacted

    @property
    def failed(self) -> str:
        """Empty until it is closed."""
        return "closed" if self._closed else ""

    @property
    def trouble(self) -> str:
        """Why this server cannot vouch for what it serves, or why etcd takes no writes."""
        if self._closed:
            return "closed"
        silent = time.monotonic() - self._fresh
        if silent > STALE_SECONDS:
            return f"etcd has not answered for {silent:.0f} seconds; what is served from memory may be older than that"
        return self._members

    @property
    def unread(self) -> dict[bytes, str]:
        """The keys whose values could not be read, and why."""
        return self._unread

    # Reading.

    async def catch_up(self) -> None:
        """See the contract."""
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked.append(asked)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        await asked

    async def _ask(self) -> None:
        try:
            while self._asked:
                asked, self._asked = self._asked, []
                try:
                    if self._closed:
                        raise StorageClosed("the storage is closed")
                    newest = await self._newest()
                except Exception as fault:
                    for waiter in asked:
                        if not waiter.done():
                            waiter.set_exception(fault)
                    continue
                for waiter in asked:
                    self._settle_at(newest, waiter)
        finally:
            self._asking = None

    async def _newest(self) -> int:
        request = messages.RangeRequest(key=self._keys.barrier, count_only=True)
        answer = await self._connection.read(messages.RANGE, request)
        return int(answer.header.revision)

    def _settle_at(self, revision: int, waiter: asyncio.Future[None]) -> None:
        """Settles ``waiter`` when the stream has come to ``revision``."""
        if waiter.done():
            return
        if revision <= self._revision:
            waiter.set_result(None)
            return
        heapq.heappush(self._waiting, (revision, next(self._numbers), time.monotonic(), waiter))
        if self._pressing is None:
            self._pressing = asyncio.create_task(self._press())

    async def _reach(self, revision: int) -> None:
        """Returns when the stream has come to a revision, or will not in time: what was written is written."""
        if revision <= self._revision:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settle_at(revision, waiter)
        with contextlib.suppress(StorageUnreachable):
            await waiter

    async def _press(self) -> None:
        """Sees to it that the stream comes to where somebody waits for it."""
        seen, moved = self._revision, time.monotonic()
        try:
            while self._waiting and not self._closed:
                await asyncio.sleep(PROGRESS_SECONDS)
                now = time.monotonic()
                self._give_up(now - READ_SECONDS)
                if self._revision != seen:
                    seen, moved = self._revision, now
                elif (
                    self._waiting and min(since for _, _, since, _ in self._waiting) < now - PROGRESS_SECONDS
                ):
                    if now - moved > SILENCE_SECONDS and self._follower is not None:
                        self._follower.restart()
                        moved = now
                    with contextlib.suppress(StorageError):
                        await self._ask_progress()
        finally:
            self._pressing = None

    async def _ask_progress(self) -> None:
        if not self._exact_progress and self._writable:
            await self.make_event()
        elif self._follower is not None:
            await self._follower.ask_progress()

    async def make_event(self) -> None:
        """Writes a key that is no object's: its event is behind all that there were. Nothing where nothing may be
        written."""
        if not self._writable:
            return
        put = messages.PutRequest(key=self._keys.barrier, value=b"1")
        await self._connection.write(messages.TxnRequest(success=[messages.RequestOp(request_put=put)]))

    def _give_up(self, before: float) -> None:
        """Fails those who wait since before a moment."""
        late = [entry for entry in self._waiting if entry[2] < before]
        if not late:
            return
        self._waiting = [entry for entry in self._waiting if entry[2] >= before]
        heapq.heapify(self._waiting)
        for revision, _, _, waiter in late:
            if not waiter.done():
                text = f"etcd is at revision {revision}, and its events came only up to {self._revision}"
                waiter.set_exception(StorageUnreachable(text))

    async def get(self, key: str, *, at: int = 0) -> Record | None:
        """See the contract."""
        revision = await self._at(at)
        if revision == self._revision:
            return self._records.get(key)
        return await self._past.record(key, revision)

    async def list(self, prefix: str, *, at: int = 0, after: str = "", limit: int = 0) -> Page:
        """See the contract."""
        revision = await self._at(at)
        if revision != self._revision:
            return await self._past.page(prefix, revision, after, limit)
        if self._sorted is None:
            self._sorted = sorted(self._records)
        keys = self._sorted
        low = max(bisect_left(keys, prefix), bisect_right(keys, after))
        end = bisect_left(keys, prefix + "\U0010ffff", low) if prefix else len(keys)
        high = min(low + limit, end) if limit else end
        return Page([self._records[key] for key in keys[low:high]], revision, end - high)

    async def _at(self, at: int) -> int:
        """The revision to read at."""
        if at == 0 or at > self._revision:
            await self.catch_up()
        if at == 0:
            return self._revision
        if at < self._compacted:
            raise Compacted(at, self._compacted)
        if at > self._revision:
            raise FutureRevision(at, self._revision)
        return at

    # Writing.

    async def create(self, key: str, value: Value) -> Record:
        """See the contract."""
        check_size(value)
        place = self._keys.to_etcd(key)
        answer = await self._put(key, place, 0, value)
        revision = answer.header.revision
        if not answer.succeeded:
            raise KeyExists(key)
        return self._written(key, Record(key, revision, revision, value.at(revision)))

    async def update(self, key: str, expected: int, value: Value) -> Record:
        """See the contract."""
        check_size(value)
        place = self._keys.to_etcd(key)
        answer = await self._put(key, place, expected, value)
        revision = answer.header.revision
        if not answer.succeeded:
            raise self._refused(key, place, expected, answer)
        return self._written(key, Record(key, revision, expected, value.at(revision)))

    async def _put(self, key: str, place: bytes, expected: int, value: Value) -> Any:
        stored = self._values.stored(key, place, value)
        self._own[key] = (stored, value)
        try:
            put = messages.PutRequest(key=place, value=stored)
            if value.ttl:
                put.lease = await self._leases.lease(value.ttl)
            return await self._commit(place, expected, messages.RequestOp(request_put=put))
        finally:
            if (own := self._own.get(key)) is not None and own[1] is value:
                del self._own[key]

    async def _commit(self, place: bytes, expected: int, operation: Any) -> Any:
        """The answer to a write of a key whose last revision is ``expected``, when its event has come."""
        if self._closed:
            raise StorageClosed("the storage is closed")
        if not self._writable:
            raise StorageReadOnly(place.decode())
        present = messages.RequestOp(request_range=messages.RangeRequest(key=place))
        answer = await self._connection.write(
            messages.TxnRequest(
                compare=[messages.compared(place, mod=expected)], success=[operation], failure=[present]
            )
        )
        # A refusal too is answered when what it is about was seen: who tries again starts from that.
        await self._reach(answer.header.revision)
        return answer

    def _written(self, key: str, made: Record) -> Record:
        """The record of a write: that of its event, where nobody has written since."""
        record = self._records.get(key)
        return record if record is not None and record.revision == made.revision else made

    def _refused(self, key: str, place: bytes, expected: int, answer: Any) -> StorageError:
        found = answer.responses[0].response_range.kvs
        if not found:
            return KeyNotFound(key)
        return RevisionConflict(expected, self.record(key, found[0]))

    async def delete(self, key: str, expected: int, last: Value) -> Record:
        """See the contract."""
        place = self._keys.to_etcd(key)
        before = self._records.get(key)
        deletion = messages.RequestOp(request_delete_range=messages.DeleteRangeRequest(key=place))
        answer = await self._commit(place, expected, deletion)
        if not answer.succeeded:
            raise self._refused(key, place, expected, answer)
        created = before.created if before is not None else expected
        revision = answer.header.revision
        return Record(key, revision, created, last.at(revision))

    # Watching.

    async def watch(self, prefix: str, after: int, sink: Sink, reset: Reset | None = None) -> Watch:
        """See the contract."""
        while after < self._revision:
            past, after = await self.events(prefix, after, 1 << 30)
            if past:
                sink(past)
        return self._subscribers.add(prefix, max(after, self._revision), sink, reset)

    async def events(self, prefix: str, after: int, limit: int) -> tuple[Sequence[Event], int]:
        """See the contract."""
        if after < self._compacted:
            raise Compacted(after, self._compacted)
        until = self._revision
        if after >= until:
            return [], until
        events = await self._past.events(prefix, after, until, self._event_revision)
        if len(events) > limit:
            events = events[:limit]
        return events, events[-1].revision if len(events) == limit else until

    def record(self, key: str, kv: Any) -> Record:
        """The record of a key and value of etcd. Raises NotAnObject."""
        revision = kv.mod_revision
        own = self._own.get(key)
        if own is not None and own[0] == kv.value:
            return Record(key, revision, kv.create_revision, own[1].at(revision))
        value = self._values.served(key, kv.key, kv.value, revision)
        return Record(key, revision, kv.create_revision, value)

    def note_compacted(self, revision: int) -> None:
        """States before ``revision`` are no longer kept."""
        self._compacted = max(self._compacted, revision)

    def _take(self, raw: Sequence[Any]) -> None:
        events: list[Event] = []
        for one in raw:
            kv = one.kv
            if kv.mod_revision <= self._revision and not events:
                continue  # seen before the stream broke
            key = self._keys.from_etcd(kv.key)
            self._event_revision = kv.mod_revision
            if key is not None and (event := self._event(key, one)) is not None:
                events.append(event)
        self._publish(events, max(self._revision, raw[-1].kv.mod_revision))

    def _event(self, key: str, one: Any) -> Event | None:
        """The event of a change, applied to the records; None for one that shows nothing."""
        kv = one.kv
        previous = self._records.get(key)
        if one.type == messages.DELETE:
            self._unread.pop(bytes(kv.key), None)
            if previous is None:
                return None
            del self._records[key]
            self._sorted = None
            return Event(deleted_record(previous, kv.mod_revision), previous, deleted=True)
        try:
            record = self.record(key, kv)
        except StorageError as fault:
            log.warning("a value cannot be read", extra={"key": key, "reason": str(fault)})
            self._unread[bytes(kv.key)] = str(fault)
            return None
        if previous is None:
            self._sorted = None
        self._records[key] = record
        return Event(record, previous)

    def _publish(self, events: Sequence[Event], revision: int) -> None:
        self._revision = revision
        if events:
            self._subscribers.publish(events)
        self._advance(revision)

    def _advance(self, revision: int) -> None:
        """All events up to ``revision`` have come."""
        self._revision = max(self._revision, revision)
        while self._waiting and self._waiting[0][0] <= self._revision:
            waiter = heapq.heappop(self._waiting)[3]
            if not waiter.done():
                waiter.set_result(None)

    # The state as a whole.

    async def _load(self) -> None:
        """Reads the present state; nothing is published."""
        records, revision, unread = await self._past.state()
        self._records, self._unread = records, unread
        self._revision = revision
        self._sorted = None

    async def _begin_again(self, compacted: int) -> None:
        """The events past what was seen are compacted: reads the state and publishes what differs."""
        log.warning("events were compacted before they came; the state is read again")
        before = self._records
        await self._load()
        self.note_compacted(compacted)
        self._event_revision = 0
        self._subscribers.reset()
        events = [
            Event(record, before.get(key))
            for key, record in self._records.items()
            if key not in before or before[key].revision != record.revision
        ]
        events.sort(key=lambda event: event.revision)
        events += [
            Event(deleted_record(record, self._revision), record, deleted=True)
            for key, record in before.items()
            if key not in self._records
        ]
        self._publish(events, self._revision)

    async def take_turn(self, revision: int) -> bool:
        """See the contract."""
        if not self._writable:
            return False
        mark = messages.PutRequest(key=COMPACTION_KEY, value=b"%d" % revision)
        present = messages.RequestOp(request_range=messages.RangeRequest(key=COMPACTION_KEY))
        turn = messages.Compare(
            result=messages.EQUAL, target=messages.VERSION, key=COMPACTION_KEY, version=self._turn
        )
        answer = await self._connection.write(
            messages.TxnRequest(
                compare=[turn], success=[messages.RequestOp(request_put=mark)], failure=[present]
            )
        )
        if answer.succeeded:
            self._turn += 1
            return True
        for kv in answer.responses[0].response_range.kvs:
            self._turn = kv.version
            if kv.value.isdigit():
                self.note_compacted(min(int(kv.value), self._revision))
        return False

    async def compact(self, revision: int) -> None:
        """See the contract."""
        if revision > self._revision:
            await self.catch_up()
        if revision > self._revision:
            raise FutureRevision(revision, self._revision)
        if revision <= self._compacted:
            return
        try:
            await self._connection.read(messages.COMPACT, messages.CompactionRequest(revision=revision))
        except EtcdRefusal as refusal:
            if "compacted" not in refusal.details:
                raise
        self.note_compacted(revision)

    async def _probe(self) -> None:
        """Keeps knowing whether etcd answers, and what its members say."""
        looked = time.monotonic()
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            began = time.monotonic()
            with contextlib.suppress(StorageError):
                await self.catch_up()
                self._fresh = began
            if time.monotonic() - looked > MEMBERS_SECONDS:
                looked = time.monotonic()
                await self._look_at_members()

    async def _look_at_members(self) -> None:
        endpoints = self._connection.options.endpoints
        answers = await asyncio.gather(
            *(self._connection.ask(messages.STATUS, messages.StatusRequest(), one) for one in endpoints),
            return_exceptions=True,
        )
        troubles: list[str] = []
        exact = True
        for endpoint, answer in zip(endpoints, answers, strict=True):
            if isinstance(answer, BaseException):
                exact = False  # it may be of any release
                if endpoint not in self._silent:
                    log.warning(
                        "a member does not answer", extra={"endpoint": endpoint, "reason": str(answer)}
                    )
                self._silent.add(endpoint)
                continue
            if endpoint in self._silent:
                log.warning("a member answers again", extra={"endpoint": endpoint})
                self._silent.discard(endpoint)
            exact = exact and reports_progress_in_order(answer.version)
            troubles += [f"etcd: {text}" for text in answer.errors if "NOSPACE" in text or "CORRUPT" in text]
        self._exact_progress = exact
        self._members = troubles[0] if troubles else ""

    async def save(self, file: BinaryIO) -> int:
        """Writes a snapshot of the whole etcd, with its SHA-256 at the end as etcd sends it; how many bytes. Raises
        StorageUnreachable."""
        size = 0
        try:
            async for piece in self._connection.snapshot():
                file.write(piece.blob)
                size += len(piece.blob)
        except grpc.aio.AioRpcError as fault:
            raise StorageUnreachable(f"the snapshot broke off: {fault.details()}") from None
        return size

    async def close(self) -> None:
        """See the contract."""
        if self._closed:
            return
        self._closed = True
        if self._follower is not None:
            await self._follower.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._asking is not None:
            await asyncio.gather(self._asking, return_exceptions=True)
        if self._pressing is not None:
            self._pressing.cancel()
            await asyncio.gather(self._pressing, return_exceptions=True)
        self._give_up(time.monotonic() + 1)
        await self._connection.close()


def reports_progress_in_order(version: str) -> bool:
    """Whether a release's progress notifications never overtake events (etcd issue 15220)."""
    numbers = [int(text) for text in version.split("-")[0].split(".") if text.isdigit()]
    if len(numbers) < 3:
        return False
    if numbers[:2] == [3, 4]:
        return numbers[2] >= 25
    if numbers[:2] == [3, 5]:
        return numbers[2] >= 8
    return numbers[:2] > [3, 5]


def deleted_record(previous: Record, revision: int) -> Record:
    """What a deletion shows: the object as it was stored, at the revision of the deletion."""
    try:
        value = at_other_revision(previous.value, revision)
    except NotAnObject:
        value = previous.value
    return Record(previous.key, revision, previous.created, value)
