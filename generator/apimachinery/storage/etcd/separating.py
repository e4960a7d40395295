"""Custom objects that an older version wrote among built-in ones get keys of their own, as in SQLite.

A definition that is called as a built-in resource shared its place. What was written through one begins with its
apiVersion, as custom objects do and built-in ones do not, in our JSON and in kube-apiserver's. Each object moves in one
transaction that compares both keys: who is ended in the middle has moved some, and the next start moves the rest; what
somebody else writes meanwhile stays where it is until then.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.connection import EtcdConnection
from apimachinery.storage.etcd.keys import Keys, key_range
from apimachinery.storage.etcd.values import EtcdValues
from apimachinery.storage.interface import StorageError
from apimachinery.storage.layout import custom_prefix, is_kubernetes, package_prefix, written_as_custom

log = logging.getLogger("kubewright.storage")

DEFINITIONS = package_prefix("apiextensions.k8s.io", "customresourcedefinitions")
PAGE_KEYS = 500


async def separate_custom(
    connection: EtcdConnection, keys: Keys, values: EtcdValues, known: Iterable[str]
) -> int:
    """Moves what was written through definitions that are called as built-in resources; ``known`` are all keys there
    are. How many there were. Raises StorageUnreachable, EtcdRefusal."""
    moved = 0
    for key in known:
        if not key.startswith(DEFINITIONS):
            continue
        plural, _, group = key.removeprefix(DEFINITIONS).partition(".")
        if is_kubernetes(group, plural):
            moving = _Moving(connection, keys, values, group, plural)
            moved += await moving.move()
    if moved:
        log.warning("custom objects were moved from the places of built-in ones", extra={"objects": moved})
    return moved


class _Moving:
    """The objects of one resource."""

    def __init__(
        self, connection: EtcdConnection, keys: Keys, values: EtcdValues, group: str, plural: str
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._values = values
        self._from, self._to = package_prefix(group, plural), custom_prefix(group, plural)

    async def move(self) -> int:
        start, end = key_range(self._keys.to_etcd(self._from))
        moved = 0
        while True:
            answer = await self._connection.read(
                messages.RANGE, messages.RangeRequest(key=start, range_end=end, limit=PAGE_KEYS)
            )
            for kv in answer.kvs:
                moved += await self._move_one(bytes(kv.key), bytes(kv.value), kv.mod_revision)
            if not answer.more:
                return moved
            start = answer.kvs[-1].key + b"\0"

    async def _move_one(self, place: bytes, stored: bytes, revision: int) -> bool:
        key = self._keys.from_etcd(place)
        if key is None:
            return False
        own = self._to + key.removeprefix(self._from)
        target = self._keys.to_etcd(own)
        try:
            plain = self._values.plain(key, place, stored)
        except StorageError:  # without its key; named with all that cannot be read
            return False
        if not written_as_custom(plain):
            return False
        again = self._values.sealed(own, target, plain)
        put = messages.RequestOp(request_put=messages.PutRequest(key=target, value=again))
        drop = messages.RequestOp(request_delete_range=messages.DeleteRangeRequest(key=place))
        answer = await self._connection.write(
            messages.TxnRequest(
                compare=[messages.compared(place, mod=revision), messages.compared(target, mod=0)],
                success=[put, drop],
            )
        )
        return bool(answer.succeeded)
