"""The memory driver: the contract over ``StoredHistory`` alone. Writes return at once and end with the process.

Large objects that change often would fill the memory long before a period of history is over, so the history is
compacted by its size too.
"""

from __future__ import annotations

from collections.abc import Sequence

from apimachinery.storage.history import StoredHistory
from apimachinery.storage.interface import (
    Compacted,
    Event,
    FutureRevision,
    KeyExists,
    KeyNotFound,
    Record,
    RecordPage,
    Reset,
    RevisionConflict,
    RunningWatch,
    Sink,
    StorageClosed,
    Value,
    check_size,
)
from apimachinery.storage.subscribers import Subscribers

HISTORY_BYTES = 16 << 20


class MemoryStorage:
    """See ``interface.Storage``."""

    def __init__(self) -> None:
        self._history = StoredHistory()
        self._subscribers = Subscribers()
        self.unreadable: dict[str, str] = {}
        self._closed = False

    @property
    def shared(self) -> bool:
        """Nobody else writes."""
        return False

    @property
    def writable(self) -> bool:
        """It takes writes."""
        return True

    @property
    def revision(self) -> int:
        """The newest revision."""
        return self._history.newest

    @property
    def compacted(self) -> int:
        """The oldest revision that can be read."""
        return self._history.oldest

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
        return self._history.get(key, self._history.check(at))

    async def list(self, prefix: str, *, at: int = 0, after: str = "", limit: int = 0) -> RecordPage:
        return self._history.page(prefix, self._history.check(at), after, limit)

    async def create(self, key: str, value: Value) -> Record:
        check_size(value)
        if self._history.current(key) is not None:
            raise KeyExists(key)
        revision = self._next()
        return self._append(Event(Record(key, revision, revision, value.at(revision)), None))

    async def update(self, key: str, expected: int, value: Value) -> Record:
        check_size(value)
        current = self._current(key, expected)
        revision = self._next()
        return self._append(Event(Record(key, revision, current.created, value.at(revision)), current))

    async def delete(self, key: str, expected: int, last: Value, *, marked: bool = False) -> Record:
        current = self._current(key, expected)
        revision = self._next()
        # Both events at once: nobody can write between them, as nothing is awaited.
        if marked:
            current = self._append(Event(Record(key, revision, current.created, last.at(revision)), current))
            revision += 1
        return self._append(
            Event(Record(key, revision, current.created, last.at(revision)), current, deleted=True)
        )

    async def watch(self, prefix: str, after: int, sink: Sink, reset: Reset | None = None) -> RunningWatch:
        if after < self.compacted:
            raise Compacted(after, self.compacted)
        past = self._history.since(after, prefix)
        if past:
            sink(past)
        # Events at or before ``after`` are left out even where they are still to come.
        return self._subscribers.add(prefix, max(after, self.revision), sink)

    async def events(self, prefix: str, after: int, limit: int) -> tuple[Sequence[Event], int]:
        if after < self.compacted:
            raise Compacted(after, self.compacted)
        past = self._history.since(after, prefix)
        # Cut at whole revisions, each of which is one event.
        if len(past) > limit:
            return past[:limit], past[limit - 1].revision
        return past, self.revision

    async def take_turn(self, revision: int) -> bool:
        """It is alone."""
        return True

    async def compact(self, revision: int) -> None:
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        self._history.compact(revision)

    async def close(self) -> None:
        self._closed = True

    def _next(self) -> int:
        if self._closed:
            raise StorageClosed("the storage is closed")
        return self._history.newest + 1

    def _current(self, key: str, expected: int) -> Record:
        current = self._history.current(key)
        if current is None:
            raise KeyNotFound(key)
        if current.revision != expected:
            raise RevisionConflict(expected, current)
        return current

    def _append(self, event: Event) -> Record:
        self._history.append(event)
        if self._history.held > HISTORY_BYTES:
            # Down to half, so that this is rare.
            self._history.shorten(HISTORY_BYTES // 2)
        self._subscribers.publish((event,))
        return event.record
