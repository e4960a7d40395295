"""A connection that was handed over to somebody who speaks another protocol on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

TUNNEL_BYTES = 1 << 20
PIECE_BYTES = 1 << 18


class Tunnel:
    """A connection that was handed over."""

    def __init__(
        self, transport: asyncio.Transport, drained: Callable[[], asyncio.Future[None] | None]
    ) -> None:
        self.reader = asyncio.StreamReader(TUNNEL_BYTES)
        self.reader.set_transport(transport)
        self._transport = transport
        self._drained = drained

    async def read(self) -> bytes:
        """What came; empty at the end."""
        return await self.reader.read(PIECE_BYTES)

    def write(self, data: bytes) -> None:
        """Sends bytes."""
        self._transport.write(data)

    async def drain(self) -> None:
        """Waits until the client takes more."""
        drained = self._drained()
        if drained is not None:
            await drained
