"""The storage contract: keys, bytes and revisions; nothing here knows a kind.

Theory. A store is a log. Every write appends one record and thereby takes the next *revision*, a number that
grows for the whole store; the state at revision R is what the log says up to R. From that follow all
the rest:

- **Optimistic concurrency.** A writer names the revision of the record it read (``expected``); the write
  happens only if that record is still the key's newest. No locks, no transactions over several keys.
- **One snapshot over pages.** ``list(at=R)`` answers the same forever, until R is compacted.
- **Watch.** ``watch(after=R)`` gives every record past R whose key has the prefix, each once, in the order of
  revisions, with no gap between what is replayed and what comes live.
- **Compaction.** ``compact(R)`` forgets the records that no state at or past R needs. Reading before R is
  ``Compacted`` from then on; the newest record of a living key is never forgotten.

An object's JSON carries its own revision (``metadata.resourceVersion``), yet the revision is known only when
the record is appended. So a writer hands over a ``Value``: the encoded object, cut where the number belongs.
The driver joins it once; the same bytes then serve every get, list and watch.

Keys are ``/GROUP/RESOURCE/[NAMESPACE/]NAME``, which ``layout`` makes, and order as their UTF-8 bytes do (etcd's order).

Everything is called on one event loop's thread. What waits is a coroutine; a driver hides its own threads.

Two kinds of driver keep this contract. One owns its log: this process alone writes, numbers the writes itself and hands
out their events as it commits. The other shares its log (``shared``) with other servers: the revision comes with the
commit, and events, those of its own writes too, come from a stream. For both:

- ``revision`` is how far *this process* has seen: every event up to it was handed to the watches.
- **Read your writes.** A write returns when it is durable and after every watch of this process has been handed its
  event, so who reads the watch cache after a write sees it. So does a refused write: what it was refused for was seen.
- **Consistent reads.** ``catch_up`` returns when this process has seen every write that anybody was acknowledged before
  the call. A driver that owns its log has nothing to wait for.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

REVISION_MARK = f"revision-{secrets.token_hex(16)}"
"""Stands for the revision in an object that is encoded for ``Value.cut``; no client can know it."""


class Value(msgspec.Struct, frozen=True, gc=False):
    """Bytes to store: ``head`` + the revision in decimals + ``tail``. ``ttl``: a driver
    of a shared log ends the key this many seconds after the write, or up to a minute later, unless it was written
    again; 0 for never. Who owns its log leaves that to whoever runs over it."""

    head: bytes
    tail: bytes
    ttl: int = 0

    @classmethod
    def cut(cls, encoded: bytes, ttl: int = 0) -> Value:
        """Cuts ``encoded`` at its one ``REVISION_MARK``. Raises ValueError where there is none."""
        head, mark, tail = encoded.partition(_MARK)
        if not mark:
            raise ValueError("the encoded object has no revision mark")
        return cls(head, tail, ttl)

    def at(self, revision: int) -> bytes:
        """The bytes as stored at ``revision``."""
        # One allocation for the whole value; adding the parts would make three.
        return b"%b%d%b" % (self.head, revision, self.tail)


_MARK = REVISION_MARK.encode()


class Record(msgspec.Struct, gc=False, eq=False):
    """A key's state since ``revision``: its bytes, and the revision at which the key came to be.

    There may be millions: the garbage collector does not look at them, so ``memo`` must not refer to its record.

    Nobody changes a record. ``memo`` is room for what readers derive from ``value`` and want to keep with it.
    ``stale``: it is stored under another key than it would be now, or plain, so a write that changes nothing is made.
    ``foreign``: it did not come from this process, and nobody has looked at it yet.
    """

    key: str
    revision: int
    created: int
    value: bytes
    memo: dict[Hashable, Any] | None = None
    stale: bool = False
    foreign: bool = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        mine = (self.key, self.revision, self.created, self.value)
        return mine == (other.key, other.revision, other.created, other.value)

    __hash__ = None  # type: ignore[assignment]


class Event(msgspec.Struct, gc=False):
    """One write, as a watch sees it. ``previous`` is the record before it, None for a creation.

    Of a deletion, ``record.value`` is the object's last content with the revision of the deletion.
    """

    record: Record
    previous: Record | None
    deleted: bool = False

    @property
    def revision(self) -> int:
        """The revision of the write."""
        return self.record.revision


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Some records of a list, by key, of the state at ``revision``; ``remaining`` is how many follow."""

    records: Sequence[Record]
    revision: int
    remaining: int = 0


class StorageError(Exception):
    """A refused operation; the subclasses say which."""


class KeyExists(StorageError):
    """``create`` of a key that lives."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} exists")
        self.key = key


class KeyNotFound(StorageError):
    """``update`` or ``delete`` of a key that does not live."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} does not exist")
        self.key = key


class RevisionConflict(StorageError):
    """``update`` or ``delete`` of a record that is no longer the newest; ``current`` is."""

    def __init__(self, expected: int, current: Record) -> None:
        super().__init__(f"{current.key} is at revision {current.revision}, not {expected}")
        self.expected = expected
        self.current = current


