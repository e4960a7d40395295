"""A snapshot of an etcd, or a member's database of which nobody is writing: its newest state, served read-only, and
what it has of the past (``snapshot_past``).

Rules (etcd's mvcc): the bucket ``key`` has every revision that is kept, by number: 8 bytes of revision, ``_``, 8 bytes
of the place within its transaction, and a ``t`` behind where it is a deletion; the value is a KeyValue.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.bolt import BoltError, BoltFile
from apimachinery.storage.etcd.keys import Keys
from apimachinery.storage.etcd.snapshot_past import Revisions, SnapshotPast
from apimachinery.storage.etcd.values import EtcdValues, log_unread
from apimachinery.storage.interface import (
    Compacted,
    Event,
    FutureRevision,
    Record,
    RecordPage,
    Reset,
    RunningWatch,
    Sink,
    StorageError,
    StorageReadOnly,
    Value,
)
from apimachinery.storage.subscribers import Subscribers

_REVISION_BYTES = 17


class SnapshotStorage:
    """See ``interface.Storage``: what it has never changes. Raises BoltError for a file that cannot be read."""

    def __init__(self, path: Path, prefix: str, values: EtcdValues) -> None:
        keys = Keys(prefix)
        revisions = Revisions()
        newest, living = _read(path, revisions)
        self._revision = max(newest, 1)
        self.past = SnapshotPast(revisions, keys, values)
        """See ``kept``."""
        self._records: dict[str, Record] = {}
        self.unread: dict[bytes, str] = {}
        for place, kv in living.items():
            key = keys.from_etcd(place) if keys.start <= place < keys.end else None
            if key is None:
                continue
            try:
                value = values.served(key, place, kv.value, kv.mod_revision)
            except StorageError as fault:
                self.unread[place] = str(fault)
                continue
            self._records[key] = Record(key, kv.mod_revision, kv.create_revision, value)
        log_unread(self.unread)
        self._keys = sorted(self._records)
        self._subscribers = Subscribers()
        self._closed = False

    @property
    def shared(self) -> bool:
        """Nobody writes."""
        return False

    @property
    def writable(self) -> bool:
        """Never."""
        return False

    @property
    def unreadable(self) -> dict[str, str]:
        """Nothing but ``unread``, which only those who look after snapshots want to know."""
        return {}

    @property
    def revision(self) -> int:
        """The snapshot's."""
        return self._revision

    @property
    def compacted(self) -> int:
        """The snapshot's: of what was before only some is kept."""
        return self._revision

    @property
    def failed(self) -> str:
        """Empty until it is closed."""
        return "closed" if self._closed else ""

    @property
    def trouble(self) -> str:
        return self.failed

    async def catch_up(self) -> None:
        """Returns at once: nothing is behind."""

    async def get(self, key: str, *, at: int = 0) -> Record | None:
        self._check(at)
        return self._records.get(key)

    async def list(self, prefix: str, *, at: int = 0, after: str = "", limit: int = 0) -> RecordPage:
        self._check(at)
        keys = self._keys
        low = max(bisect_left(keys, prefix), bisect_right(keys, after))
        end = bisect_left(keys, prefix + "\U0010ffff", low) if prefix else len(keys)
        high = min(low + limit, end) if limit else end
        return RecordPage([self._records[key] for key in keys[low:high]], self._revision, end - high)

    def _check(self, at: int) -> None:
        if at > self._revision:
            raise FutureRevision(at, self._revision)
        if at and at < self._revision:
            raise Compacted(at, self._revision)

    async def create(self, key: str, value: Value) -> Record:
        """Refused."""
        raise StorageReadOnly(key)

    async def update(self, key: str, expected: int, value: Value) -> Record:
        """Refused."""
        raise StorageReadOnly(key)

    async def delete(self, key: str, expected: int, last: Value, *, marked: bool = False) -> Record:
        """Refused."""
        raise StorageReadOnly(key)

    async def watch(self, prefix: str, after: int, sink: Sink, reset: Reset | None = None) -> RunningWatch:
        """See the contract: a watch in which nothing happens."""
        await self.events(prefix, after, 0)
        return self._subscribers.add(prefix, after, sink, reset)

    async def events(self, prefix: str, after: int, limit: int) -> tuple[Sequence[Event], int]:
        if after < self._revision:
            raise Compacted(after, self._revision)
        return [], self._revision

    async def take_turn(self, revision: int) -> bool:
        """There is nothing to compact."""
        return False

    async def compact(self, revision: int) -> None:
        """Refused where it would change anything."""
        if revision > self._revision:
            raise FutureRevision(revision, self._revision)

    async def close(self) -> None:
        self._closed = True


def _read(path: Path, revisions: Revisions) -> tuple[int, dict[bytes, Any]]:
    """The newest revision, and the living keys with what they hold; every revision goes to ``revisions``."""
    file = BoltFile(path)
    newest = 0
    living: dict[bytes, Any] = {}
    try:
        for number, data in file.bucket(b"key"):
            if len(number) not in (_REVISION_BYTES, _REVISION_BYTES + 1):
                raise BoltError(f"{path}: a revision of {len(number)} bytes")
            newest = max(newest, int.from_bytes(number[:8], "big"))
            try:
                kv = messages.KeyValue.FromString(data)
            except DecodeError:
                raise BoltError(f"{path}: revision {newest} holds no key and value") from None
            if len(number) > _REVISION_BYTES:
                gone = living.pop(kv.key, None)
                if gone is not None:
                    revisions.add(newest, gone, deleted=True)
            else:
                living[kv.key] = kv
                revisions.add(newest, kv, deleted=False)
    finally:
        file.close()
    return newest, living
