"""Writes of objects: each is one transaction of etcd, that compares the key's last revision.

Theory. A write returns when its event has come back by the stream, so whoever reads from memory then sees it. A
refusal too is answered when what it is about was seen: who tries again starts from that. The answer to a refused
transaction carries what is stored, so a conflict costs no further question.
"""

from __future__ import annotations

from typing import Any

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.connection import EtcdConnection
from apimachinery.storage.etcd.freshness import Freshness
from apimachinery.storage.etcd.keys import Keys
from apimachinery.storage.etcd.leases import Leases
from apimachinery.storage.etcd.present import Present
from apimachinery.storage.etcd.values import EtcdValues
from apimachinery.storage.interface import (
    KeyExists,
    KeyNotFound,
    Record,
    RevisionConflict,
    StorageClosed,
    StorageError,
    StorageReadOnly,
    UnreadableRecord,
    Value,
    check_size,
)


class EtcdWrites:
    """Creates, updates and deletes; see ``interface.Storage``."""

    def __init__(
        self,
        connection: EtcdConnection,
        keys: Keys,
        values: EtcdValues,
        present: Present,
        freshness: Freshness,
        writable: bool,
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._values = values
        self._present = present
        self._freshness = freshness
        self._writable = writable
        self._leases = Leases(connection)

    async def create(self, key: str, value: Value) -> Record:
        check_size(value)
        place = self._keys.to_etcd(key)
        answer = await self._put(key, place, 0, value)
        revision = answer.header.revision
        if not answer.succeeded:
            raise KeyExists(key)
        return self._written(key, Record(key, revision, revision, value.at(revision)))

    async def update(self, key: str, expected: int, value: Value) -> Record:
        check_size(value)
        place = self._keys.to_etcd(key)
        answer = await self._put(key, place, expected, value)
        revision = answer.header.revision
        if not answer.succeeded:
            raise self._refused(key, expected, answer)
        return self._written(key, Record(key, revision, expected, value.at(revision)))

    async def delete(self, key: str, expected: int, last: Value) -> Record:
        place = self._keys.to_etcd(key)
        before = self._present.get(key)
        deletion = messages.RequestOp(request_delete_range=messages.DeleteRangeRequest(key=place))
        answer = await self._commit(place, expected, deletion)
        if not answer.succeeded:
            raise self._refused(key, expected, answer)
        created = before.created if before is not None else expected
        revision = answer.header.revision
        return Record(key, revision, created, last.at(revision))

    async def _put(self, key: str, place: bytes, expected: int, value: Value) -> Any:
        stored = self._values.stored(key, place, value)
        self._present.expect(key, stored, value)
        try:
            put = messages.PutRequest(key=place, value=stored)
            if value.ttl:
                put.lease = await self._leases.lease(value.ttl)
            return await self._commit(place, expected, messages.RequestOp(request_put=put))
        finally:
            self._present.expect_no_more(key, value)

    async def _commit(self, place: bytes, expected: int, operation: Any) -> Any:
        """The answer to a write of a key whose last revision is ``expected``, when its event has come."""
        if self._freshness.closed:
            raise StorageClosed("the storage is closed")
        if not self._writable:
            raise StorageReadOnly(place.decode())
        present = messages.RequestOp(request_range=messages.RangeRequest(key=place))
        answer = await self._connection.write(
            messages.TxnRequest(
                compare=[messages.compared(place, mod=expected)], success=[operation], failure=[present]
            )
        )
        await self._freshness.reach(answer.header.revision)
        return answer

    def _written(self, key: str, made: Record) -> Record:
        """The record of a write: that of its event, where nobody has written since."""
        record = self._present.get(key)
        return record if record is not None and record.revision == made.revision else made

    def _refused(self, key: str, expected: int, answer: Any) -> StorageError:
        found = answer.responses[0].response_range.kvs
        if not found:
            return KeyNotFound(key)
        try:
            return RevisionConflict(expected, self._present.record(key, found[0]))
        except StorageError as fault:
            return UnreadableRecord(key, str(fault))
