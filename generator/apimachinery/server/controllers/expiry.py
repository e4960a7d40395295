"""Events end by themselves, some time after they were written last (kube-apiserver's ``--event-ttl``)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from datetime import UTC, datetime

from apimachinery.kinds.hooks import Json
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.following import Running
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, KeyNotFound, RevisionConflict, StorageError
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

EVENTS = "/core/events/"
LEAST_SECONDS, MOST_SECONDS = 0.05, 10.0
"""How often is looked, at most and at least."""
AT_ONCE = 500
log = logging.getLogger("kubewright.server.expiry")


class EventExpiry(Running):
    """Deletes events whose time has come."""

    def __init__(self, served: Served, cache: WatchCache, writer: Writer, seconds: float) -> None:
        super().__init__()
        self._served = served
        self._writer = writer
        self._seconds = seconds
        self._events = cache.resource(EVENTS)
        # In the order of their last writes, so the first to end is first.
        self._until: OrderedDict[str, float] = OrderedDict()
        self.hear(self._events, EVENTS, self._heard)

    def start(self) -> None:
        """Follows what is stored, and what comes."""
        moment = time.monotonic()
        stored = [
            (moment + self._seconds - _age(decode(record.value)), record.key)
            for record in self._events.snapshot(EVENTS).records
        ]
        self._until = OrderedDict((key, until) for until, key in sorted(stored))
        super().start()

    def _heard(self, event: Event) -> None:
        key = event.record.key
        if event.deleted:
            self._until.pop(key, None)
        else:
            self._until[key] = time.monotonic() + self._seconds
            self._until.move_to_end(key)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(min(max(self._seconds / 20, LEAST_SECONDS), MOST_SECONDS))
            try:
                await self._expire()
            except StorageError as fault:
                log.warning("events could not be ended; they are tried again: %s", fault)
            except Exception:
                log.exception("events could not be ended")

    async def _expire(self) -> None:
        for _ in range(AT_ONCE):
            if not self._until or next(iter(self._until.values())) > time.monotonic():
                return
            key, _ = self._until.popitem(last=False)
            record = self._events.get(key)
            if record is None:
                continue
            namespace, _, name = key.removeprefix(EVENTS).partition("/")
            target = WriteTarget(self._served, namespace, name, WriteOptions())
            with contextlib.suppress(KeyNotFound, RevisionConflict):
                await self._writer.remove(target, record, self._served.read(record))


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
    return max(0.0, (datetime.now(UTC) - max(times)).total_seconds())
