"""A connection that was handed over to somebody who speaks another protocol on it.

What a tunnel may hold. Each takes ``RESERVED_BYTES`` of the governor's ``tunnels`` before it is accepted: that is for
what its two sockets and the writer on the other side keep. What came and is not taken yet is ``tunneled``; the more all
of them hold, the sooner the client of each is no longer read (a tunnel may have an eighth of what is left for all
others), so that many that nobody takes from leave room for one more. While the client takes nothing, what the other
side sends meanwhile is counted at its most, and after ``ConnectionLimits.stall_seconds`` the connection ends.

A client that is not read, because nobody takes what it sent, cannot be heard to go. So a tunnel of which nothing is
taken for long ends: soon where the client said that it sends no more, or where tunnels are crowded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from apimachinery.http.governor import Account, Holding

RESERVED_BYTES = 128 << 10
TUNNEL_BYTES = 1 << 20
"""What is read ahead of a client."""
PIECE_BYTES = 64 << 10
UNREAD_BYTES = 384 << 10
"""What waits at most on the other side while a client takes nothing: twice its reader's limit, and a piece."""
GONE_SECONDS, PATIENCE_SECONDS = 30.0, 600.0
SHARE = 8


class SocketTunnel:
    """A connection that was handed over. ``drained`` is what the transport's fullness waits for."""

    def __init__(
        self,
        transport: asyncio.Transport,
        drained: Callable[[], asyncio.Future[None] | None],
        account: Account,
    ) -> None:
        self._transport = transport
        self._drained = drained
        self._account = account
        self._held = Holding(account)
        self._came = bytearray()
        self._over = False
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._taken_at = 0.0

    # What the connection calls.

    def feed(self, data: bytes) -> None:
        """Bytes came. The connection ends where there is no room for them."""
        if self._over or not self._account.take(len(data)):
            self._transport.abort()
            return
        if not self._came:
            self._taken_at = time.monotonic()
        self._came += data
        if not self._paused and len(self._came) > self._room:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def feed_eof(self) -> None:
        """Notes that the client sends no more."""
        if not self._over:
            self._over, self._taken_at = True, time.monotonic()
            self._wake()

    def close(self) -> None:
        """Drops what has come and was not read: nobody runs the tunnel any more."""
        self._account.give(len(self._came))
        self._came.clear()
        self._over = True
        self._held = Holding(self._account)

    @property
    def _room(self) -> int:
        return min(TUNNEL_BYTES, (self._account.limit - self._account.held) // SHARE)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def is_stuck(self, now: float, crowded: bool) -> bool:
        """Whether nothing of what came has been taken for long, and nobody waits for more."""
        patience = GONE_SECONDS if self._over or crowded else PATIENCE_SECONDS
        waits = self._waiter is None and (self._over or bool(self._came))
        return waits and now - self._taken_at > patience

    # What its user calls; one reads at a time.

    async def read(self, size: int = PIECE_BYTES) -> bytes:
        """What came, at most so much; empty at the end."""
        while not self._came and not self._over:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        data = bytes(self._came[:size])
        del self._came[: len(data)]
        self._account.give(len(data))
        self._taken_at = time.monotonic()
        # Half, not less than full: resuming at the edge would pause again with the next packet.
        if self._paused and len(self._came) <= self._room // 2:
            self._paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return data

    def hold(self, size: int) -> None:
        """Counts what is kept of what was read, until the tunnel ends. Raises Crowded."""
        self._held.grow(size)

    def write(self, data: bytes) -> None:
        """Sends bytes."""
        self._transport.write(data)

    async def drain(self) -> None:
        """Waits until the client takes more. Raises Crowded."""
        drained = self._drained()
        if drained is not None:
            holding = self._account.holding(UNREAD_BYTES)
            # Shielded: this future is the transport's, and others may wait for it too.
            await asyncio.shield(drained)
            del holding
