"""The client of asyncio programs: the twin of ``connection``. A task that is cancelled cancels its request."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from apimachinery.client.async_links import AsyncWire
from apimachinery.client.async_transport import AsyncTransport
from apimachinery.client.async_verbs import AsyncAnyKind
from apimachinery.client.calls import Call
from apimachinery.client.closing import AsyncClosing
from apimachinery.client.connection import DIAL, Connection
from apimachinery.client.endpoint import AsyncLineStream, Request, TransportError, TransportResponse
from apimachinery.client.errors import error_of
from apimachinery.meta.errors import ApiError

T = TypeVar("T")


class AsyncClient(Connection, AsyncAnyKind, AsyncClosing):
    """A connection to one API server, for tasks of one event loop."""

    _transport: AsyncTransport

    def _open(self) -> None:
        self._transport = AsyncTransport(self.config, self.limits)

    async def run(self, call: Call[T]) -> T:
        """Sends a call and reads its answer. Raises ``ApiError`` (by reason) and ``TransportError``."""
        ends, patience = self._ends(), self.retry.start()
        wait: float | None
        while True:
            if wait := self._held_up(call.request, ends):
                await asyncio.sleep(wait)
            try:
                request = self._timed(call.request, ends)
                return self._read(call, await self._transport.send(request))
            except (ApiError, TransportError) as error:
                wait = patience.wait_before_next(error, repeatable=call.repeatable)
                if wait is None or wait > self._left(call.request, ends):
                    raise
            await asyncio.sleep(wait)

    async def _stream(self, request: Request) -> AsyncLineStream:
        """Opens an answer that goes on (a watch, a log). Raises as ``run`` does; nothing is retried."""
        if wait := self._held_up(request, None):
            await asyncio.sleep(wait)
        stream = await self._transport.stream(request)
        if stream.code >= 400:
            try:
                raise error_of(TransportResponse(stream.code, stream.headers, await stream.read()))
            finally:
                await stream.close()
        if "warning" in stream.headers:
            self._warn(stream.headers["warning"])
        return stream

    async def _dial(self) -> AsyncWire:
        """A connection of its own for another protocol (websockets). Raises ``TransportError``, ``ConfigError``."""
        return await self._transport.dial(min(self.timeout, self._left(DIAL, self._ends())))

    async def close(self) -> None:
        """Closes every connection."""
        await self._transport.close()