class Compacted(StorageError):
    """A read or watch before the oldest revision that is kept."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} is compacted; the oldest kept is {oldest}")
        self.revision = revision
        self.oldest = oldest


class FutureRevision(StorageError):
    """A read at a revision that is not yet written."""

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} is not yet written; the newest is {current}")
        self.revision = revision
        self.current = current


class StorageClosed(StorageError):
    """Any operation after ``close``, and a write that could not be made durable: its outcome is unknown."""


class StorageFull(StorageError):
    """A write that found no room; nothing was written. Deletions are still taken."""


class StorageBusy(StorageError):
    """A write that another program's lock kept out; nothing was written."""


class StorageUnreachable(StorageError):
    """No answer came in time. Of a write nothing is known: it may or may not be made."""


class StorageReadOnly(StorageError):
    """A write to a storage that is only read."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} cannot be written: the storage is read-only")


class UnreadableRecord(StorageError):
    """A read of a record that is there and cannot be served."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f'unable to read key "{key}": {reason}')
        self.key = key
        self.reason = reason


class ValueTooLarge(StorageError):
    """A value above ``VALUE_BYTES``."""


VALUE_BYTES = 3 << 19
"""What an object may have when stored: 1.5 MiB, etcd's limit for a request."""


def check_size(value: Value) -> None:
    """Raises ValueTooLarge for a value that is not stored."""
    size = len(value.head) + len(value.tail)
    if size > VALUE_BYTES:
        raise ValueTooLarge(f"{size} bytes, where {VALUE_BYTES} are stored at most")


Sink = Callable[[Sequence[Event]], None]
"""Takes events in the order of their revisions; must not raise, wait or write."""


Reset = Callable[[], None]
"""Says that events were compacted before they came; must not raise, wait or write."""


class RunningWatch(Protocol):
    """A running watch."""

    def close(self) -> None:
        """Ends it: the sink is not called again. Harmless when repeated."""


class Storage(Protocol):
    """What a driver does. All lists are by key; ``prefix`` may be empty for everything."""

    @property
    def shared(self) -> bool:
        """Whether others write too, so that a read that must see their writes has to ``catch_up`` first."""

    @property
    def writable(self) -> bool:
        """Whether it takes writes at all."""

    @property
    def revision(self) -> int:
        """How far this process has seen: all up to it is durable and handed to the watches; 1 in an empty store."""

    @property
    def compacted(self) -> int:
        """The oldest revision that can be read; a watch may start after it."""

    @property
    def failed(self) -> str:
        """Why nothing can be written any more; empty while all is well."""

    @property
    def trouble(self) -> str:
        """What keeps some writes from being made for now, or all of them for good; empty while all is well."""

    @property
    def unreadable(self) -> Mapping[str, str]:
        """The living keys whose values cannot be opened, and why: nothing shows them, no ``create`` replaces them."""

    async def catch_up(self) -> None:
        """Returns when ``revision`` is at least what anybody's write had been acknowledged at before the call. Raises
        StorageUnreachable."""

    async def get(self, key: str, *, at: int = 0) -> Record | None:
        """The record of ``key`` now, or at a revision. Raises Compacted, FutureRevision."""

    async def list(self, prefix: str, *, at: int = 0, after: str = "", limit: int = 0) -> RecordPage:
        """The records whose keys start with ``prefix`` and are greater than ``after``, now or at a revision;
        ``limit`` at most where it is not 0. Raises Compacted, FutureRevision."""

    async def create(self, key: str, value: Value) -> Record:
        """Appends the first record of ``key``. Raises KeyExists, ValueTooLarge, StorageFull, StorageBusy."""

    async def update(self, key: str, expected: int, value: Value) -> Record:
        """Appends the record after the one at ``expected``. Raises KeyNotFound, RevisionConflict, ValueTooLarge,
        StorageFull, StorageBusy."""

    async def delete(self, key: str, expected: int, last: Value, *, marked: bool = False) -> Record:
        """Ends ``key``; the answer shows ``last``. So does its DELETED event where the driver owns its log; in a shared
        one, which keeps no content of a deletion, it shows what was stored. ``marked``: ``last`` is stored before, by
        an update of its own; who owns the log makes both or none, with nothing between them. Raises KeyNotFound,
        RevisionConflict."""

    async def watch(self, prefix: str, after: int, sink: Sink, reset: Reset | None = None) -> RunningWatch:
        """Calls ``sink`` with every event past revision ``after``: those up to ``revision`` before this returns,
        the later ones as they come. ``after`` may lie in the future: then events up to it are left out.

        A process that was cut off from a shared log may find that events were compacted before they came. Then
        ``reset`` is called, and after it ``sink`` with one event for each key that differs: what lies between stays
        unknown.
        Raises Compacted."""

    async def events(self, prefix: str, after: int, limit: int) -> tuple[Sequence[Event], int]:
        """The first ``limit`` events at most past revision ``after`` whose key has the prefix, in order, and the
        revision up to which there are no others. Raises Compacted."""

    async def take_turn(self, revision: int) -> bool:
        """Whether this process is the one to compact up to ``revision`` now: of the servers over a shared log one
        a period is."""

    async def compact(self, revision: int) -> None:
        """Forgets what only states before ``revision`` need. Raises FutureRevision; a revision at or before
        an earlier call's does nothing."""

    async def close(self) -> None:
        """Finishes the writes under way and lets go of files; harmless when repeated."""
