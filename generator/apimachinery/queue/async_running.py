"""What concurrency is made of in asyncio programs; ``running`` has the same names for threads.

These two files are written by hand; every other module is written once over the names they share.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable
from typing import Any

_log = logging.getLogger("kubewright.controller")


async def async_sleep(seconds: float) -> None:
    """Waits."""
    await asyncio.sleep(seconds)


class AsyncBell:
    """Wakes waiters, from any thread. A waiter says which ring it heard last, so that none is missed."""

    def __init__(self) -> None:
        self.rings = 0
        self._waiters: set[asyncio.Future[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def ring(self) -> None:
        """Wakes everybody who waits."""
        self.rings += 1
        loop = self._loop
        if loop is None:
            return
        try:
            inside = asyncio.get_running_loop() is loop
        except RuntimeError:
            inside = False
        if inside:
            self._wake()
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(self._wake)

    async def wait(self, heard: int, seconds: float | None = None) -> None:
        """Waits for a ring after number ``heard``, at most that many seconds."""
        self._loop = asyncio.get_running_loop()
        if self.rings != heard:
            return
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.add(waiter)
        try:
            await asyncio.wait([waiter], timeout=seconds)
        finally:
            self._waiters.discard(waiter)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


class AsyncFlag:
    """Set once; whoever waits for it goes on."""

    def __init__(self) -> None:
        self._bell = AsyncBell()
        self._set = False

    @property
    def is_set(self) -> bool:
        """Whether ``set`` was called."""
        return self._set

    def set(self) -> None:
        """Lets everybody go on; from any thread."""
        self._set = True
        self._bell.ring()

    async def wait(self, seconds: float | None = None) -> bool:
        """Waits until it is set, at most that many seconds; whether it is."""
        heard = self._bell.rings
        if not self._set:
            await self._bell.wait(heard, seconds)
        return self._set


class AsyncRunningGroup:
    """Things that run at the same time."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def spawn(self, name: str, function: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Starts ``function``; what it raises is logged."""
        self._tasks.append(asyncio.create_task(_guarded(name, function, arguments), name=name))

    def cancel(self) -> None:
        """Ends all of them where they wait next."""
        for task in self._tasks:
            task.cancel()

    @property
    def ended(self) -> list[str]:
        """The names of those that have ended."""
        return [task.get_name() for task in self._tasks if task.done()]

    async def join(self, seconds: float | None = None) -> bool:
        """Waits for the end of all of them; whether they ended in time. Those that did not are cancelled."""
        if not self._tasks:
            return True
        _, left = await asyncio.wait(self._tasks, timeout=seconds)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._tasks = []
        return not left


async def _guarded(name: str, function: Callable[..., Awaitable[None]], arguments: tuple[Any, ...]) -> None:
    try:
        await function(*arguments)
    except Exception:  # nobody else is there to hear of it
        _log.exception("%s ended with an error", name)


def async_on_signals(call: Callable[[], None]) -> Callable[[], None]:
    """Calls on SIGTERM and SIGINT; gives what undoes that."""
    loop = asyncio.get_running_loop()
    known: list[signal.Signals] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows; another thread
            loop.add_signal_handler(number, call)
            known.append(number)

    def undo() -> None:
        for number in known:
            loop.remove_signal_handler(number)

    return undo
