"""The sending half of a connection: answers, in the pieces that a client takes.

A small answer is one write. A large one is handed to the transport as it is, not copied; over TLS it goes in pieces,
because all that is written is encrypted at once. Copying megabytes into sockets takes the loop's time too: when a large
event goes to many watchers, some of them are served in each turn of the loop (``Pace``). What is sent and not taken is
counted (``Account``), and ``is_stuck`` tells who takes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from heapq import heappop, heappush
from itertools import count
from typing import Any, cast

from apimachinery.http.compression import THRESHOLD_BYTES, gzip_parts, takes_gzip
from apimachinery.http.governor import Account, Crowded
from apimachinery.http.heads import head_of
from apimachinery.http.messages import Request, Response, StreamResponse

JOIN_BYTES = 1 << 16
PIECE_BYTES = 1 << 18
TURN_SECONDS = 0.001
"""A write of a megabyte takes about as long; what others wait for takes some turns of the loop."""


WOKEN_AT_ONCE = 8
"""So many of those who wait are asked in a turn; a write takes a tenth of one at least."""


class Pace:
    """The large writes of all connections: those of a millisecond are made in one turn of the loop, and whatever
    else is due has its turn before the next ones. Who has waited longest is next: a connection that has much to send
    would else begin its next piece in each turn before those that wait are asked."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._tickets = count()
        self._woken = 0
        self._due = False

    async def begin(self, *, goes_on: bool = False) -> float:
        """Waits until there is time for a large write in this turn; what ``end`` wants to know. An answer that
        ``goes_on`` has the rest of its turn, whoever waits."""
        # A new answer queues behind those that wait; one that goes on has had its turn already.
        if self._spent > TURN_SECONDS or (not goes_on and (self._waiting or self._woken)):
            ticket = next(self._tickets)
            await self._wait(ticket)
            while self._spent > TURN_SECONDS:
                await self._wait(ticket)
        return time.thread_time()

    def end(self, began: float) -> None:
        """Ends the write."""
        self._spent += time.thread_time() - began
        self._have_turn()

    async def _wait(self, ticket: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (ticket, turn))
        self._have_turn()
        try:
            await turn
        finally:
            # A cancelled one was not woken, or will never write.
            self._woken -= not turn.cancelled()

    def _have_turn(self) -> None:
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._due, self._spent = False, 0.0
        for _ in range(min(WOKEN_AT_ONCE, len(self._waiting))):
            _, turn = heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                self._woken += 1
        if self._waiting:
            self._have_turn()


class Sender:
    """Sends the answers of one connection. ``drained`` is there while the socket takes no more, and done when it
    does; ``streaming`` says that an answer comes in parts now. What the transport tells the connection of its buffer
    comes here as ``pause`` and ``resume``."""

    def __init__(self, transport: asyncio.Transport, answers: Account, pace: Pace, secure: bool) -> None:
        self.drained: asyncio.Future[None] | None = None
        self.streaming = False
        self._transport = transport
        self._answers = answers
        self._pace = pace
        self._secure = secure
        self._stalled_since = 0.0
        self._unsent = 0
        self._stuck = 0
        self._counted = False

    async def send(self, request: Request, response: Response, keep_alive: bool) -> None:
        """Sends an answer whose body is here."""
        body = response.body
        parts = (body,) if isinstance(body, bytes) else body
        size = sum(map(len, parts))
        holding = response.holding
        if size >= JOIN_BYTES and holding is None:
            try:
                holding = self._answers.holding(size)
            # Past the limits there is no room for an answer that says so.
            except Crowded:
                self._transport.abort()
                return
        self._counted = holding is not None
        packed = b""
        if size > THRESHOLD_BYTES and takes_gzip(request.headers.get("accept-encoding", "")):
            parts = (await gzip_parts(parts, size),)
            size = len(parts[0])
            # Caches must not hand a compressed answer to a client that does not take it.
            packed = b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
        head = b"%b%bContent-Length: %d\r\n\r\n" % (
            head_of(response.status, response.content_type, keep_alive, request.stamp, response.headers),
            packed,
            size,
        )
        # The head of a HEAD states the length that a GET would have.
        if request.method == "HEAD":
            parts, size = (), 0
        # Below this a copy is cheaper than a second system call.
        if size < JOIN_BYTES:
            self._transport.write(b"".join((head, *parts)))
        else:
            # The next request begins only when this answer was taken: a client cannot queue up answers.
            await self._write_large((head, *parts))
        if self.drained is not None:
            await self.drained
        self._counted = False

    async def _write_large(self, parts: tuple[bytes, ...]) -> None:
        """Writes a large body; over TLS in pieces, since everything written is encrypted at once, into memory."""
        if not self._secure:
            began = await self._pace.begin()
            try:
                self._transport.writelines(parts)
            finally:
                self._pace.end(began)
            return
        goes_on = False
        for part in parts:
            view = memoryview(part)
            for low in range(0, len(part), PIECE_BYTES):
                began = await self._pace.begin(goes_on=goes_on)
                try:
                    self._transport.write(view[low : low + PIECE_BYTES])
                finally:
                    self._pace.end(began)
                goes_on = True
                if self.drained is not None:
                    await self.drained

    async def stream(
        self, request: Request, response: StreamResponse, keep_alive: bool, chunked: bool
    ) -> bool:
        """Sends an answer as its parts come, ``chunked`` or until the connection ends; whether it may stay open."""
        parts: AsyncIterator[bytes] = response.parts
        # HTTP/1.0 knows no chunks: the body ends with the connection.
        keep_alive = keep_alive and chunked
        self.streaming = True
        framing = b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"\r\n"
        head = head_of(response.status, response.content_type, keep_alive, request.stamp, response.headers)
        write = self._transport.write
        write(head + framing)
        try:
            async for part in parts:
                if len(part) < JOIN_BYTES:
                    write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
                else:
                    # Many may be sent the same bytes, which are not copied for each.
                    await self._write_large((b"%x\r\n" % len(part), part, b"\r\n") if chunked else (part,))
                if self.drained is not None:
                    await self.drained
        finally:
            self.streaming = False
            # Runs the finally blocks of the generator now, not when the collector comes by: they unsubscribe
            # watches.
            await cast(Any, parts).aclose()
        if chunked:
            write(b"0\r\n\r\n")
        return keep_alive

    def pause(self) -> None:
        """Stops until the socket takes more."""
        if self.drained is None:
            self.drained = asyncio.get_running_loop().create_future()
            self._stalled_since, self._unsent = time.monotonic(), self._transport.get_write_buffer_size()
            if not self._counted:
                # Whatever ``send`` has not counted is counted while it is stuck here.
                self._stuck = self._unsent
                self._answers.held += self._stuck

    def resume(self) -> None:
        """Goes on."""
        drained, self.drained = self.drained, None
        self._stalled_since = 0.0
        self._answers.give(self._stuck)
        self._stuck = 0
        if drained is not None and not drained.done():
            drained.set_result(None)

    def is_stuck(self, now: float, stall_seconds: float) -> bool:
        """Whether the client has taken nothing of what it is sent for so long."""
        if not self._stalled_since:
            return False
        unsent = self._transport.get_write_buffer_size()
        # Any progress restarts the clock: slow is not stuck.
        if unsent < self._unsent:
            self._stalled_since = now
        self._unsent = unsent
        return now - self._stalled_since >= stall_seconds
