"""A port of this machine that leads to a port of a pod, in tasks. ``forwarding`` has the same for threads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from types import TracebackType
from typing import Final, Self

from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_processes import AsyncForwarded, async_forward
from apimachinery.client.calls import Target
from apimachinery.client.endpoint import TransportError
from apimachinery.meta.errors import ApiError

PIECE: Final = 1 << 16
LINGER_SECONDS: Final = 1.0
_log = logging.getLogger("kubewright.client")


class AsyncForwarder:
    """As ``Forwarder``, in an ``async with`` block."""

    def __init__(
        self, client: AsyncClient, target: Target, name: str, port: int, local: tuple[str, int]
    ) -> None:
        self._client = client
        self._target = target
        self._name = name
        self._remote = port
        self.address = local
        self.last_error: Exception | None = None
        self._listener: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port of this machine."""
        return self.address[1]

    async def start(self) -> Self:
        """Listens when it returns. Raises ``OSError``."""
        self._listener = await asyncio.start_server(self._accept, *self.address)
        self.address = self._listener.sockets[0].getsockname()[:2]
        return self

    async def close(self) -> None:
        """Ends it, with all connections."""
        if self._listener is not None:
            self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = asyncio.Event()
        try:
            async with await async_forward(self._client, self._target, self._name, self._remote) as pod:
                sending = asyncio.create_task(self._send(reader, pod, left))
                try:
                    while data := await pod.read():
                        writer.write(data)
                        await writer.drain()
                finally:
                    sending.cancel()
                    await asyncio.gather(sending, return_exceptions=True)
        except OSError:  # whoever connected is gone
            return
        except (ApiError, TransportError) as error:
            if not left.is_set():
                self.last_error = error
                _log.warning("forwarding to port %d of %s: %s", self._remote, self._name, error)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _send(self, reader: asyncio.StreamReader, pod: AsyncForwarded, left: asyncio.Event) -> None:
        with contextlib.suppress(OSError, TransportError):
            while data := await reader.read(PIECE):
                await pod.write(data)
            await asyncio.sleep(LINGER_SECONDS)  # as in ``forwarding``; cancelled when the pod ends first
            left.set()
            await pod.close()
