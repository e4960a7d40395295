"""Many writes of one request or controller: decided one after the other, and waited for together.

Theory. Most of what a write takes is the wait for the disk, and the storage commits what waits at the same time in one
transaction. So whoever has many writes to make hands each over as soon as it is decided, and decides the next one
meanwhile. Nobody sees the difference: writes are stored, and their events sent, in the order in which they were handed
over (which a storage that others share may change among those under way), each with a revision of its own. A
failure ends it as if they had been made one by one: all before it are made, none is begun after it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

AT_ONCE = 16
"""How many are under way. More would be little faster, and hold the loop longer when all of them end at once."""


class Together:
    """``async with Together() as writes``: the end of it waits for all, and raises the failure of the earliest."""

    def __init__(self) -> None:
        self._under_way: deque[asyncio.Task[Any]] = deque()
        self._raised = False

    async def add(self, write: Coroutine[Any, Any, Any]) -> None:
        """Begins a write; waits for the oldest where there are many. Raises what that one raised."""
        self._under_way.append(asyncio.get_running_loop().create_task(write))
        if len(self._under_way) >= AT_ONCE:
            await self._oldest()

    async def settle(self) -> None:
        """Waits for all that were begun. Raises the failure of the earliest."""
        while self._under_way:
            await self._oldest()

    async def _oldest(self) -> None:
        task = self._under_way[0]
        await asyncio.wait((task,))
        self._under_way.popleft()
        if task.exception() is not None:
            self._raised = True
        task.result()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                await self.settle()
                return
            except BaseException as failure:
                fault = failure
                await self._wind_up(fault)
                raise
        assert fault is not None
        earlier = await self._wind_up(fault)
        if earlier is not None and not self._raised:
            raise earlier from None

    async def _wind_up(self, fault: BaseException) -> BaseException | None:
        """Waits for what is under way, which nobody waits for any more where ``fault`` is no ordinary one; the failure
        of the earliest."""
        left, self._under_way = list(self._under_way), deque()
        if not isinstance(fault, Exception):
            for task in left:
                task.cancel()
        ends = await asyncio.gather(*left, return_exceptions=True)
        return next((end for end in ends if isinstance(end, Exception)), None)
