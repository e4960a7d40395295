"""What waits to be sent to watchers: encoded events, one backlog for each client.

Backlogs are bounded twice: each of them, and all together (``Budget``). What waits for several is counted once; past
the total whoever holds more than an equal share of it is cut off. A backlog leaves in pieces, so that the socket's own
buffer stays small.
"""

from __future__ import annotations

import asyncio

from apimachinery.http.governor import SMALL_BYTES, Account, Governor

BACKLOG_BYTES = 32 << 20
ALL_BACKLOGS_BYTES = 192 << 20
PIECE_BYTES = 256 << 10
CHUNK_OVERHEAD = 64


class Budget(Account):
    """What all backlogs together hold, in bytes."""

    __slots__ = ("cut_off", "watchers")

    def __init__(self, total: int = ALL_BACKLOGS_BYTES, governor: Governor | None = None) -> None:
        super().__init__("watch_backlogs", total, governor)
        self.watchers = 0
        self.cut_off = 0

    def allows(self, weight: int) -> bool:
        """Whether a backlog of this weight may grow: more than its share it may have while there is room."""
        return weight * self.watchers <= self.limit


class Watcher:
    """One client's stream: a backlog of encoded events, and who waits for it."""

    __slots__ = ("_backlog", "_budget", "_size", "_waiter", "_weight", "ended", "fresh", "since")

    def __init__(self, budget: Budget | None = None) -> None:
        self._backlog: list[bytes] = []
        self._size = 0
        self._weight = 0
        self._budget = budget or Budget()
        self._budget.watchers += 1
        self._waiter: asyncio.Future[None] | None = None
        self.ended = False
        self.fresh = True
        self.since = 0

    def push(self, chunk: bytes, sharers: int = 1) -> None:
        """Adds to the backlog; whoever calls sees to ``wake``. ``sharers`` watchers are given this chunk."""
        if self.ended:
            return
        self._backlog.append(chunk)
        size = len(chunk)
        self._size += size
        # A chunk that many share takes its bytes once.
        weight = size // sharers + CHUNK_OVERHEAD
        self._weight += weight
        budget = self._budget
        budget.held += weight
        # A large chunk asks the governor too; small ones would ask too often.
        if self._size > BACKLOG_BYTES or (
            (budget.held > budget.limit or (size > SMALL_BYTES and not budget.fits(0)))
            and not budget.allows(self._weight)
        ):
            budget.cut_off += 1
            self._clear()
            self.end()

    def _clear(self) -> None:
        self._backlog = []
        self._budget.held -= self._weight
        self._size = self._weight = 0

    def leave(self) -> None:
        """Gives up what is left; the stream is over."""
        self._clear()
        # Shares grow as watchers go.
        self._budget.watchers -= 1

    def wake(self) -> None:
        """Lets the stream go on."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self) -> None:
        """Ends the stream after its backlog."""
        self.ended = True
        self.wake()

    def send(self, chunk: bytes) -> None:
        """Adds to the backlog and wakes."""
        self.push(chunk)
        self.wake()

    async def take(self) -> bytes:
        """What has come since, a piece of it where it is much; empty at the end."""
        while not self._backlog and not self.ended:
            # One reader for each stream, so one future is enough.
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            self._waiter = None
        backlog = self._backlog
        if not backlog:
            return b""
        if self._size <= PIECE_BYTES:
            self._clear()
            # The usual case: one event, handed on without a copy.
            return backlog[0] if len(backlog) == 1 else b"".join(backlog)
        size = number = 0
        while number < len(backlog) and size < PIECE_BYTES:
            size += len(backlog[number])
            number += 1
        piece = b"".join(backlog[:number])
        del backlog[:number]
        if not backlog:
            self._clear()
        else:
            # Weights are shared sizes, so a part of the backlog has about that part of the weight.
            weight = self._weight * size // self._size
            self._size -= size
            self._weight -= weight
            self._budget.held -= weight
        return piece
