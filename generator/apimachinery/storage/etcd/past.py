"""What etcd is asked for: the whole present state, states of before, and events of before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.connection import ATTEMPT_SECONDS, READ_SECONDS, EtcdConnection, EtcdRefusal
from apimachinery.storage.etcd.keys import Keys, key_range
from apimachinery.storage.etcd.rpc import MessageStream, RpcFailed
from apimachinery.storage.interface import (
    Compacted,
    Event,
    FutureRevision,
    Record,
    RecordPage,
    StorageError,
    StorageUnreachable,
)
from apimachinery.storage.objects import NotAnObject, at_other_revision
from apimachinery.storage.sealing import NotOpened

PAGE_KEYS = 500


class Reader(Protocol):
    """What the driver knows."""

    @property
    def writable(self) -> bool:
        """Whether it may write."""

    @property
    def revision(self) -> int:
        """How far it has seen."""

    @property
    def compacted(self) -> int:
        """The oldest revision that is known to be readable."""

    def record(self, key: str, kv: Any) -> Record:
        """The record of a key and value. Raises StorageError."""

    def note_compacted(self, revision: int) -> None:
        """States before ``revision`` are no longer kept."""

    async def make_event(self) -> None:
        """Writes a key that is no object's."""


class Past:
    """Reads of etcd below a prefix."""

    def __init__(self, connection: EtcdConnection, keys: Keys, reader: Reader) -> None:
        self._connection = connection
        self._keys = keys
        self._reader = reader

    async def state(self) -> tuple[dict[str, Record], int, dict[bytes, str]]:
        """All records now, their revision, and the keys whose values cannot be read, with the reasons."""
        while True:
            records: dict[str, Record] = {}
            unread: dict[bytes, str] = {}
            revision = 0
            start = self._keys.start
            try:
                while True:
                    answer = await self._range(start, self._keys.end, revision, PAGE_KEYS)
                    revision = revision or answer.header.revision
                    self._add(answer.kvs, records, unread)
                    if not answer.more:
                        return records, revision, unread
                    # The smallest key after the last one.
                    start = answer.kvs[-1].key + b"\0"
            except Compacted:
                continue  # it took longer than the log is kept; again

    def _add(self, kvs: Sequence[Any], records: dict[str, Record], unread: dict[bytes, str]) -> None:
        for kv in kvs:
            key = self._keys.from_etcd(kv.key)
            if key is None:
                continue
            try:
                records[key] = self._reader.record(key, kv)
            except StorageError as fault:
                # Named and left out: one bad value must not stop the start.
                unread[bytes(kv.key)] = str(fault)

    async def record(self, key: str, revision: int) -> Record | None:
        """The record of a key at a revision. Raises Compacted."""
        answer = await self._range(self._keys.to_etcd(key), b"", revision, 0)
        return self._reader.record(key, answer.kvs[0]) if answer.kvs else None

    async def page(self, prefix: str, revision: int, after: str, limit: int) -> RecordPage:
        """Records at a revision. Raises Compacted."""
        if not prefix:  # resources are kept in another order than theirs
            records = await self._all(self._keys.start, self._keys.end, revision)
            rest = [record for record in records if record.key > after]
            shown = rest[:limit] if limit else rest
            return RecordPage(shown, revision, len(rest) - len(shown))
        start, end = key_range(self._keys.to_etcd(prefix))
        if after > prefix:
            # Behind the last key of the page before.
            start = self._keys.to_etcd(after) + b"\0"
        if not limit:
            return RecordPage(await self._all(start, end, revision), revision)
        answer = await self._range(start, end, revision, limit)
        found: dict[str, Record] = {}
        self._add(answer.kvs, found, {})
        return RecordPage(list(found.values()), revision, answer.count - len(answer.kvs))

    async def _all(self, start: bytes, end: bytes, revision: int) -> list[Record]:
        found: dict[str, Record] = {}
        while True:
            answer = await self._range(start, end, revision, PAGE_KEYS)
            self._add(answer.kvs, found, {})
            if not answer.more:
                return [found[key] for key in sorted(found)]
            start = answer.kvs[-1].key + b"\0"

    async def _range(self, start: bytes, end: bytes, revision: int, limit: int) -> Any:
        request = messages.RangeRequest(key=start, range_end=end, revision=revision, limit=limit)
        try:
            return await self._connection.read(messages.RANGE, request)
        except EtcdRefusal as refusal:
            if "has been compacted" in refusal.details:
                self._reader.note_compacted(revision + 1)
                raise Compacted(revision, self._reader.compacted) from None
            if "future revision" in refusal.details:
                raise FutureRevision(revision, self._reader.revision) from None
            raise

    async def events(self, prefix: str, after: int, until: int, last: int) -> list[Event]:
        """The events past ``after`` up to ``until``, of keys with the prefix; ``last`` is the revision of the newest
        event there was, 0 where that is not known. Raises Compacted, StorageUnreachable."""
        if last and last <= after:
            return []
        try:
            async with asyncio.timeout(READ_SECONDS):
                stream = await self._connection.watch(self._connection.endpoint)
                try:
                    return await self._replay(stream, prefix, after, until, last)
                finally:
                    stream.cancel()
        except TimeoutError:
            raise StorageUnreachable("etcd did not send the events of before in time") from None
        except RpcFailed as fault:
            raise StorageUnreachable(f"etcd did not send the events of before: {fault.details}") from None

    async def _replay(
        self, stream: MessageStream, prefix: str, after: int, until: int, last: int
    ) -> list[Event]:
        request = messages.WatchCreateRequest(
            key=self._keys.start,
            range_end=self._keys.end,
            start_revision=after + 1,
            prev_kv=True,
            fragment=True,
        )
        events: list[Event] = []
        stream.write(messages.WatchRequest(create_request=request))
        if not last:
            # Whether there are events at all is not known: one that is made now is behind all of them. Who may
            # not write asks for progress, which may overtake the last of them in old releases.
            await self._reader.make_event()
            stream.write(messages.WatchRequest(progress_request=messages.WatchProgressRequest()))
        while True:
            response = await asyncio.wait_for(stream.read(), ATTEMPT_SECONDS)
            if response is None or response.canceled:
                compacted = 0 if response is None else response.compact_revision
                if compacted:
                    self._reader.note_compacted(compacted)
                    raise Compacted(after, self._reader.compacted)
                raise StorageUnreachable("etcd ended a watch")
            for one in response.events:
                if one.kv.mod_revision > until:
                    return events
                self._append(events, prefix, one)
            reached = response.events[-1].kv.mod_revision if response.events else 0
            if last and reached >= min(last, until):
                return events
            if not self._reader.writable and not response.events and not response.created:
                return events

    def _append(self, events: list[Event], prefix: str, one: Any) -> None:
        kv = one.kv
        key = self._keys.from_etcd(kv.key)
        if key is None or not key.startswith(prefix):
            return
        try:
            self._append_event(events, key, one)
        except (NotAnObject, NotOpened):
            # The key of encryption is gone, and that past with it: who wants to go on from there has to begin anew.
            raise Compacted(kv.mod_revision, kv.mod_revision + 1) from None

    def _append_event(self, events: list[Event], key: str, one: Any) -> None:
        kv, previous = one.kv, None
        if one.HasField("prev_kv") and one.prev_kv.mod_revision:
            previous = self._reader.record(key, one.prev_kv)
        if one.type != messages.DELETE:
            if previous is None and kv.create_revision != kv.mod_revision:
                self._reader.note_compacted(kv.mod_revision)
                raise Compacted(kv.mod_revision - 1, self._reader.compacted)
            events.append(Event(self._reader.record(key, kv), previous))
        elif previous is not None:
            try:
                value = at_other_revision(previous.value, kv.mod_revision)
            except NotAnObject:
                value = previous.value
            gone = Record(key, kv.mod_revision, previous.created, value)
            events.append(Event(gone, previous, deleted=True))


__all__ = ["PAGE_KEYS", "Past"]
