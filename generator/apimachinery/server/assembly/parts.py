"""How a server is assembled: a table of parts, which start in its order and stop in reverse.

A part is made right before it starts, by a constructor that is given what it needs: parts further up, or a callable
where two parts need each other. When one cannot start, those before it stop, and the failure is raised.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from apimachinery.meta.errors import ApiError
from apimachinery.queue.observing import Observer
from apimachinery.server.controllers.leadership import Loop
from apimachinery.storage.interface import StorageError

log = logging.getLogger("kubewright.server")
Action = Callable[[], Awaitable[object]]


class ServerPart(Protocol):
    """Something that works between ``start`` and ``stop``."""

    async def start(self) -> None:
        """Returns when the part works. Raises with nothing left open when it cannot."""

    async def stop(self) -> None:
        """Ends it; called once, after a start that succeeded."""


Make = Callable[[], ServerPart | None]
"""Makes a part; None where the server has none of its sort."""


class Assembly:
    """The parts of a table as one."""

    def __init__(self, table: Sequence[Make]) -> None:
        self._table = table
        self._started: list[ServerPart] = []

    async def start(self) -> None:
        """Starts the parts in order. Raises what the first raises that cannot start, after stopping those before it."""
        try:
            for make in self._table:
                if (part := make()) is not None:
                    await part.start()
                    self._started.append(part)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stops them in reverse; one that fails keeps no other from stopping. Harmless when repeated."""
        while self._started:
            part = self._started.pop()
            try:
                await part.stop()
            except Exception:
                log.exception("a part did not stop cleanly", extra={"part": type(part).__name__})


async def _nothing() -> None:
    """Does nothing, for a part without a start or a stop."""


class Ends:
    """A part of two functions."""

    def __init__(self, start: Action = _nothing, stop: Action = _nothing) -> None:
        self._start, self._stop = start, stop

    async def start(self) -> None:
        await self._start()

    async def stop(self) -> None:
        await self._stop()


class Background:
    """A coroutine that runs until it is cancelled."""

    def __init__(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._run = run

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class Bootstrap(Ends):
    """A step of the start. Stored objects may make it fail, which must not keep a server from starting: controllers or
    the next start repeat it."""

    async def start(self) -> None:
        """Runs the step. Raises StorageError alone; all else is logged."""
        try:
            await super().start()
        except StorageError:
            raise
        except ApiError as error:
            log.error("a step of the start was refused", extra={"error": str(error)})
        except Exception:
            log.exception("a step of the start failed")


class Looping(Bootstrap):
    """A controller, which may have to ``prepare`` something before it runs."""

    def __init__(self, loop: Loop, observer: Observer, prepare: Action = _nothing) -> None:
        super().__init__(prepare, loop.stop)
        self._loop, self._observer = loop, observer

    async def start(self) -> None:
        """Starts the controller once it is prepared. Raises StorageError."""
        try:
            await super().start()
        except BaseException:
            await self._loop.stop()
            raise
        self._loop.start(self._observer)
