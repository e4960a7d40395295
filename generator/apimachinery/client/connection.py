"""The two clients: they send calls, retry by the policy, and turn failures into exceptions.

Generated clients derive from these and add one property a group version. Both may be shared: ``Client`` between
threads, ``AsyncClient`` between tasks of one event loop. A task that is cancelled cancels its request.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

from apimachinery.client.calls import Call
from apimachinery.client.config import Config
from apimachinery.client.errors import error_of
from apimachinery.client.retry import RetryPolicy
from apimachinery.client.transport import (
    AsyncLineStream,
    AsyncTransport,
    LineStream,
    Request,
    Response,
    SyncTransport,
    TransportError,
)
from apimachinery.meta.errors import ApiError

T = TypeVar("T")


class _Common:
    def __init__(
        self,
        config: Config | None = None,
        *,
        timeout: float = 60.0,
        retry: RetryPolicy | None = None,
        field_manager: str = "",
    ) -> None:
        """``config`` as kubectl would find it if None; ``timeout`` bounds each try, in seconds;
        ``field_manager`` is the default of every write. Raises ``ConfigError``."""
        self.config = config if config is not None else Config.load()
        self.timeout = timeout
        self.retry = retry if retry is not None else RetryPolicy()
        self.field_manager = field_manager

    def _timed(self, call: Call[T]) -> Request:
        return replace(call.request, timeout=self.timeout)


class Client(_Common):
    """A connection to one API server, for threads."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        timeout: float = 60.0,
        retry: RetryPolicy | None = None,
        field_manager: str = "",
    ) -> None:
        super().__init__(config, timeout=timeout, retry=retry, field_manager=field_manager)
        self._transport = SyncTransport(self.config)

    def run(self, call: Call[T]) -> T:
        """Sends a call and reads its answer. Raises ``ApiError`` (by reason) and ``TransportError``."""
        request, patience = self._timed(call), self.retry.start()
        while True:
            try:
                return call.decode(_accept(self._transport.send(request)).body)
            except (ApiError, TransportError) as error:
                wait = patience.wait_before_next(error, repeatable=call.repeatable)
                if wait is None:
                    raise
            time.sleep(wait)

    def stream(self, request: Request) -> LineStream:
        """Opens an answer that goes on (a watch, a log). Raises as ``run`` does; nothing is retried."""
        stream = self._transport.stream(request)
        if stream.code >= 400:
            try:
                raise error_of(Response(stream.code, stream.headers, stream.read()))
            finally:
                stream.close()
        return stream

    def close(self) -> None:
        """Closes pooled connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(_Common):
    """A connection to one API server, for tasks of one event loop."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        timeout: float = 60.0,
        retry: RetryPolicy | None = None,
        field_manager: str = "",
    ) -> None:
        super().__init__(config, timeout=timeout, retry=retry, field_manager=field_manager)
        self._transport = AsyncTransport(self.config)

    async def run(self, call: Call[T]) -> T:
        """Sends a call and reads its answer. Raises ``ApiError`` (by reason) and ``TransportError``."""
        request, patience = self._timed(call), self.retry.start()
        while True:
            try:
                return call.decode(_accept(await self._transport.send(request)).body)
            except (ApiError, TransportError) as error:
                wait = patience.wait_before_next(error, repeatable=call.repeatable)
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    async def stream(self, request: Request) -> AsyncLineStream:
        """Opens an answer that goes on (a watch, a log). Raises as ``run`` does; nothing is retried."""
        stream = await self._transport.stream(request)
        if stream.code >= 400:
            try:
                raise error_of(Response(stream.code, stream.headers, await stream.read()))
            finally:
                await stream.close()
        return stream

    async def close(self) -> None:
        """Closes every connection."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _accept(response: Response) -> Response:
    if response.code >= 400:
        raise error_of(response)
    return response


def default_manager(client: Client | AsyncClient | Any, given: str) -> str:
    """The field manager of a write: the call's, else the client's."""
    return given or str(client.field_manager)
