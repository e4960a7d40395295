"""Work that would hold the loop goes to a thread: large bodies, long lists, whatever is computed for them.

Python runs one thread at a time, so this saves no time; but a thread gives way every moment, and the loop answers
others meanwhile. Two threads are enough to let a short piece of work pass a long one, and few enough for the loop to
get its turn. What is handed over must not change what others see: it computes with objects of the request alone.

What does stop the loop is the collector of cyclic garbage, which walks over all objects there are, again and again
while a large body becomes millions of them. None of that is garbage, and it holds no cycles; so the collector waits
while such work runs, except for the young objects once in a while.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

MANY_RECORDS = 1_000
"""Above this a list is joined, encoded and selected from apart."""

COLLECTED_EVERY = 20
"""Pieces of work after which young objects are collected where there is always some running."""

ASKING = 2
"""Where work is done that may wait for somebody else: on threads of which there are more, and which compute little."""
ASKING_THREADS = 32

TURN_SECONDS = 0.005
"""How long work that has to stay on the loop goes on before others have their turn."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_threads = ThreadPoolExecutor(2, "kubewright-work")
_asking = ThreadPoolExecutor(ASKING_THREADS, "kubewright-asking")


class _Collector:
    """The collector of cyclic garbage, held back while work runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._held_back = False
        self._since = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._running and gc.isenabled():
                gc.disable()
                self._held_back = True
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            self._since += 1
            if not self._running and self._held_back:
                gc.enable()
                self._held_back = False
            elif self._since < COLLECTED_EVERY:
                return
            self._since = 0
        gc.collect(0)


_collector = _Collector()


def _worked(work: Callable[[], _R]) -> _R:
    with _collector:
        return work()


async def apart(work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """What ``work`` answers or raises, computed on a thread."""
    return await asyncio.get_running_loop().run_in_executor(_threads, _worked, lambda: work(*args, **kwargs))


async def apart_if(where: int, work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """The same: here and now where ``where`` is false, on one of the other threads where it is ``ASKING``."""
    if not where:
        return work(*args, **kwargs)
    if where == ASKING:
        return await asyncio.get_running_loop().run_in_executor(_asking, lambda: work(*args, **kwargs))
    return await apart(work, *args, **kwargs)


class Turns:
    """Work of many steps that stays on the loop, because what it reads may change otherwise: others get their turn in
    between."""

    def __init__(self) -> None:
        self._since = time.thread_time()

    async def give_way(self) -> None:
        """Called after each step."""
        if time.thread_time() - self._since > TURN_SECONDS:
            await asyncio.sleep(0)
            self._since = time.thread_time()
