"""The informer of asyncio programs: handlers are tasks; what it promises is in ``informer``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import Generic, Self, TypeAlias, TypeVar

from apimachinery.client.access import Key, key_of
from apimachinery.client.async_reflector import AsyncReflector
from apimachinery.client.errors import UnreadableObject
from apimachinery.client.informer import IndexFunction, Store, late
from apimachinery.client.reflector import Change

T = TypeVar("T")

AsyncHandler: TypeAlias = Callable[[Change[T]], Awaitable[None]]

_log = logging.getLogger("kubewright.client")


class AsyncInformer(Generic[T]):
    """A store kept current by a task, with handlers in tasks of their own; iterate it for the changes."""

    def __init__(
        self, reflector: AsyncReflector[T], *, indexers: Mapping[str, IndexFunction[T]] | None = None
    ) -> None:
        self._reflector = reflector
        self.store: Store[T] = Store(indexers, reflector.namespace)
        self._queues: list[asyncio.Queue[Change[T]]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._main: asyncio.Task[None] | None = None
        self._synced = asyncio.Event()

    def add_handler(self, handler: AsyncHandler[T], *, resync_seconds: float = 0.0) -> None:
        """Awaits ``handler`` with every change, one at a time, in order. What it raises is logged."""
        self._tasks.append(asyncio.create_task(self._serve(handler, self._subscribe(), resync_seconds)))

    def start(self) -> Self:
        """Begins to mirror."""
        self._main = asyncio.create_task(self._run())
        return self

    async def wait_until_synced(self, timeout: float | None = None) -> None:
        """Waits for the first whole state. Raises ``TimeoutError``, or what ended the mirroring."""
        try:
            async with asyncio.timeout(timeout):
                await self._synced.wait()
        except TimeoutError:
            raise TimeoutError(late(timeout, self.last_error)) from None
        self._raise_failure()

    @property
    def synced(self) -> bool:
        """Whether the store has had a first whole state."""
        return self._synced.is_set() and self._failure() is None

    @property
    def healthy(self) -> bool:
        """Whether the store is whole and was kept current at the last try."""
        return self._synced.is_set() and self.last_error is None

    @property
    def unreadable(self) -> Mapping[Key, UnreadableObject]:
        """The objects of the selection that do not fit the model, with their JSON: not in the store."""
        return self._reflector.mirror.unreadable

    @property
    def last_error(self) -> Exception | None:
        """What keeps the store from being current; None while it is."""
        return self._failure() or self._reflector.last_error

    async def stop(self) -> None:
        """Ends everything; changes that handlers have not received yet are given up."""
        tasks = [*self._tasks, *([self._main] if self._main is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._raise_failure()

    async def changes(self) -> AsyncIterator[Change[T]]:
        """Every change from now on, after an ADDED for each object that is there; ends with the mirroring."""
        subscription = self._subscribe()
        main = self._main
        while main is not None:
            getter = asyncio.ensure_future(subscription.get())
            try:
                await asyncio.wait({getter, main}, return_when=asyncio.FIRST_COMPLETED)
                if not getter.done():
                    self._raise_failure()
                    return
                yield getter.result()
            finally:
                getter.cancel()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _subscribe(self) -> asyncio.Queue[Change[T]]:
        subscription: asyncio.Queue[Change[T]] = asyncio.Queue()
        for obj in self.store.list():
            subscription.put_nowait(Change("ADDED", obj, initial=True))
        self._queues.append(subscription)
        return subscription

    async def _run(self) -> None:
        try:
            async for changes in self._reflector:
                for change in changes:
                    self.store.take(change)
                self.store.version = self._reflector.mirror.version  # before anybody acts on a change
                for change in changes:
                    for subscription in self._queues:
                        subscription.put_nowait(change)
                self._synced.set()
        finally:
            self._synced.set()

    async def _serve(
        self, handler: AsyncHandler[T], subscription: asyncio.Queue[Change[T]], resync_seconds: float
    ) -> None:
        clock = asyncio.get_running_loop().time
        due = clock() + resync_seconds
        while True:
            try:
                async with asyncio.timeout_at(due if resync_seconds else None):
                    changes = [await subscription.get()]
            except TimeoutError:
                changes = [Change("MODIFIED", obj, obj) for obj in self.store.list()]
                due = clock() + resync_seconds
            for change in changes:
                try:
                    await handler(change)
                except Exception:  # one bad handler call must not end the stream of the others
                    _log.exception("a handler failed on %s of %s/%s", change.kind, *key_of(change.object))

    def _failure(self) -> Exception | None:
        main = self._main
        if main is None or not main.done() or main.cancelled():
            return None
        error = main.exception()
        return error if isinstance(error, Exception) else None

    def _raise_failure(self) -> None:
        if error := self._failure():
            raise error
