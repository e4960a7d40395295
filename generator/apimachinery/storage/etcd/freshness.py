"""How far this server has seen of what etcd holds, and how a caller waits until that is far enough.

Theory.

- **A consistent read** asks etcd which revision is the newest, by a read that a quorum confirms, and waits until the
  stream of events has come that far. All who ask at one time share one question.
- **Where the stream stays behind** because the newest revision is not below this prefix, etcd is asked to report
  progress. Its answer may overtake events before releases 3.4.25 and 3.5.8 (etcd issue 15220): there, a write to a key
  of our own, whose event comes in order, says the same.
- **A stream that is silent** while somebody waits is opened again, and a caller that has waited as long as a read may
  take is answered that etcd is unreachable.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import time
from itertools import count
from typing import Protocol

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.connection import READ_SECONDS, EtcdConnection
from apimachinery.storage.etcd.health import Members
from apimachinery.storage.etcd.keys import Keys
from apimachinery.storage.interface import StorageClosed, StorageError, StorageUnreachable

PROGRESS_SECONDS = 0.2
SILENCE_SECONDS = 2.0


class Stream(Protocol):
    """What is asked of the stream of events."""

    def ask_progress(self) -> None:
        """Asks for a notification of how far it has come."""

    def restart(self) -> None:
        """Opens it again."""


class Freshness:
    """The revision that the stream has come to, and who waits for a later one."""

    def __init__(self, connection: EtcdConnection, keys: Keys, members: Members, writable: bool) -> None:
        self.revision = 1
        self.closed = False
        self.stream: Stream | None = None  # set when there is one
        self._connection = connection
        self._keys = keys
        self._members = members
        self._writable = writable
        self._waiting: list[tuple[int, int, float, asyncio.Future[None]]] = []  # revision, number, since
        self._numbers = count()
        self._pressing: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._asked: list[asyncio.Future[None]] = []

    def advance(self, revision: int) -> None:
        """Wakes who waited for the events up to ``revision``."""
        self.revision = max(self.revision, revision)
        while self._waiting and self._waiting[0][0] <= self.revision:
            waiter = heapq.heappop(self._waiting)[3]
            if not waiter.done():
                waiter.set_result(None)

    async def catch_up(self) -> None:
        """Returns when the stream has come to what was etcd's newest revision after the call. Raises StorageClosed,
        StorageUnreachable, EtcdRefusal."""
        if self.closed:
            raise StorageClosed("the storage is closed")
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked.append(asked)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        await asked

    async def _ask(self) -> None:
        try:
            while self._asked:
                # Whoever asks from here on gets an answer of their own: this one may be older than their call.
                asked, self._asked = self._asked, []
                try:
                    if self.closed:
                        raise StorageClosed("the storage is closed")
                    newest = await self._newest()
                except Exception as fault:
                    for waiter in asked:
                        if not waiter.done():
                            waiter.set_exception(fault)
                    continue
                for waiter in asked:
                    self._settle_at(newest, waiter)
        finally:
            self._asking = None

    async def _newest(self) -> int:
        # count_only of a key of ours: the cheapest read whose answer a quorum confirms.
        request = messages.RangeRequest(key=self._keys.barrier, count_only=True)
        answer = await self._connection.read(messages.RANGE, request)
        return int(answer.header.revision)

    async def reach(self, revision: int) -> None:
        """Returns when the stream has come to a revision, or will not in time: what was written is written."""
        if revision <= self.revision:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settle_at(revision, waiter)
        # The write is durable; that its event is late is no failure of the write.
        with contextlib.suppress(StorageUnreachable):
            await waiter

    def _settle_at(self, revision: int, waiter: asyncio.Future[None]) -> None:
        """Settles ``waiter`` when the stream has come to ``revision``."""
        if waiter.done():
            return
        if revision <= self.revision:
            waiter.set_result(None)
            return
        if self.closed:  # nobody would wake it any more
            waiter.set_exception(self._behind(revision))
            return
        # The number breaks ties: futures cannot be compared.
        heapq.heappush(self._waiting, (revision, next(self._numbers), time.monotonic(), waiter))
        if self._pressing is None:
            self._pressing = asyncio.create_task(self._press())

    async def _press(self) -> None:
        """Sees to it that the stream comes to where somebody waits for it."""
        seen, moved = self.revision, time.monotonic()
        try:
            while self._waiting and not self.closed:
                await asyncio.sleep(PROGRESS_SECONDS)
                now = time.monotonic()
                # As long as a read may take.
                self._give_up(now - READ_SECONDS)
                if self.revision != seen:
                    seen, moved = self.revision, now
                # Mostly the event is on its way already; etcd is asked only for those who wait for a while.
                elif (
                    self._waiting and min(since for _, _, since, _ in self._waiting) < now - PROGRESS_SECONDS
                ):
                    if now - moved > SILENCE_SECONDS and self.stream is not None:
                        self.stream.restart()
                        moved = now
                    with contextlib.suppress(StorageError):
                        await self._ask_progress()
        finally:
            self._pressing = None

    async def _ask_progress(self) -> None:
        if not self._members.ordered_progress and self._writable:
            await self.make_event()
        elif self.stream is not None:
            self.stream.ask_progress()

    async def make_event(self) -> None:
        """Writes a key that is no object's: its event is behind all that there were. Nothing where nothing may be
        written."""
        if not self._writable:
            return
        put = messages.PutRequest(key=self._keys.barrier, value=b"1")
        await self._connection.write(messages.TxnRequest(success=[messages.RequestOp(request_put=put)]))

    def _give_up(self, before: float) -> None:
        """Fails those who wait since before a moment."""
        late = [entry for entry in self._waiting if entry[2] < before]
        if not late:
            return
        self._waiting = [entry for entry in self._waiting if entry[2] >= before]
        # Filtering breaks the order of a heap.
        heapq.heapify(self._waiting)
        for revision, _, _, waiter in late:
            if not waiter.done():
                waiter.set_exception(self._behind(revision))

    def _behind(self, revision: int) -> StorageUnreachable:
        return StorageUnreachable(
            f"etcd is at revision {revision}, and its events came only up to {self.revision}"
        )

    async def close(self) -> None:
        """Fails those who wait, and those who come."""
        self.closed = True
        # The questions end by themselves, since the connection answers or fails in time.
        if self._asking is not None:
            await asyncio.gather(self._asking, return_exceptions=True)
        if self._pressing is not None:
            self._pressing.cancel()
            await asyncio.gather(self._pressing, return_exceptions=True)
        self._give_up(time.monotonic() + 1)
