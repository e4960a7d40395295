"""A running server: storage, cache, API, socket, and their orderly start and end.

``server_parts`` has its parts in the order of their start: the storage is opened and read, the API prepares, the socket
listens, then the server is ready. ``stop`` says "not ready", goes on answering for the shutdown delay so that load
balancers notice, then stops the parts in reverse.
"""

from __future__ import annotations

import asyncio
import logging

from apimachinery.server.backend import Backend, BuildApi, ServerOptions
from apimachinery.server.server_parts import MakeAudit, ServerParts

log = logging.getLogger("kubewright.server")
__all__ = ["Backend", "BuildApi", "MakeAudit", "Server", "ServerOptions"]


class Server(ServerParts):
    """One server. ``start`` it on the event loop that is to run it, and ``stop`` it there; ``url`` says where it is."""

    async def start(self) -> None:
        """Serves when it returns. Raises what the storage and the socket raise, with nothing left open."""
        await self._assembly.start()
        self.health.started = True
        log.info("serving", extra={"url": self.url, "storage": self._options.storage})

    async def stop(self) -> None:
        """Ends in order; harmless when repeated."""
        if self.health.ending:
            return
        self.health.ending = True
        await asyncio.sleep(self._options.shutdown_delay_seconds)
        await self._assembly.stop()
        log.info("ended")
