"""The watch cache: all current records in memory, and the recent events, by resource. It answers reads.

Theory. The cache is one watch on the storage. Because a write returns only after every watch has been handed
its event, the cache is never behind a write that this process answered; a read needs neither disk nor lock. Where other
servers write too (``shared``), who must see their writes calls ``catch_up`` before reading.

- The state now: a dict of records, and a persistent tree of them by key (``sorted_records``); a *scope* (a resource, a
  namespace of it, one object) is a contiguous run of the tree, so a page costs what it holds, however much is stored.
- The state at an earlier revision: the tree now with the events since undone, as far as the window of
  recent events reaches back; the storage's log answers for what is older, or says that it is compacted.
- What cannot be read, or is no object of its key, is left out, and named: ``unreadable``. Reads of a scope that holds
  such a record are refused, as their answer would be wrong; whoever concludes from absence has to ask, too.
- A scope's *stamp* is the revision of its last change. What is derived from a snapshot (joined bodies) is
  good for as long as the stamp stands, however much is written elsewhere.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from apimachinery.storage.interface import (
    Event,
    FutureRevision,
    Record,
    RunningWatch,
    Storage,
    UnreadableRecord,
)
from apimachinery.storage.sorted_records import RecordTree, Run

log = logging.getLogger("kubewright.storage")

OWN_RECORDS = "/kubewright.dev/"
"""What servers tell each other, which are no objects."""
Judge = Callable[[Record], str]
"""Why a record that came from elsewhere cannot be served; empty where it can. It may bring the record into form."""
Listener = Callable[[Event], None]
"""Called with each event of a scope, in order; must not raise or wait."""

WINDOW_EVENTS = 10_000
WINDOW_BYTES = 16 << 20
ALL_WINDOWS_BYTES = 128 << 20
KEPT_PASTS = 64
KEPT_RUNS = 256
"""Of how many scopes of a resource the present run is kept."""
SUPERSEDED_BYTES = 64 << 20
"""What the kept past states of a resource may keep alive that has been written over since."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The records of a scope, by key, at ``revision``; unchanged since ``stamp``."""

    records: Run
    revision: int
    stamp: int


