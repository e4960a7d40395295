"""A controller of the server: sources that make keys due, a queue, and workers that reconcile one key each.

The queue is that of operators (``apimachinery.queue``): a key is worked on by one worker at a time, and whatever
happens to it meanwhile makes one more turn. A key that fails waits, each time twice as long up to a minute, and keeps
no other waiting; an event about it brings it back at once. A controller that looks at everything in each turn has one
key, ``EVERYTHING``.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter

from apimachinery.http.turns import Turns
from apimachinery.meta import clock
from apimachinery.meta.errors import ApiError
from apimachinery.queue.async_work_queue import AsyncWorkQueue
from apimachinery.queue.backlog import ExponentialBackoff
from apimachinery.queue.observing import Observer, Outcome
from apimachinery.storage.interface import Event, KeyNotFound, RevisionConflict, StorageError
from apimachinery.storage.watch_cache import ResourceCache, WatchCache

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.02, 60.0
MOMENT_SECONDS = 0.1
EVERYTHING = ""
_CONFLICTS = (404, 409)
"""Refusals which mean that somebody else was faster."""
SILENT = Observer()
log = logging.getLogger("kubewright.server.controllers")


class Running(ABC):
    """A task between ``start`` and ``stop``, which may hear of resources."""

    def __init__(self) -> None:
        self.observer = SILENT
        self._task: asyncio.Task[None] | None = None
        self._unlisten: list[Callable[[], None]] = []

    def hear(self, resource: ResourceCache, scope: str, heard: Callable[[Event], None]) -> None:
        """Calls ``heard`` with each event of a scope until the end."""
        self._unlisten.append(resource.listen(scope, heard))

    def start(self, observer: Observer = SILENT) -> None:
        """Begins; ``observer`` hears what becomes of the work."""
        self.observer = observer
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Hears nothing more, and ends; harmless when nothing began."""
        for unlisten in self._unlisten:
            unlisten()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @abstractmethod
    async def _run(self) -> None:
        """Reconciles until it is cancelled."""


def written(event: Event) -> Iterable[str]:
    """The storage key of what was written; what was deleted needs nothing."""
    return () if event.deleted else (event.record.key,)


def everything(event: Event) -> Iterable[str]:
    """Any event is a reason to look at everything."""
    del event
    return (EVERYTHING,)


@dataclass(frozen=True, slots=True)
class Source:
    """A scope of storage whose events make ``keys`` due. What is stored at the start counts as written then, where it
    is ``listed``."""

    scope: str
    keys: Callable[[Event], Iterable[str]] = written
    listed: bool = True


class Controller(Running):
    """Follows sources, and reconciles with so many workers the keys that are due."""

    def __init__(self, name: str, cache: WatchCache, *sources: Source, workers: int = 1) -> None:
        super().__init__()
        self.name = name
        self.cache = cache
        self._clock = clock.present()
        self.queue: AsyncWorkQueue[str] = AsyncWorkQueue(
            ExponentialBackoff(FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS), self._clock
        )
        self._sources = sources
        self._workers = workers

    def start(self, observer: Observer = SILENT) -> None:
        """Follows the sources, and begins to work."""
        self._unlisten.append(self._clock.follow(self))
        for source in self._sources:
            self.follow(source)
        super().start(observer)

    def wake(self) -> None:
        self.queue.wake()

    @property
    def busy(self) -> bool:
        """See ``clock.ClockFollower``. What is due in a moment counts: a retry, the last look at a pod that ends."""
        return self.queue.backlog.has_work(MOMENT_SECONDS)

    def follow(self, source: Source) -> None:
        """Has the events of a source make keys due."""

        def heard(event: Event) -> None:
            for key in source.keys(event):
                self.queue.add(key)

        resource = self.cache.resource(source.scope)
        self.hear(resource, source.scope, heard)
        if source.listed:
            for record in resource.snapshot(source.scope).records:
                heard(Event(record, None))

    @abstractmethod
    async def reconcile(self, key: str) -> float | None:
        """Makes what belongs to a key as it should be; after how many seconds it should be looked at again without an
        event. May raise anything, to be called again."""

    async def _run(self) -> None:
        await asyncio.gather(*(self._work() for _ in range(self._workers)))

    async def _work(self) -> None:
        turns = Turns()
        while (key := await self.queue.get()) is not None:
            self.observer.queued(self.name, len(self.queue))
            began = perf_counter()
            try:
                outcome = await self._look_at(key)
            finally:
                self.queue.done(key)
            self.observer.reconciled(self.name, outcome, perf_counter() - began)
            await turns.give_way()

    async def _look_at(self, key: str) -> Outcome:
        try:
            seconds = await self.reconcile(key)
        except (KeyNotFound, RevisionConflict):
            return self._again(key, "conflict", "somebody else wrote it meanwhile", logging.DEBUG)
        except (ApiError, StorageError) as error:
            if isinstance(error, ApiError) and error.code in _CONFLICTS:
                return self._again(key, "conflict", error.message, logging.DEBUG)
            return self._again(key, "error", str(error) or type(error).__name__, logging.WARNING)
        except Exception as error:
            log.exception("a controller failed", extra={"controller": self.name, "key": key})
            return self._again(key, "error", repr(error), logging.WARNING)
        self.queue.forget(key)
        if seconds is None:
            return "success"
        self.queue.add_after(key, seconds)
        return "again"

    def _again(self, key: str, outcome: Outcome, why: str, level: int) -> Outcome:
        self.queue.add_rate_limited(key)
        failures = self.queue.failures(key)
        self.observer.retried(self.name, failures)
        told = {"controller": self.name, "key": key, "failures": failures, "why": why}
        log.log(level, "a controller tries a key again", extra=told)
        return outcome
