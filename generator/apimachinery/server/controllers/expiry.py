"""Events end by themselves, some time after they were written last (kube-apiserver's ``--event-ttl``)."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterable
from datetime import datetime

from apimachinery.kinds.hooks import Json
from apimachinery.meta.clock import monotonic, utc
from apimachinery.queue.observing import Observer
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import EVERYTHING, SILENT, Controller, Source
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, KeyNotFound, RevisionConflict
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

EVENTS = "/core/events/"
LEAST_SECONDS, MOST_SECONDS = 0.05, 10.0
"""How often is looked, at most and at least."""
AT_ONCE = 500


class EventExpiry(Controller):
    """Deletes events whose time has come."""

    def __init__(self, served: Served, cache: WatchCache, writer: Writer, seconds: float) -> None:
        super().__init__("event-expiry", cache, Source(EVENTS, self._note, listed=False))
        self._served = served
        self._writer = writer
        self._seconds = seconds
        self._events = cache.resource(EVENTS)
        # In the order of their last writes, so the first to end is first.
        self._until: OrderedDict[str, float] = OrderedDict()
        self.queue.add(EVERYTHING)

    def start(self, observer: Observer = SILENT) -> None:
        """Schedules the stored events by their age, then follows new ones."""
        moment = monotonic()
        stored = [
            (moment + self._seconds - _age(decode(record.value)), record.key)
            for record in self._events.snapshot(EVENTS).records
        ]
        self._until = OrderedDict((key, until) for until, key in sorted(stored))
        super().start(observer)

    def _note(self, event: Event) -> Iterable[str]:
        key = event.record.key
        if event.deleted:
            self._until.pop(key, None)
        else:
            self._until[key] = monotonic() + self._seconds
            self._until.move_to_end(key)
        return ()

    async def reconcile(self, key: str) -> float:
        """Deletes what is due, up to a number. Raises StorageError."""
        for _ in range(AT_ONCE):
            if not self._until or next(iter(self._until.values())) > monotonic():
                break
            event = next(iter(self._until))
            if (record := self._events.get(event)) is not None:
                namespace, _, name = event.removeprefix(EVENTS).partition("/")
                target = WriteTarget(self._served, namespace, name, WriteOptions())
                with contextlib.suppress(KeyNotFound, RevisionConflict):
                    await self._writer.remove(target, record, self._served.read(record))
            self._until.pop(event, None)
        return min(max(self._seconds / 20, LEAST_SECONDS), MOST_SECONDS)


def _age(event: Json) -> float:
    """How many seconds ago an event was written last, as far as it tells."""
    texts = [event.get("lastTimestamp"), event.get("eventTime"), event["metadata"].get("creationTimestamp")]
    texts.append((event.get("series") or {}).get("lastObservedTime"))
    times = []
    for text in texts:
        with contextlib.suppress(TypeError, ValueError):
            times.append(datetime.fromisoformat(str(text)))
    if not times:
        return 0.0
    return max(0.0, (utc() - max(times)).total_seconds())
