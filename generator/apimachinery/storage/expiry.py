"""Objects with a time to live, for drivers that end them themselves: which are due, and the task that ends them."""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections.abc import Awaitable, Callable

from apimachinery.storage.interface import Record, StorageError, Value
from apimachinery.storage.objects import NotAnObject, value_of

log = logging.getLogger("kubewright.storage")

ROUND_SECONDS = 10.0
PER_ROUND = 1000


class Expiry:
    """The keys that are due, by time. ``present`` gives the newest record of a key, ``end`` deletes one."""

    def __init__(
        self,
        present: Callable[[str], Record | None],
        end: Callable[[str, int, Value], Awaitable[Record]],
    ) -> None:
        self._present = present
        self._end = end
        self._due: list[tuple[float, str, int]] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def used(self) -> bool:
        """Whether there ever was such a key."""
        return self._task is not None

    def add(self, key: str, revision: int, at: float) -> None:
        """Ends the record of a key at a moment (seconds since 1970), if it is the newest then."""
        heapq.heappush(self._due, (at, key, revision))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Ends the task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(ROUND_SECONDS)
            await self.round()

    async def round(self) -> None:
        """Ends what is due, some of it where it is much."""
        for _ in range(PER_ROUND):
            if not self._due or self._due[0][0] > time.time():
                return
            _, key, revision = heapq.heappop(self._due)
            record = self._present(key)
            if record is None or record.revision != revision:
                continue
            try:
                await self._end(key, revision, value_of(record.value))
            except (StorageError, NotAnObject) as fault:
                log.warning("an object is past its time, and stays: %s", fault, extra={"key": key})
