"""WATCH: who is shown which events, encoded once for all who see the same.

Theory. A *feed* listens to one scope of a resource. Its *groups* hold the watchers that see the same: one view,
one selection. An event is judged once for a group and encoded once for each form that groups are shown, and the same
bytes go into each watcher's backlog. What takes long to encode is encoded apart from the loop; what comes after it
waits for it. A *pass* then wakes the watchers a few at a time, letting the loop read requests in between. A pass that
wakes many is not followed by another for about as long as it took: under load several events leave a socket in one
write (and reach the client in one read), at rest each leaves at once.

Rules (KEP-365, KEP-956, KEP-3157):

- A watch from revision N shows every event past N. From "" or "0" it starts with an ADDED for each present
  object, by key, as ``sendInitialEvents`` does; where bookmarks are allowed one that is annotated
  ``k8s.io/initial-events-end`` follows.
- With a selection: an object that enters is ADDED; one that leaves is DELETED with its old content and the
  new version; one that stays is MODIFIED.
- A compacted N is answered by one ERROR event with a 410 Status. Bookmarks come about every minute, and
  two seconds before a timed end: a shorter watch has none.
- A client that reads too slowly is cut off: its watch ends, and it starts again from its last version.

Backlogs are bounded twice: each of them, and all together (``Budget``). What waits for several is counted once; past
the total whoever holds more than an equal share of it is cut off. A backlog leaves in pieces, so that the socket's own
buffer stays small.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from apimachinery.http.governor import SMALL_BYTES, Account, Governor
from apimachinery.http.messages import QUICK_BYTES, StreamResponse
from apimachinery.http.steps import ASKS, LIGHT, compute
from apimachinery.meta.errors import ApiError
from apimachinery.server.answer.failures import storage_failure
from apimachinery.server.answer.view import JsonView, Selection, View, at_revision
from apimachinery.server.read.listing import expired, too_large
from apimachinery.server.request.list_options import BadRevision, ListQuery, parse_revision
from apimachinery.storage.interface import Compacted, Event, Record, StorageError
from apimachinery.storage.watch_cache import ResourceCache

BOOKMARK_SECONDS = 60.0
LAST_BOOKMARK_SECONDS = 2.0
MIN_TIMEOUT_SECONDS = 1800
BACKLOG_BYTES = 32 << 20
ALL_BACKLOGS_BYTES = 192 << 20
PIECE_BYTES = 256 << 10
CHUNK_OVERHEAD = 64
RESUMED_STEP = 250
WAKES_PER_STEP = 64
CROWD = 64
CROWD_SECONDS_EACH = 30e-6
CROWD_SECONDS = 0.05
INITIAL_STEP = 500
Seen = Callable[[int, int], None]
"""Takes the size of an event and how many watchers it is for."""
INITIAL_END = {"k8s.io/initial-events-end": "true"}


class Budget(Account):
    """What all backlogs together hold, in bytes."""

    __slots__ = ("cut_off", "watchers")

    def __init__(self, total: int = ALL_BACKLOGS_BYTES, governor: Governor | None = None) -> None:
        super().__init__("watch_backlogs", total, governor)
        self.watchers = 0
        self.cut_off = 0

    def allows(self, weight: int) -> bool:
        """Whether a backlog of this weight may grow: more than its share it may have while there is room."""
        return weight * self.watchers <= self.limit


class Watcher:
    """One client's stream: a backlog of encoded events, and who waits for it."""

    __slots__ = ("_backlog", "_budget", "_size", "_waiter", "_weight", "ended", "fresh", "since")

    def __init__(self, budget: Budget | None = None) -> None:
        self._backlog: list[bytes] = []
        self._size = 0
        self._weight = 0
        self._budget = budget or Budget()
        self._budget.watchers += 1
        self._waiter: asyncio.Future[None] | None = None
        self.ended = False
        self.fresh = True
        self.since = 0

    def push(self, chunk: bytes, sharers: int = 1) -> None:
        """Adds to the backlog; whoever calls sees to ``wake``. ``sharers`` watchers are given this chunk."""
        if self.ended:
            return
        self._backlog.append(chunk)
        size = len(chunk)
        self._size += size
        weight = size // sharers + CHUNK_OVERHEAD
        self._weight += weight
        budget = self._budget
        budget.held += weight
        if self._size > BACKLOG_BYTES or (
            (budget.held > budget.limit or (size > SMALL_BYTES and not budget.fits(0)))
            and not budget.allows(self._weight)
        ):
            budget.cut_off += 1
            self._clear()
            self.end()

    def _clear(self) -> None:
        self._backlog = []
        self._budget.held -= self._weight
        self._size = self._weight = 0

    def leave(self) -> None:
        """Gives up what is left; the stream is over."""
        self._clear()
        self._budget.watchers -= 1

    def wake(self) -> None:
        """Lets the stream go on."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self) -> None:
        """Ends the stream after its backlog."""
        self.ended = True
        self.wake()

    def send(self, chunk: bytes) -> None:
        """Adds to the backlog and wakes."""
        self.push(chunk)
        self.wake()

    async def take(self) -> bytes:
        """What has come since, a piece of it where it is much; empty at the end."""
        while not self._backlog and not self.ended:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            self._waiter = None
        backlog = self._backlog
        if not backlog:
            return b""
        if self._size <= PIECE_BYTES:
            self._clear()
            return backlog[0] if len(backlog) == 1 else b"".join(backlog)
        size = number = 0
        while number < len(backlog) and size < PIECE_BYTES:
            size += len(backlog[number])
            number += 1
        piece = b"".join(backlog[:number])
        del backlog[:number]
        if not backlog:
            self._clear()
        else:
            weight = self._weight * size // self._size
            self._size -= size
            self._weight -= weight
            self._budget.held -= weight
        return piece


@dataclass(slots=True)
class WatchGroup:
    """Watchers that are shown the same; ``after`` is 0 except for watches from a future revision."""

    view: View
    selection: Selection | None
    after: int
    seen: Seen | None = None
    watchers: list[Watcher] = field(default_factory=list)

    def kind(self, event: Event) -> str:
        """What the event is to this group, empty where it does not see it."""
        return "" if event.revision <= self.after else kind_of(event, self.selection)


class Forms:
    """One event in the forms that are asked for, each encoded once."""

    __slots__ = ("_event", "_made")

    def __init__(self, event: Event) -> None:
        self._event = event
        self._made: dict[Hashable, bytes] = {}

    def of(self, view: View, kind: str, first: bool) -> bytes:
        """The event as a view shows it; ``first`` of its stream."""
        form = (view.key, view.watch_content_type, kind)
        made = self._made.get((form, first))
        if made is None:
            made = encode_event(self._event, view, kind, first)
            # Few views show the first event in another way; the others share one copy.
            if (other := self._made.get((form, not first))) is not None and other == made:
                made = other
            self._made[form, first] = made
        return made


def kind_of(event: Event, selection: Selection | None) -> str:
    """What an event is to those who see through a selection; empty where nothing is seen."""
    previous = event.previous
    if selection is None:
        return "DELETED" if event.deleted else "MODIFIED" if previous is not None else "ADDED"
    was = previous is not None and selection.matches(previous)
    if event.deleted:
        return "DELETED" if was else ""
    if selection.matches(event.record):
        return "MODIFIED" if was else "ADDED"
    return "DELETED" if was else ""


def encode_event(event: Event, view: View, kind: str, first: bool) -> bytes:
    """An event as what it is to those who see it."""
    record, previous = event.record, event.previous
    if kind == "DELETED" and not event.deleted and previous is not None:  # it left the selection
        record = at_revision(previous, event.revision)
    return view.event(kind, record, first)


def _takes_long(view: View, size: int) -> bool:
    """Whether objects of so many bytes take long to encode: stored bytes are only copied."""
    return size > view.quick_bytes and not isinstance(view, JsonView)


def _weight(view: View, size: int, asks: bool) -> int:
    """How heavy it is to encode so many bytes. What takes long does not wait for the heavy work of others."""
    return ASKS if asks or _takes_long(view, size) else LIGHT


@dataclass(slots=True)
class _ByValue:
    """The groups that demand one value of a field each, by that value."""

    read: Callable[[Record], str]
    groups: dict[str, dict[Hashable, WatchGroup]] = field(default_factory=dict)


class Feed:
    """The live watches of one scope.

    Those whose selection demands an exact value (a kubelet's: the name of its node) are looked up by the value of the
    event's object, so an event costs nothing for watches that it does not concern.
    """

    def __init__(
        self, cache: ResourceCache, scope: str, forget: Callable[[], None], asks: bool = False
    ) -> None:
        self._groups: dict[Hashable, WatchGroup] = {}
        self._open: dict[Hashable, WatchGroup] = {}  # those that demand no exact value
        self._by_field: dict[Hashable, _ByValue] = {}
        self._forget = forget
        self._cache = cache
        self._asks = asks
        self._converting: deque[Event] = deque()
        self._converter: asyncio.Task[None] | None = None
        self._stop = cache.listen(scope, self._take)
        self._sleeping: list[Watcher] = []
        self._passing = False
        self._pause = 0.0
        self._crowd_until = 0.0

    def join(
        self,
        watcher: Watcher,
        view: View,
        selection: Selection | None,
        after: int,
        seen: Seen | None = None,
    ) -> Callable[[], None]:
        """Adds a watcher; the answer takes it out again."""
        place = (view.key, view.watch_content_type, selection.key if selection else None, after)
        group = self._groups.get(place)
        if group is None:
            group = self._groups[place] = WatchGroup(view, selection, after, seen)
            self._alike(selection)[place] = group
        group.watchers.append(watcher)
        watcher.since = self._cache.revision

        def leave() -> None:
            group.watchers.remove(watcher)
            if not group.watchers and self._groups.pop(place, None) is not None:
                self._leave(place, selection)
            if not self._groups:
                self._stop()
                self._forget()

        return leave

    def _alike(self, selection: Selection | None) -> dict[Hashable, WatchGroup]:
        """The groups among which one with this selection is found."""
        trigger = selection.trigger if selection is not None else None
        if trigger is None:
            return self._open
        by_value = self._by_field.setdefault(trigger.field, _ByValue(trigger.read))
        return by_value.groups.setdefault(trigger.value, {})

    def _leave(self, place: Hashable, selection: Selection | None) -> None:
        alike = self._alike(selection)
        del alike[place]
        if not alike and selection is not None and (trigger := selection.trigger) is not None:
            groups = self._by_field[trigger.field].groups
            del groups[trigger.value]
            if not groups:
                del self._by_field[trigger.field]

    def _concerned(self, event: Event) -> list[WatchGroup]:
        """The groups that may see an event."""
        groups = [*self._open.values()]
        for by_value in self._by_field.values():
            values = {by_value.read(event.record)}
            if event.previous is not None:
                values.add(by_value.read(event.previous))
            for value in values:
                groups += by_value.groups.get(value, {}).values()
        return groups

    def watchers(self) -> Iterable[Watcher]:
        """All of them."""
        return [watcher for group in self._groups.values() for watcher in group.watchers]

    def _take(self, event: Event) -> None:
        if self._asks or self._converting or self._is_long(event):
            self._converting.append(event)
            if self._converter is None:
                self._converter = asyncio.create_task(self._convert())
            return
        groups = self._concerned(event)
        self._push(Forms(event), [(g, kind, g.watchers) for g in groups if (kind := g.kind(event))])

    def _is_long(self, event: Event) -> bool:
        size = len(event.record.value)
        return size > QUICK_BYTES and any(_takes_long(g.view, size) for g in self._groups.values())

    @property
    def revision(self) -> int:
        """Up to which revision the watchers were given every event."""
        return self._converting[0].revision - 1 if self._converting else self._cache.revision

    def _push(self, forms: Forms, seeing: Sequence[tuple[WatchGroup, str, Sequence[Watcher]]]) -> None:
        """Gives an event to these watchers of groups, as what it is to each group."""
        sharers: dict[int, int] = {}
        for group, kind, watchers in seeing:
            shared = id(forms.of(group.view, kind, False))
            sharers[shared] = sharers.get(shared, 0) + len(watchers)
        for group, kind, watchers in seeing:
            chunk = forms.of(group.view, kind, False)
            together = sharers[id(chunk)]
            if group.seen is not None:
                group.seen(len(chunk), len(watchers))
            for watcher in watchers:
                if watcher.fresh:
                    watcher.fresh = False
                    watcher.push(forms.of(group.view, kind, True), together)
                else:
                    watcher.push(chunk, together)
            self._sleeping.extend(watchers)
        self._start_pass()

    async def _convert(self) -> None:
        """Events that take long, or whose objects somebody else converts: one after another, and none for those who
        have joined since."""
        try:
            while self._converting:
                event, forms, groups = (
                    self._converting[0],
                    Forms(self._converting[0]),
                    [*self._groups.values()],
                )
                kinds = await compute(ASKS, _judged, event, forms, groups)
                self._push(
                    forms,
                    [
                        (group, kind, [each for each in group.watchers if each.since < event.revision])
                        for group, kind in zip(groups, kinds, strict=True)
                        if kind
                    ],
                )
                self._converting.popleft()
        except Exception as fault:
            # Who watches starts again, and is told by the list why nothing can be shown.
            self._converting.clear()
            for watcher in self.watchers():
                watcher.end()
            if not isinstance(fault, ApiError):
                raise
        finally:
            self._converter = None

    def _start_pass(self) -> None:
        if self._sleeping and not self._passing:
            self._passing = True
            loop = asyncio.get_running_loop()
            if loop.time() < self._crowd_until:
                loop.call_at(self._crowd_until, self._begin_pass)
            else:
                loop.call_soon(self._begin_pass)

    def _begin_pass(self) -> None:
        if len(self._sleeping) > CROWD:
            self._sleeping = list(dict.fromkeys(self._sleeping))
            self._pause = min(CROWD_SECONDS, CROWD_SECONDS_EACH * len(self._sleeping))
        self._pass()

    def _pass(self) -> None:
        step, self._sleeping = self._sleeping[:WAKES_PER_STEP], self._sleeping[WAKES_PER_STEP:]
        for watcher in step:
            watcher.wake()
        if self._sleeping:
            asyncio.get_running_loop().call_soon(self._pass)
            return
        self._passing = False
        if self._pause:
            self._crowd_until = asyncio.get_running_loop().time() + self._pause
            self._pause = 0.0


def _judged(event: Event, forms: Forms, groups: Sequence[WatchGroup]) -> list[str]:
    """What an event is to each group; its forms are encoded."""
    kinds = [group.kind(event) for group in groups]
    for group, kind in zip(groups, kinds, strict=True):
        for first in {False, *(watcher.fresh for watcher in group.watchers)} if kind else ():
            forms.of(group.view, kind, first)
    return kinds


def check_version(options: ListQuery) -> int:
    """The version that a watch starts after. Raises ApiError 500 for what is none."""
    try:
        return parse_revision(options.resource_version)
    except BadRevision as fault:
        raise ApiError(500, "", str(fault), has_details=False) from None


class Watches:
    """All live watches of a server, so that those who see the same share the work, and all can be ended."""

    def __init__(self, governor: Governor | None = None) -> None:
        self._feeds: dict[str, Feed] = {}
        self._ending = False
        self.budget = Budget(governor=governor)
        if governor is not None:
            governor.add(self.budget)

    def start(
        self,
        cache: ResourceCache,
        scope: str,
        options: ListQuery,
        view: View,
        selection: Selection | None = None,
        seen: Seen | None = None,
        asks: bool = False,
    ) -> StreamResponse:
        """The answer to a WATCH of ``scope``; ``seen`` counts events, ``asks`` is true where somebody else converts.

        Raises ApiError 500 for what is no version.
        """
        revision = check_version(options)
        parts = self._stream(cache, scope, options, revision, view, selection, seen, asks)
        return StreamResponse(200, parts, view.watch_content_type)

    def end(self, prefix: str = "") -> None:
        """Ends the watches of a resource, or all of them."""
        self._ending = self._ending or not prefix
        for scope, feed in list(self._feeds.items()):
            if scope.startswith(prefix):
                for watcher in feed.watchers():
                    watcher.end()

    def cut(self) -> None:
        """Ends all watches there are: their clients start again from the last version they saw."""
        for feed in list(self._feeds.values()):
            for watcher in feed.watchers():
                watcher.end()

    async def _stream(
        self,
        cache: ResourceCache,
        scope: str,
        options: ListQuery,
        revision: int,
        view: View,
        selection: Selection | None,
        seen: Seen | None,
        asks: bool,
    ) -> AsyncIterator[bytes]:
        # Nothing is registered before the first item is asked for: a stream never begun leaves nothing.
        if self._ending:
            return
        initial = options.send_initial_events
        if initial and revision > cache.revision:
            yield view.error(too_large(revision, cache.revision).status())
            return
        wants_state = initial if initial is not None else revision == 0
        fresh = True
        past: Sequence[Event] = ()
        after = 0
        if wants_state or revision == 0:
            snapshot = cache.snapshot(scope)
        else:
            after = revision if revision > cache.revision else 0
            try:
                while (recent := cache.recent_events(scope, revision)) is None:
                    # Too old for the cache: a page at a time from the log, until what is left is in the cache.
                    older, revision = await cache.older_events(scope, revision, RESUMED_STEP)
                    weight = _weight(view, _size(older), asks)
                    if piece := await compute(weight, _encoded, older, view, selection, fresh, seen):
                        fresh = False
                        yield piece
                past = recent
            except Compacted as fault:
                message = f"too old resource version: {revision} ({fault.oldest})"
                yield view.error(expired(message).status())
                return
            except StorageError as fault:  # the past cannot be read, or not now
                yield view.error(storage_failure(fault).status())
                return
        # From here to the feed nothing waits, so that no event comes in between.
        watcher = Watcher(self.budget)
        watcher.fresh = fresh
        feed = self._feed(cache, scope, asks)
        leave = feed.join(watcher, view, selection, after, seen)

        def mark() -> bytes:
            # Not past events that are still being encoded.
            data = view.bookmark(max(feed.revision, watcher.since), {}, watcher.fresh)
            watcher.fresh = False
            return data

        timers = _Timers(watcher, options, mark)
        try:
            if wants_state:
                async for piece in _added(snapshot.records, view, selection, watcher, seen, asks):
                    yield piece
                if options.allow_bookmarks:
                    yield view.bookmark(snapshot.revision, INITIAL_END, watcher.fresh)
                    watcher.fresh = False
            for low in range(0, len(past), RESUMED_STEP):
                step = past[low : low + RESUMED_STEP]
                weight = _weight(view, _size(step), asks)
                if piece := await compute(weight, _encoded, step, view, selection, watcher.fresh, seen):
                    watcher.fresh = False
                    yield piece
                await asyncio.sleep(0)
            while chunk := await watcher.take():
                yield chunk
        finally:
            timers.cancel()
            leave()
            watcher.leave()

    def _feed(self, cache: ResourceCache, scope: str, asks: bool) -> Feed:
        feed = self._feeds.get(scope)
        if feed is None:
            feed = self._feeds[scope] = Feed(cache, scope, lambda: self._forget(scope, feed), asks)
        return feed

    def _forget(self, scope: str, feed: Feed | None) -> None:
        if self._feeds.get(scope) is feed:
            del self._feeds[scope]


async def _added(
    records: Sequence[Record],
    view: View,
    selection: Selection | None,
    watcher: Watcher,
    seen: Seen | None,
    asks: bool,
) -> AsyncIterator[bytes]:
    """An ADDED event for each record of the first state, some at a time, and never many bytes."""
    piece: list[bytes] = []
    size = 0
    for number, record in enumerate(records, 1):
        if weight := _weight(view, len(record.value), asks):
            event = await compute(weight, _added_event, record, view, selection, watcher.fresh)
        else:
            event = _added_event(record, view, selection, watcher.fresh)
        if event is not None:
            piece.append(event)
            watcher.fresh = False
            size += len(event)
            if seen is not None:
                seen(len(event), 1)
        if number % INITIAL_STEP == 0 or size > PIECE_BYTES:
            if piece:
                yield b"".join(piece)
            piece, size = [], 0
            await asyncio.sleep(0)
    if piece:
        yield b"".join(piece)


def _added_event(record: Record, view: View, selection: Selection | None, fresh: bool) -> bytes | None:
    return view.event("ADDED", record, fresh) if selection is None or selection.matches(record) else None


def _size(events: Sequence[Event]) -> int:
    return sum([len(event.record.value) for event in events])


def _encoded(
    events: Sequence[Event], view: View, selection: Selection | None, fresh: bool, seen: Seen | None
) -> bytes:
    """Past events as they are seen; the first of them opens the stream where it is fresh."""
    chunks: list[bytes] = []
    for event in events:
        if kind := kind_of(event, selection):
            chunk = encode_event(event, view, kind, fresh and not chunks)
            chunks.append(chunk)
            if seen is not None:
                seen(len(chunk), 1)
    return b"".join(chunks)


class _Timers:
    """Bookmarks and the timed end of one watch."""

    def __init__(self, watcher: Watcher, options: ListQuery, bookmark: Callable[[], bytes]) -> None:
        self._watcher = watcher
        self._bookmark = bookmark
        self._loop = asyncio.get_running_loop()
        seconds = options.timeout_seconds
        lasts = float(seconds) if seconds else MIN_TIMEOUT_SECONDS * (1 + random.random())
        self._handles = [self._loop.call_later(lasts, self._end)]
        if options.allow_bookmarks:
            self._handles.append(self._loop.call_later(BOOKMARK_SECONDS, self._mark))
            if lasts > LAST_BOOKMARK_SECONDS:
                last = lasts - LAST_BOOKMARK_SECONDS
                self._handles.append(self._loop.call_later(last, lambda: watcher.send(bookmark())))

    def _mark(self) -> None:
        self._watcher.send(self._bookmark())
        self._handles[1] = self._loop.call_later(BOOKMARK_SECONDS, self._mark)

    def _end(self) -> None:
        self._watcher.end()

    def cancel(self) -> None:
        """Stops both."""
        for handle in self._handles:
            handle.cancel()
