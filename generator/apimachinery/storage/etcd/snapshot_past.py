"""What a snapshot of an etcd has of the past: the revisions that etcd had not compacted yet, a few minutes as a rule.

etcd notes neither times nor users: of those an object's own managedFields say what they say.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from apimachinery.storage.etcd.keys import Keys
from apimachinery.storage.etcd.values import EtcdValues
from apimachinery.storage.interface import Record, StorageError
from apimachinery.storage.kept import PastRange, PastVersion
from apimachinery.storage.objects import at_other_revision

MOST_BYTES = 256 << 20
"""Of values of before; the oldest are left out."""


@dataclass(frozen=True, slots=True)
class _Revision:
    """A key and value of before; of a deletion ``kv`` is what was deleted."""

    revision: int
    kv: Any
    deleted: bool


class Revisions:
    """Collects what the file has, oldest first."""

    def __init__(self) -> None:
        self._kept: deque[_Revision] = deque()
        self._bytes = 0

    def add(self, revision: int, kv: Any, *, deleted: bool) -> None:
        """Adds a revision; of what is too much the oldest go."""
        self._kept.append(_Revision(revision, kv, deleted))
        self._bytes += len(kv.value)
        while self._bytes > MOST_BYTES:
            self._bytes -= len(self._kept.popleft().kv.value)

    def by_key(self, keys: Keys) -> dict[str, list[_Revision]]:
        """The revisions of each key below the prefix, oldest first."""
        found: dict[str, list[_Revision]] = {}
        for each in self._kept:
            place = each.kv.key
            key = keys.from_etcd(place) if keys.start <= place < keys.end else None
            if key is not None:
                found.setdefault(key, []).append(each)
        return found


class SnapshotPast:
    """See ``kept.KeepsVersions``."""

    def __init__(self, revisions: Revisions, keys: Keys, values: EtcdValues) -> None:
        self._revisions = revisions.by_key(keys)
        self._values = values

    async def versions(
        self, asked: PastRange, wanted: Callable[[Record], bool]
    ) -> tuple[Sequence[PastVersion], bool]:
        return await asyncio.to_thread(self._versions, asked, wanted)

    def _versions(
        self, asked: PastRange, wanted: Callable[[Record], bool]
    ) -> tuple[Sequence[PastVersion], bool]:
        found: list[PastVersion] = []
        size = 0
        for version in self._versions_in(asked):
            if not wanted(version.record):
                continue
            if len(found) == asked.limit or size > asked.most_bytes:
                return found, True
            found.append(version)
            size += len(version.record.value)
        return found, False

    def _versions_in(self, asked: PastRange) -> Iterator[PastVersion]:
        """The versions of a range that can be read, newest first."""
        rows = [
            (each.revision, key, each)
            for key, revisions in self._revisions.items()
            if asked.low <= key < asked.high
            for each in revisions
            if each.revision < asked.before
        ]
        for revision, key, each in sorted(rows, key=lambda row: row[0], reverse=True):
            kv = each.kv
            try:
                value = self._values.served(key, kv.key, kv.value, kv.mod_revision)
                if each.deleted:
                    value = at_other_revision(value, revision)
            except StorageError:  # reported with the present state
                continue
            yield PastVersion(Record(key, revision, kv.create_revision, value), each.deleted, 0.0, "")
