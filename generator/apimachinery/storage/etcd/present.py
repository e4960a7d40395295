"""The present records, in memory: what the stream of events has made of the state that was read first.

Theory. An event of etcd carries the value as it is stored, which has to be decrypted and decoded before it is served.
The event of a write of this server's own is known by its bytes: its value is the one that was written, and costs
nothing. A value that cannot be read leaves its key out and is named in ``unread``; it stops nothing else.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from typing import Any

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.values import EtcdValues
from apimachinery.storage.interface import Event, Record, RecordPage, StorageError, Value
from apimachinery.storage.objects import NotAnObject, at_other_revision

log = logging.getLogger("kubewright.storage")


class Present:
    """Records by key, at the revision that the stream has come to."""

    def __init__(self, values: EtcdValues) -> None:
        self.unread: dict[bytes, str] = {}  # keys of etcd, and why their values cannot be read
        self.named: dict[str, str] = {}  # the same by key
        self._values = values
        self._records: dict[str, Record] = {}
        self._sorted: list[str] | None = None
        self._own: dict[str, tuple[bytes, Value]] = {}

    def replace(
        self, records: dict[str, Record], unread: dict[bytes, str], named: dict[str, str]
    ) -> dict[str, Record]:
        """Begins with another state; the records of before."""
        before, self._records = self._records, records
        self.unread, self.named = unread, named
        self._sorted = None
        return before

    def get(self, key: str) -> Record | None:
        """The record of a key."""
        return self._records.get(key)

    def all_keys(self) -> list[str]:
        """The keys of all records."""
        return list(self._records)

    def page(self, prefix: str, revision: int, after: str, limit: int) -> RecordPage:
        """The records whose keys start with ``prefix`` and are greater than ``after``, ``limit`` at most where it is
        not 0; ``revision`` is theirs."""
        if self._sorted is None:
            self._sorted = sorted(self._records)
        keys = self._sorted
        low = max(bisect_left(keys, prefix), bisect_right(keys, after))
        end = bisect_left(keys, prefix + "\U0010ffff", low) if prefix else len(keys)
        high = min(low + limit, end) if limit else end
        return RecordPage([self._records[key] for key in keys[low:high]], revision, end - high)

    def expect(self, key: str, stored: bytes, value: Value) -> None:
        """Notes that a write of this server is on its way: ``stored`` is what etcd is given for ``value``."""
        self._own[key] = (stored, value)

    def expect_no_more(self, key: str, value: Value) -> None:
        """Forgets the write of ``value``, unless another one of the same key has begun since."""
        if (own := self._own.get(key)) is not None and own[1] is value:
            del self._own[key]

    def record(self, key: str, kv: Any) -> Record:
        """The record of a key and value of etcd. Raises NotAnObject."""
        revision = kv.mod_revision
        own = self._own.get(key)
        if own is not None and own[0] == kv.value:
            return Record(key, revision, kv.create_revision, own[1].at(revision))
        value = self._values.served(key, kv.key, kv.value, revision)
        stale = self._values.is_stale(key, kv.value)
        return Record(key, revision, kv.create_revision, value, stale=stale, foreign=True)

    def apply(self, key: str, one: Any) -> Event | None:
        """The event of a change that etcd reports, applied; None for one that shows nothing."""
        kv = one.kv
        previous = self._records.get(key)
        if bytes(kv.key) in self.unread:
            del self.unread[bytes(kv.key)], self.named[key]
        if one.type == messages.DELETE:
            if previous is None:
                return None
            del self._records[key]
            self._sorted = None
            return Event(deleted_record(previous, kv.mod_revision), previous, deleted=True)
        try:
            record = self.record(key, kv)
        except StorageError as fault:
            log.warning("a value cannot be read", extra={"key": key, "reason": str(fault)})
            self.named[key] = str(fault)
            self.unread[bytes(kv.key)] = str(fault)
            return None
        if previous is None:
            self._sorted = None
        self._records[key] = record
        return Event(record, previous)

    def differences(self, before: dict[str, Record], revision: int) -> list[Event]:
        """One event for each key that differs from ``before``; deletions, which show ``revision``, last."""
        events = [
            Event(record, before.get(key))
            for key, record in self._records.items()
            if key not in before or before[key].revision != record.revision
        ]
        events.sort(key=lambda event: event.revision)
        events += [
            Event(deleted_record(record, revision), record, deleted=True)
            for key, record in before.items()
            if key not in self._records
        ]
        return events


def deleted_record(previous: Record, revision: int) -> Record:
    """What a deletion shows: the object as it was stored, at the revision of the deletion."""
    try:
        value = at_other_revision(previous.value, revision)
    except NotAnObject:
        value = previous.value
    return Record(previous.key, revision, previous.created, value)
