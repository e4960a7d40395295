"""What controllers have in common: to run until they are stopped, to hear of resources, to work, and to try again.

Theory. A controller that follows resources works when it was woken, never twice at once; what happens meanwhile
wakes it again, so nothing that is heard is lost, and any number of changes make one more turn. ``Rounds`` looks at
everything in each turn. ``Keyed`` looks at what is due, key by key, so that an object which fails keeps no other
waiting. What is refused (ApiError, StorageError) is tried again after a pause; anything else is a bug of ours: it is
logged, and the next change brings the next try.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable

from apimachinery.meta.errors import ApiError
from apimachinery.storage.interface import Event, StorageError
from apimachinery.storage.watch_cache import ResourceCache

PAUSE_SECONDS = 0.25
log = logging.getLogger("kubewright.server.controllers")


class Running(ABC):
    """A task between ``start`` and ``stop``, which may hear of resources."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._unlisten: list[Callable[[], None]] = []

    def hear(self, resource: ResourceCache, scope: str, heard: Callable[[Event], None]) -> None:
        """Calls ``heard`` with each event of a scope until the end."""
        self._unlisten.append(resource.listen(scope, heard))

    def start(self) -> None:
        """Begins."""
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
        """What it does until it is cancelled."""


class Following(Running):
    """A task that takes a turn whenever it was woken."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Has it take a turn."""
        self._changed.set()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._turn()

    @abstractmethod
    async def _turn(self) -> None:
        """One turn. Raises nothing."""


class Rounds(Following):
    """Looks at everything in each turn, the first at the start. ``failed`` is what the log says of a bug."""

    def __init__(self, failed: str) -> None:
        super().__init__()
        self._failed = failed
        self.wake()

    def heard(self, event: Event) -> None:
        """Any event is a reason for a round."""
        del event
        self.wake()

    async def _turn(self) -> None:
        try:
            await self.round()
        except (ApiError, StorageError):
            await asyncio.sleep(PAUSE_SECONDS)
            self.wake()
        except Exception:
            log.exception(self._failed)

    @abstractmethod
    async def round(self) -> None:
        """Makes everything as it should be. Raises ApiError and StorageError, to be called again."""


class Keyed(Following):
    """Looks at one key after the other. ``failed`` is what the log says of a bug, ``pause`` the seconds that pass after
    a refusal."""

    def __init__(self, failed: str, pause: float = PAUSE_SECONDS) -> None:
        super().__init__()
        self._failed = failed
        self._pause = pause
        self._due: dict[str, None] = {}

    def look_at(self, key: str) -> None:
        """Has it look at a key."""
        self._due[key] = None
        self.wake()

    def heard(self, event: Event) -> None:
        """Looks at what was written; what was deleted needs nothing."""
        if not event.deleted:
            self.look_at(event.record.key)

    async def _turn(self) -> None:
        while self._due:
            key = next(iter(self._due))
            del self._due[key]
            try:
                await self.reconcile(key)
            except (ApiError, StorageError):
                self._due[key] = None
                await asyncio.sleep(self._pause)
            except Exception:
                log.exception(self._failed, extra={"key": key})

    @abstractmethod
    async def reconcile(self, key: str) -> None:
        """Makes what belongs to a key as it should be. Raises ApiError and StorageError, to be called again."""
