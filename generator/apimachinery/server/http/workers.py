"""Work that would hold the loop goes to a thread: large bodies, long lists, whatever is computed for them.

Python runs one thread at a time, so this saves no time; but a thread gives way every moment, and the loop answers
others meanwhile. Two threads are enough to let a short piece of work pass a long one, and few enough for the loop to
get its turn. What is handed over must not change what others see: it computes with objects of the request alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

MANY_RECORDS = 1_000
"""Above this a list is joined, encoded and selected from apart."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_threads = ThreadPoolExecutor(2, "kubewright-work")


async def apart(work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """What ``work`` answers or raises, computed on a thread."""
    return await asyncio.get_running_loop().run_in_executor(_threads, lambda: work(*args, **kwargs))


async def apart_if(large: bool, work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """The same, computed here and now where it is not large."""
    return await apart(work, *args, **kwargs) if large else work(*args, **kwargs)
