"""A thread that does one piece of work after the other for an event loop.

An executor makes two futures for a piece, takes half a dozen locks, and wakes the loop twice where something is to be
done there before whoever waits goes on: for a commit of a few rows that is as much as the rows are.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

_Result = TypeVar("_Result")
_Piece = tuple[asyncio.Future[Any], Callable[[], Any], Callable[[], None] | None]


class OwnThread:
    """One thread, which is there until ``end``; what it is at when the process ends is not finished."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._pieces: SimpleQueue[_Piece | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def do(
        self, work: Callable[[], _Result], then: Callable[[], None] | None = None
    ) -> asyncio.Future[_Result]:
        """Has work done after what was handed over before. ``then`` is called on the loop, if the work does not raise,
        in a turn before whoever waits goes on. Work that nobody waits for any more is left out, if it has not begun."""
        future: asyncio.Future[_Result] = self._loop.create_future()
        self._pieces.put((future, work, then))
        return future

    def end(self) -> None:
        """Returns when all that was handed over is done."""
        self._pieces.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (piece := self._pieces.get()) is not None:
            future, work, then = piece
            made, fault = None, None
            if not future.cancelled():
                try:
                    made = work()
                except BaseException as raised:
                    fault = raised
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(_end, future, made, fault, then)
            del piece, future, work, then, made, fault


def _end(
    future: asyncio.Future[Any], made: Any, fault: BaseException | None, then: Callable[[], None] | None
) -> None:
    try:
        if fault is None and then is not None:
            then()
    finally:
        if future.done():  # whoever waited has given up
            pass
        elif fault is None:
            future.set_result(made)
        else:
            future.set_exception(fault)
