"""A socket for an application that has no parts around it: webhooks, the explorer."""

from __future__ import annotations

import asyncio
import ssl

from apimachinery.http.protocol import Application, ConnectionLimits, Connections
from apimachinery.http.tls import HANDSHAKE_SECONDS

SWEEP_SECONDS = 1.0


class Listener:
    """Serves on the event loop that starts it; ``port`` 0 takes a free one."""

    def __init__(
        self,
        application: Application,
        limits: ConnectionLimits,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._connections = Connections(application, limits)
        self._tls = tls
        self._host = host
        self.port = port
        self._listener: asyncio.Server | None = None
        self._sweeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listens when it returns. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            self._connections,
            self._host,
            self.port,
            ssl=self._tls,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if self._tls else None,
            backlog=1024,
        )
        self.port = self._listener.sockets[0].getsockname()[1]
        self._sweeping = asyncio.create_task(self._sweep())

    async def stop(self, seconds: float = 5.0) -> None:
        """Takes no new connections, and lets requests under way end."""
        if self._listener is not None:
            self._listener.close()
        await self._connections.end(seconds)
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._connections.sweep()
