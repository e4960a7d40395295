"""The log in memory: every kept record by key, and the events in order. What the memory driver is made of.

Rules. A key's records are in the order of revisions; the state at R is, per key, the last record at or
before R, unless it is a deletion. After ``compact(R)`` a key keeps its last record at or before R (nothing
where that is a deletion) and all later ones; the events at or before R go.

``held`` is about how many bytes only the past needs: what writes have replaced and deleted, and the events themselves.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator
from operator import attrgetter

from apimachinery.storage.interface import Compacted, Event, FutureRevision, Record, RecordPage

_revision = attrgetter("revision")
_EVENT_BYTES = 256
"""What an event, its record and its places in the log take besides the values."""


class StoredHistory:
    """The kept log. ``oldest`` is the compacted revision, ``newest`` the last one written."""

    def __init__(self, newest: int = 1) -> None:
        self.oldest = 1
        self.newest = newest
        self.held = 0
        self._events: deque[Event] = deque()
        self._by_key: dict[str, list[Event]] = {}
        self._keys: list[str] = []

    def append(self, event: Event) -> None:
        """Adds a write; its revision must be greater than all before."""
        key = event.record.key
        events = self._by_key.get(key)
        if events is None:
            self._by_key[key] = [event]
            # Most keys are made in order, and are appended without a search.
            if self._keys and self._keys[-1] > key:
                insort(self._keys, key)
            else:
                self._keys.append(key)
        else:
            events.append(event)
        self._events.append(event)
        self.held += _weight(event)
        self.newest = event.record.revision

    def current(self, key: str) -> Record | None:
        """The newest record of a living key."""
        events = self._by_key.get(key)
        if events is None or events[-1].deleted:
            return None
        return events[-1].record

    def check(self, revision: int) -> int:
        """The revision to read at: ``revision``, or the newest for 0. Raises Compacted, FutureRevision."""
        if revision == 0:
            return self.newest
        if revision < self.oldest:
            raise Compacted(revision, self.oldest)
        if revision > self.newest:
            raise FutureRevision(revision, self.newest)
        return revision

    def get(self, key: str, at: int) -> Record | None:
        """The record of ``key`` in the state at ``at``."""
        events = self._by_key.get(key)
        if events is None:
            return None
        place = len(events) if events[-1].revision <= at else bisect_right(events, at, key=_revision)
        if place == 0 or events[place - 1].deleted:
            return None
        return events[place - 1].record

    def page(self, prefix: str, at: int, after: str, limit: int) -> RecordPage:
        """A page of the state at ``at``."""
        records: list[Record] = []
        remaining = 0
        for key in self._range(prefix, after):
            record = self.get(key, at)
            if record is None:
                continue
            if limit and len(records) == limit:
                remaining += 1
            else:
                records.append(record)
        return RecordPage(records, at, remaining)

    def _range(self, prefix: str, after: str) -> Iterator[str]:
        start = bisect_right(self._keys, after) if after > prefix else bisect_left(self._keys, prefix)
        for place in range(start, len(self._keys)):
            if not self._keys[place].startswith(prefix):
                return
            yield self._keys[place]

    def since(self, after: int, prefix: str) -> list[Event]:
        """The kept events past ``after`` under ``prefix``, in order."""
        found: list[Event] = []
        # Backwards from the end: watches nearly always ask for the last few.
        for event in reversed(self._events):
            if event.revision <= after:
                break
            if event.record.key.startswith(prefix):
                found.append(event)
        found.reverse()
        return found

    def compact(self, revision: int) -> None:
        """Forgets; see the rules above."""
        if revision <= self.oldest:
            return
        self.oldest = revision
        while self._events and self._events[0].revision <= revision:
            event = self._events.popleft()
            self.held -= _weight(event)
            self._forget_before(event.record.key, revision)

    def shorten(self, size: int) -> None:
        """Compacts, oldest first, until no more than ``size`` bytes are held."""
        while self._events and self.held > size:
            self.compact(self._events[0].revision)

    def _forget_before(self, key: str, revision: int) -> None:
        events = self._by_key.get(key)
        if events is None:
            return
        place = bisect_right(events, revision, key=_revision)
        if place and not events[place - 1].deleted:
            place -= 1
            # The record stays, without what it replaced: that is what was to be forgotten.
            events[place] = Event(events[place].record, None)
        del events[:place]
        if not events:
            del self._by_key[key]
            del self._keys[bisect_left(self._keys, key)]


def _weight(event: Event) -> int:
    """The bytes that are free once an event is forgotten."""
    replaced = len(event.previous.value) if event.previous is not None else 0
    return _EVENT_BYTES + replaced + (len(event.record.value) if event.deleted else 0)
