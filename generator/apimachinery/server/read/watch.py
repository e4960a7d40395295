"""WATCH: who is shown which events, encoded once for all who see the same.

Those who see the same share the work (``feed``), and what waits for a slow client is bounded (``backlogs``).

Rules (KEP-365, KEP-956, KEP-3157):

- A watch from revision N shows every event past N. From "" or "0" it starts with an ADDED for each present
  object, by key, as ``sendInitialEvents`` does; where bookmarks are allowed one that is annotated
  ``k8s.io/initial-events-end`` follows.
- With a selection: an object that enters is ADDED; one that leaves is DELETED with its old content and the
  new version; one that stays is MODIFIED.
- A compacted N is answered by one ERROR event with a 410 Status. Bookmarks come about every minute, and
  two seconds before a timed end: a shorter watch has none.
- A client that reads too slowly is cut off: its watch ends, and it starts again from its last version.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from apimachinery.http.governor import Governor
from apimachinery.http.messages import StreamResponse
from apimachinery.http.steps import compute
from apimachinery.http.turns import Turns
from apimachinery.meta.errors import ApiError
from apimachinery.server.answer.failures import storage_failure
from apimachinery.server.answer.view import Selection, View
from apimachinery.server.read.backlogs import PIECE_BYTES, Budget, Watcher
from apimachinery.server.read.feed import Feed
from apimachinery.server.read.listing import expired, too_large
from apimachinery.server.read.watch_events import Seen, encode_event, kind_of, weight_of_events
from apimachinery.server.request.list_options import BadRevision, ListQuery, parse_revision
from apimachinery.storage.interface import Compacted, Event, Record, StorageError
from apimachinery.storage.watch_cache import ResourceCache

BOOKMARK_SECONDS = 60.0
LAST_BOOKMARK_SECONDS = 2.0
MIN_TIMEOUT_SECONDS = 1800
RESUMED_STEP = 250
INITIAL_STEP = 500
CHECKED_STEP = 50
"""Records of a first state after which the time is looked at."""
INITIAL_END = {"k8s.io/initial-events-end": "true"}


def check_version(options: ListQuery) -> int:
    """The version that a watch starts after. Raises ApiError 500 for what is none."""
    try:
        return parse_revision(options.resource_version)
    except BadRevision as fault:
        raise ApiError(500, "", str(fault), has_details=False) from None


@dataclass(slots=True)
class _Watch:
    """What one client watches, and what of its past is still to be sent."""

    cache: ResourceCache
    scope: str
    options: ListQuery
    revision: int
    view: View
    selection: Selection | None
    seen: Seen | None
    asks: bool
    fresh: bool = True
    past: Sequence[Event] = ()

    @property
    def wants_state(self) -> bool:
        """Whether an ADDED event for each present object comes first."""
        initial = self.options.send_initial_events
        return initial if initial is not None else self.revision == 0

    @property
    def marks_state(self) -> bool:
        """Whether a bookmark may say that the present objects were shown: other spellings of "0" do not ask for it."""
        return bool(self.options.send_initial_events) or self.options.resource_version in ("", "0")

    async def logged(self) -> AsyncIterator[bytes]:
        """Yields events too old for the cache, a page at a time, until what is left (``past``) is in the cache."""
        while (recent := self.cache.recent_events(self.scope, self.revision)) is None:
            older, self.revision = await self.cache.older_events(self.scope, self.revision, RESUMED_STEP)
            if piece := await self._encoded(older, self.fresh):
                self.fresh = False
                yield piece
        self.past = recent

    async def passed(self, watcher: Watcher) -> AsyncIterator[bytes]:
        """Yields the events of the cache since the revision that was asked for."""
        turns = Turns()
        for low in range(0, len(self.past), RESUMED_STEP):
            if piece := await self._encoded(self.past[low : low + RESUMED_STEP], watcher.fresh):
                watcher.fresh = False
                yield piece
            await turns.give_way()

    async def added(self, records: Sequence[Record], watcher: Watcher) -> AsyncIterator[bytes]:
        """Yields an ADDED event for each record of the first state, some at a time, and never many bytes."""
        piece: list[bytes] = []
        size = 0
        turns = Turns()
        for number, record in enumerate(records, 1):
            weight = weight_of_events(self.view, len(record.value), self.asks)
            event = (
                await compute(weight, self._added, record, watcher.fresh)
                if weight
                else self._added(record, watcher.fresh)
            )
            if event is not None:
                piece.append(event)
                watcher.fresh = False
                size += len(event)
                if self.seen is not None:
                    self.seen(len(event), 1)
            if number % INITIAL_STEP == 0 or size > PIECE_BYTES:
                if piece:
                    yield b"".join(piece)
                piece, size = [], 0
            if number % CHECKED_STEP == 0:
                await turns.give_way()
        if piece:
            yield b"".join(piece)

    def _added(self, record: Record, fresh: bool) -> bytes | None:
        if self.selection is None or self.selection.matches(record):
            return self.view.event("ADDED", record, fresh)
        return None

    def _encoded(self, events: Sequence[Event], fresh: bool) -> Coroutine[Any, Any, bytes]:
        """Encodes past events as they are seen; the first of them opens the stream where it is fresh."""
        size = sum([len(event.record.value) for event in events])
        return compute(weight_of_events(self.view, size, self.asks), self._join, events, fresh)

    def _join(self, events: Sequence[Event], fresh: bool) -> bytes:
        chunks: list[bytes] = []
        for event in events:
            if kind := kind_of(event, self.selection):
                chunk = encode_event(event, self.view, kind, fresh and not chunks)
                chunks.append(chunk)
                if self.seen is not None:
                    self.seen(len(chunk), 1)
        return b"".join(chunks)


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
        watch = _Watch(cache, scope, options, check_version(options), view, selection, seen, asks)
        return StreamResponse(200, self._stream(watch), view.watch_content_type)

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

    async def _stream(self, watch: _Watch) -> AsyncIterator[bytes]:
        # Nothing is registered before the first item is asked for: a stream never begun leaves nothing.
        if self._ending:
            return
        cache, view, options = watch.cache, watch.view, watch.options
        if options.send_initial_events and watch.revision > cache.revision:
            yield view.error(too_large(watch.revision, cache.revision).status())
            return
        snapshot = None
        after = 0
        if watch.wants_state or watch.revision == 0:
            snapshot = cache.snapshot(watch.scope)
        else:
            after = watch.revision if watch.revision > cache.revision else 0
            try:
                async for piece in watch.logged():
                    yield piece
            except Compacted as fault:
                message = f"too old resource version: {watch.revision} ({fault.oldest})"
                yield view.error(expired(message).status())
                return
            except StorageError as fault:  # the past cannot be read, or not now
                yield view.error(storage_failure(fault).status())
                return
        # From here to the feed nothing waits, so that no event comes in between.
        watcher = Watcher(self.budget)
        watcher.fresh = watch.fresh
        feed = self._feed(cache, watch.scope, watch.asks)
        leave = feed.join(watcher, view, watch.selection, after, watch.seen)

        def mark() -> bytes:
            # Not past events that are still being encoded.
            data = view.bookmark(max(feed.revision, watcher.since), {}, watcher.fresh)
            watcher.fresh = False
            return data

        timers = _Timers(watcher, options, mark)
        try:
            if snapshot is not None and watch.wants_state:
                async for piece in watch.added(snapshot.records, watcher):
                    yield piece
                if options.allow_bookmarks and watch.marks_state:
                    yield view.bookmark(snapshot.revision, INITIAL_END, watcher.fresh)
                    watcher.fresh = False
            async for piece in watch.passed(watcher):
                yield piece
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
