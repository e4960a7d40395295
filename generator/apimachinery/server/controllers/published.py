"""Publishes where the Service ``kubernetes`` ends: the addresses of all servers that share a storage.

Each server keeps a key with its address in the storage, which the storage ends soon after the server no longer renews
it, as kube-apiserver's leases of masters are ended; whoever sees them change writes Endpoints and EndpointSlice again.
A server that stops takes its key away first.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Protocol

from apimachinery.meta.errors import ApiError
from apimachinery.queue.observing import Observer
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.controllers.controller import SILENT, Controller, Source, everything
from apimachinery.server.controllers.first_objects import publish
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import (
    KeyExists,
    KeyNotFound,
    Record,
    RevisionConflict,
    StorageError,
    Value,
)
from apimachinery.storage.watch_cache import WatchCache

log = logging.getLogger("kubewright.server.published")
SERVERS = "/kubewright.dev/servers/"
RENEW_SECONDS = 10.0
PRESENT = Value(b'{"metadata":{"resourceVersion":"', b'"}}', ttl=30)


class AddressKeys(Protocol):
    """What of a storage the addresses are kept in."""

    async def create(self, key: str, value: Value) -> Record: ...

    async def update(self, key: str, expected: int, value: Value) -> Record: ...

    async def delete(self, key: str, expected: int, last: Value) -> Record: ...


class Published(Controller):
    """Renews this server's key, and writes the addresses when they change. ``storage`` is one that servers share."""

    def __init__(
        self,
        catalog: Catalog,
        cache: WatchCache,
        storage: AddressKeys,
        writer: Writer,
        address: str,
        port: int,
    ) -> None:
        super().__init__("published-addresses", cache, Source(SERVERS, everything))
        self._catalog = catalog
        self._keys = cache.resource(SERVERS)
        self._storage = storage
        self._writer = writer
        self._key, self._address, self._port = f"{SERVERS}{address}", address, port
        self._renewal: asyncio.Task[None] | None = None
        self._written: list[str] = []

    def start(self, observer: Observer = SILENT) -> None:
        """Begins."""
        super().start(observer)
        self._renewal = asyncio.create_task(self._renew())

    async def stop(self) -> None:
        """Takes this server's address away."""
        await super().stop()
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)
        with contextlib.suppress(ApiError, StorageError, TimeoutError):
            async with asyncio.timeout(RENEW_SECONDS / 5):
                if (record := self._keys.get(self._key)) is not None:
                    await self._storage.delete(record.key, record.revision, PRESENT)
                if others := [each for each in self._addresses() if each != self._address]:
                    await publish(self._catalog, self._writer, others, self._port)

    async def _renew(self) -> None:
        while True:
            try:
                await self.show()
            except StorageError as fault:
                log.warning("the address of this server was not renewed: %s", fault)
            await asyncio.sleep(RENEW_SECONDS)

    async def show(self) -> None:
        """Writes this server's key, again where it is there. Raises StorageError."""
        record = self._keys.get(self._key)
        # Whoever was faster says the same.
        with contextlib.suppress(KeyExists, KeyNotFound, RevisionConflict):
            if record is None:
                await self._storage.create(self._key, PRESENT)
            else:
                await self._storage.update(self._key, record.revision, PRESENT)

    def _addresses(self) -> list[str]:
        """Those of this server's family: an EndpointSlice has one."""
        keys = (record.key.removeprefix(SERVERS) for record in self._keys.snapshot(SERVERS).records)
        return [address for address in keys if (":" in address) == (":" in self._address)]

    async def reconcile(self, key: str) -> None:
        """Publishes the addresses, if they are others than those written last. Raises ApiError, StorageError."""
        addresses = sorted({*self._addresses(), self._address})
        if addresses != self._written:
            await publish(self._catalog, self._writer, addresses, self._port)
            self._written = addresses
