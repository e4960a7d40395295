"""A server on an event loop of its own, on a thread of its own."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

STOP_SECONDS = 120.0
"""Longer than anything that a server waits for at its end, on a busy machine too."""


class StartError(RuntimeError):
    """What was asked of a server for tests cannot be; the text says what to do."""


class StopError(RuntimeError):
    """A server that was asked to end goes on; the text says where it is."""


class Startable(Protocol):
    """A server that runs on the event loop which starts it."""

    async def start(self) -> None:
        """Serves when it returns."""

    async def stop(self) -> None:
        """Ends it."""


ServerT = TypeVar("ServerT", bound=Startable)
ResultT = TypeVar("ResultT")


class ServerThread(Generic[ServerT]):
    """Starts a server when made; ``stop`` ends it and its thread. Raises what the server's start raises."""

    def __init__(self, server: ServerT) -> None:
        self.server = server
        self._settled = threading.Event()
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="kubewright-server", daemon=True)
        self._thread.start()
        self._settled.wait()
        if self._fault is not None:
            self._thread.join()
            raise self._fault

    def stop(self) -> None:
        """Ends the server in order; harmless when repeated. Raises StopError where it does not end."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(STOP_SECONDS)
        if self._thread.is_alive():
            frame = sys._current_frames().get(self._thread.ident or 0)
            place = "".join(traceback.format_stack(frame)) if frame is not None else ""
            raise StopError(f"the server did not end within {STOP_SECONDS:.0f} s; its thread is at\n{place}")

    def call(self, function: Callable[[], ResultT]) -> ResultT:
        """Calls a short function on the server's loop. Raises what it raises, RuntimeError after the end,
        TimeoutError where the loop does not come to it."""

        async def called() -> ResultT:
            return function()

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result(STOP_SECONDS)

    def _run(self) -> None:
        loop = new_event_loop()
        try:
            loop.run_until_complete(self._serve())
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        try:
            await self.server.start()
        except BaseException as fault:
            self._fault = fault
            return
        finally:
            self._settled.set()
        await self._end.wait()
        await self.server.stop()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