class WatchCache:
    """All resources of a storage. Use ``await WatchCache.open(storage)``."""

    def __init__(self, storage: Storage, judge: Judge | None = None) -> None:
        self.storage = storage
        self._resources: dict[str, ResourceCache] = {}
        self._opened = storage.revision
        self._watch: RunningWatch | None = None
        self.held = 0
        """Bytes of recent events."""
        self._on_reset: list[Callable[[], None]] = []
        self._judge = judge
        self._refused: dict[str, str] = {}

    @classmethod
    async def open(cls, storage: Storage, judge: Judge | None = None) -> WatchCache:
        """Reads the storage's present state and follows it from there. ``judge`` knows what an object is: what it finds
        wrong of what came from elsewhere is kept from readers."""
        cache = cls(storage, judge)
        # The page and its revision belong together, so the watch below goes on exactly where it ends.
        page = await storage.list("")
        cache._opened = page.revision
        loaded: dict[str, list[Record]] = {}
        for record in page.records:
            if cache._is_good(record):
                loaded.setdefault(_prefix(record.key), []).append(record)
        for prefix, records in loaded.items():
            cache.resource(prefix).load(records)
        for key, reason in storage.unreadable.items():
            log.error("a stored object cannot be read", extra={"key": key, "reason": reason})
        cache._watch = await storage.watch("", page.revision, cache._take, cache._reset)
        return cache

    @property
    def revision(self) -> int:
        """The revision of the state that reads see."""
        return self.storage.revision

    @property
    def shared(self) -> bool:
        """Whether others write too."""
        return self.storage.shared

    async def catch_up(self) -> None:
        """Returns when reads see every write that was acknowledged before. Raises StorageUnreachable."""
        await self.storage.catch_up()

    def on_reset(self, call: Callable[[], None]) -> None:
        """Calls when events were lost: watches of clients cannot go on, as what they missed is unknown."""
        self._on_reset.append(call)

    def resource(self, prefix: str) -> ResourceCache:
        """The cache of ``/GROUP/RESOURCE/``; empty where nothing was written yet."""
        found = self._resources.get(prefix)
        if found is None:
            found = self._resources[prefix] = ResourceCache(prefix, self.storage, self._opened)
        return found

    def record(self, key: str) -> Record | None:
        """The record of a key of any resource."""
        return self._of(key).get(key)

    @property
    def unreadable(self) -> Mapping[str, str]:
        """The keys of records that are not served, and why."""
        return {**self.storage.unreadable, **self._refused}

    @property
    def hides(self) -> bool:
        """Whether there are any."""
        return bool(self._refused or self.storage.unreadable)

    def unreadable_in(self, scope: str) -> list[str]:
        """Those of a scope."""
        hidden, refused = self.storage.unreadable, self._refused
        if not hidden and not refused:
            return []
        # Each read and write asks, of several scopes: no copy of all that is hidden, which may be all Secrets.
        if not scope.endswith("/"):
            return [scope] if scope in hidden or scope in refused else []
        found = [key for key in hidden if key.startswith(scope)]
        return found + [key for key in refused if key.startswith(scope) and key not in hidden]

    def check_readable(self, scope: str) -> None:
        """Raises UnreadableRecord where a scope has something that is not served."""
        if not self._refused and not self.storage.unreadable:  # as ``hides``, which each get would call
            return
        if found := self.unreadable_in(scope):
            key = found[0]
            refused = self._refused.get(key)
            raise UnreadableRecord(key, self.storage.unreadable[key] if refused is None else refused)

    def _is_good(self, record: Record) -> bool:
        """Judges a record that came from elsewhere."""
        if self._judge is None or not record.foreign or record.key.startswith(OWN_RECORDS):
            return True
        if not (reason := self._judge(record)):
            return True
        log.error("a stored object cannot be served", extra={"key": record.key, "reason": reason})
        self._refused[record.key] = reason
        return False

    def close(self) -> None:
        """Stops following the storage."""
        if self._watch is not None:
            self._watch.close()

    def _of(self, key: str) -> ResourceCache:
        return self.resource(_prefix(key))

    def _reset(self) -> None:
        self._opened = self.storage.revision
        for resource in self._resources.values():
            resource.forget_past()
        self.held = 0
        for call in self._on_reset:
            call()

    def _take(self, events: Sequence[Event]) -> None:
        for event in events:
            resource = self._of(event.record.key)
            before = resource.window_bytes
            # What this process wrote is good; only records of others have to be judged.
            if event.record.foreign or self._refused:
                taken = self._judged(event, resource)
                if taken is None:
                    continue
                event = taken
            resource.apply(event)
            self.held += resource.window_bytes - before
            if self.held > ALL_WINDOWS_BYTES:
                self._shorten()

    def _judged(self, event: Event, resource: ResourceCache) -> Event | None:
        """The event as readers may see it: what was there before is what they have seen, and a record that is not
        served changes nothing for them."""
        key = event.record.key
        # A write to a refused key makes it readable again, or is refused anew below.
        was_refused = self._refused.pop(key, None)
        if not event.deleted and not self._is_good(event.record):
            return None
        if was_refused is None:
            return event
        shown = resource.get(key)
        # Readers never saw what was refused: to them its replacement is a creation.
        return None if event.deleted and shown is None else Event(event.record, shown, event.deleted)

    @property
    def superseded(self) -> int:
        """The most bytes that past states keep alive of what was written over."""
        return sum([resource.superseded for resource in self._resources.values()])

    def _shorten(self) -> None:
        """Halves the longest pasts of resources."""
        # The longest first: a few resources hold nearly all of it.
        for resource in sorted(self._resources.values(), key=lambda each: -each.window_bytes):
            before = resource.window_bytes
            resource.shorten(before // 2)
            self.held += resource.window_bytes - before
            # Down to three quarters, so that this does not happen with each event.
            if self.held <= ALL_WINDOWS_BYTES * 3 // 4:
                return


class ResourceCache:
    """One resource. A scope is its prefix, ``PREFIX + NAMESPACE + "/"``, or one object's whole key."""

    def __init__(self, prefix: str, storage: Storage, opened: int) -> None:
        self.prefix = prefix
        self._storage = storage
        self._records: dict[str, Record] = {}
        self._tree = RecordTree.of(())
        self._runs: dict[str, Run] = {}
        self._stamps: dict[str, int] = {prefix: opened}
        self._window: deque[Event] = deque()
        self.window_bytes = 0
        self._window_start = self._opened = opened
        # Past states by scope and revision, the last used at the end. Of each, how much had been superseded when it
        # was made, less what of it was gone by then: what has been superseded since is the most that it keeps alive.
        self._pasts: OrderedDict[tuple[str, int], RecordTree] = OrderedDict()
        self._made_at: dict[tuple[str, int], int] = {}
        self._superseded = 0
        self._checked_at = 0
        self._listeners: dict[str, list[Listener]] = {}

    @property
    def revision(self) -> int:
        """The revision of the state that reads see: the storage's, not of this resource's last change."""
        return self._storage.revision

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: str) -> Record | None:
        """The record of ``key`` now."""
        return self._records.get(key)

    def stamp(self, scope: str) -> int:
        """The revision of the last change in a scope, as far as known; never less than the true one."""
        stamps = self._stamps
        # Stamps are kept for resources and namespaces; one object's is that of its namespace, which is never less.
        if scope not in stamps and not scope.endswith("/"):
            scope = scope[: scope.rfind("/") + 1]
        return stamps.get(scope, self._opened)

    def snapshot(self, scope: str) -> Snapshot:
        """The state of a scope now."""
        run = self._runs.get(scope)
        if run is None:
            # Each change clears them anyway; the bound is for many scopes read between two changes.
            if len(self._runs) >= KEPT_RUNS:
                self._runs.clear()
            run = self._runs[scope] = self._tree.run(scope)
        return Snapshot(run, self.revision, self.stamp(scope))

    async def snapshot_at(self, scope: str, revision: int) -> Snapshot:
        """The state of a scope at a revision. Raises Compacted, FutureRevision."""
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        now = self.snapshot(scope)
        # Nothing changed since: the present state is that state, without any work.
        if revision >= now.stamp and revision >= self._storage.compacted:
            return Snapshot(now.records, revision, now.stamp)
        past = self._kept_past(scope, revision) if revision >= self._storage.compacted else None
        if past is None and revision >= max(self._window_start, self._storage.compacted):
            past = self._undo(revision)
        if past is None:
            page = await self._storage.list(scope, at=revision)
            # The prefix of a name is also that of longer names; only whole scopes count.
            past = RecordTree.of([record for record in page.records if _within(record.key, scope)])
            present = self._records
            gone = sum([len(each.value) for each in page.records if present.get(each.key) is not each])
            self._keep((scope, revision), past, gone)
        return Snapshot(past.run(scope), revision, revision)

    def recent_events(self, scope: str, revision: int) -> list[Event] | None:
        """The events of a scope past a revision, in order; None where the revision is older than what is kept here."""
        found: list[Event] = []
        if revision < self._window_start:
            return None
        # Backwards: what is asked for are nearly always the last few events.
        for event in reversed(self._window):
            if event.revision <= revision:
                break
            if _within(event.record.key, scope):
                found.append(event)
        found.reverse()
        return found

    async def older_events(self, scope: str, revision: int, limit: int) -> tuple[Sequence[Event], int]:
        """The first events of a scope past a revision, from the log, and the revision that they reach. Raises
        Compacted."""
        events, reached = await self._storage.events(scope, revision, limit)
        return [event for event in events if _within(event.record.key, scope)], reached

    def listen(self, scope: str, listener: Listener) -> Callable[[], None]:
        """Calls ``listener`` with each later event of a scope; the answer ends that."""
        listeners = self._listeners.setdefault(scope, [])
        listeners.append(listener)

        def stop() -> None:
            if listener in listeners:
                listeners.remove(listener)
            if not listeners and self._listeners.get(scope) is listeners:
                del self._listeners[scope]

        return stop

    def load(self, records: Sequence[Record]) -> None:
        """Takes the state that the cache starts from, sorted by key."""
        self._records = {record.key: record for record in records}
        self._tree = RecordTree.of(records)
        self._runs.clear()

    def forget_past(self) -> None:
        """Events up to the storage's revision are not all known: states before it are the storage's to tell."""
        self._window.clear()
        self.window_bytes = 0
        self._window_start = self.revision

    def apply(self, event: Event) -> None:
        """Takes the next event."""
        key = event.record.key
        namespace = key[: key.rfind("/") + 1]
        self._update(key, event)
        self._stamps[self.prefix] = self._stamps[namespace] = event.record.revision
        self._remember(event)
        if event.previous is not None:
            self._superseded += len(event.previous.value)
            if self._superseded - self._checked_at > SUPERSEDED_BYTES // 4:
                self._forget_superseded()
        if self._listeners:
            for scope in {self.prefix, namespace, key}:
                # A copy: listeners may stop themselves, or others, while they are called.
                for listener in tuple(self._listeners.get(scope, ())):
                    listener(event)

    def _update(self, key: str, event: Event) -> None:
        # Runs are slices of the tree as it was.
        if self._runs:
            self._runs.clear()
        if not event.deleted:
            self._records[key] = event.record
            self._tree.put(event.record)
        elif self._records.pop(key, None) is not None:
            self._tree.remove(key)

    def _remember(self, event: Event) -> None:
        self._window.append(event)
        self.window_bytes += len(event.record.value)
        if len(self._window) > WINDOW_EVENTS or self.window_bytes > WINDOW_BYTES:
            self.shorten(WINDOW_BYTES)

    def shorten(self, size: int) -> None:
        """Keeps no more than so many bytes of recent events, and always the last one."""
        window = self._window
        while len(window) > WINDOW_EVENTS or (self.window_bytes > size and len(window) > 1):
            oldest = window.popleft()
            self.window_bytes -= len(oldest.record.value)
            self._window_start = oldest.revision

    def _kept_past(self, scope: str, revision: int) -> RecordTree | None:
        for place in (
            (self.prefix, revision),
            (scope, revision),
        ):  # of the whole resource, or of the scope alone
            past = self._pasts.get(place)
            if past is not None:
                self._pasts.move_to_end(place)
                return past
        return None

    def _undo(self, revision: int) -> RecordTree:
        """The state at a revision that the window reaches back to."""
        past, gone = self._tree.fork(), 0
        for event in reversed(self._window):
            if event.revision <= revision:
                break
            if event.previous is None:
                past.remove(event.record.key)
            else:
                past.put(event.previous)
                gone += len(event.previous.value)
        self._keep((self.prefix, revision), past, gone)
        return past

    def _keep(self, place: tuple[str, int], past: RecordTree, gone: int) -> None:
        """Keeps a past state, of which ``gone`` bytes are in no present record."""
        self._pasts[place] = past
        self._made_at[place] = self._superseded - gone
        if len(self._pasts) > KEPT_PASTS:
            oldest, _ = self._pasts.popitem(last=False)
            del self._made_at[oldest]
        self._forget_superseded()

    def _forget_superseded(self) -> None:
        """Drops past states that keep much alive; they are rebuilt for whoever continues in them."""
        self._checked_at = self._superseded
        newest = next(reversed(self._pasts), None)
        for place, made_at in list(self._made_at.items()):
            if self._superseded - made_at > SUPERSEDED_BYTES and place != newest:
                del self._pasts[place], self._made_at[place]

    @property
    def superseded(self) -> int:
        """The most bytes that past states keep alive of what was written over."""
        return self._superseded - min(self._made_at.values(), default=self._superseded)


def _prefix(key: str) -> str:
    """The prefix of the resource that a key belongs to: ``/GROUP/RESOURCE/``."""
    return key[: key.index("/", key.index("/", 1) + 1) + 1]


def _within(key: str, scope: str) -> bool:
    return key.startswith(scope) if scope.endswith("/") else key == scope
