"""Clients of ordinary HTTP APIs: they send operations, in threads or in asyncio.

Nothing is retried unless ``retries`` says so: whether a request may be sent twice, a document does not say.
Certificates of the server are checked against those of the system, or ``certificate_authority``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from apimachinery.client.async_transport import AsyncTransport
from apimachinery.client.config import Config
from apimachinery.client.endpoint import Request, TransportError, TransportResponse
from apimachinery.client.retry import NO_RETRIES as NO_RETRIES
from apimachinery.client.retry import RetryPolicy as RetryPolicy
from apimachinery.client.transport import Transport
from apimachinery.openapi.answers import read_answer, stream_reader
from apimachinery.openapi.encoding import make_request
from apimachinery.openapi.errors import HttpError
from apimachinery.openapi.operation import LEFT_OUT, Credential, Operation, SecurityScheme
from apimachinery.openapi.pages import PageWalk
from apimachinery.openapi.retrying import wait_before_next

T = TypeVar("T")
Way = TypeVar("Way", bound=Transport | AsyncTransport)
SECONDS: Final = 60.0


class _Connection(Generic[Way]):
    """What both clients know: the server, the credentials, how long a request may take, and a transport by server."""

    _connect: type[Way]

    def __init__(
        self,
        server: str,
        schemes: Mapping[str, SecurityScheme],
        credentials: Mapping[str, Credential | None],
        *,
        default_server: str = "",
        timeout: float | None = SECONDS,
        certificate_authority: bytes = b"",
        retries: RetryPolicy = NO_RETRIES,
    ) -> None:
        """``server`` is a URL, with the path that all operations begin with. Only for ``default_server``, that of
        the document, operations that are elsewhere go there. ``timeout`` is in seconds. ``retries`` says how often
        and for how long failed calls are sent again. Raises ``ConfigError`` for a server that is none."""
        self.server = server
        self.timeout = timeout
        self._retries = retries
        self._schemes = schemes
        self._credentials = {name: given for name, given in credentials.items() if given is not None}
        self._elsewhere = server == default_server
        self._certificate_authority = certificate_authority
        self._transports: dict[str, Way] = {server: self._transport_to(server)}

    def _transport_to(self, server: str) -> Way:
        return self._connect(Config(server=server, certificate_authority=self._certificate_authority))

    def _server_of(self, operation: Operation[Any]) -> str:
        return operation.server if operation.server and self._elsewhere else self.server

    def _walk(self, operation: Operation[Any], arguments: tuple[Any, ...]) -> PageWalk:
        keys = frozenset(scheme.key for scheme in self._schemes.values() if scheme.place == "query")
        return PageWalk(operation, arguments, self._server_of(operation), keys)

    def _page(self, operation: Operation[Any], walk: PageWalk) -> Request:
        return walk.request(self._request(operation, tuple(walk.arguments), LEFT_OUT, ""))

    def _transport(self, operation: Operation[Any]) -> Way:
        server = self._server_of(operation)
        transport = self._transports.get(server)
        if transport is None:
            transport = self._transports.setdefault(server, self._transport_to(server))
        return transport

    def _request(
        self,
        operation: Operation[T],
        arguments: tuple[Any, ...],
        body: Any,
        content_type: str,
        *,
        streams: bool = False,
    ) -> Request:
        return make_request(
            operation,
            arguments,
            body,
            content_type,
            self._credentials,
            self._schemes,
            self.timeout,
            streams=streams,
        )


class Client(_Connection[Transport]):
    """Sends operations and waits. Safe to share between threads; close it, or use it in ``with``."""

    _connect = Transport

    def call(
        self, operation: Operation[T], *arguments: Any, body: Any = LEFT_OUT, content_type: str = ""
    ) -> T:
        """One call; ``arguments`` are in the order of the operation's parameters. Raises ``HttpError`` for an answer
        that is no success, ``TransportError`` where there is none."""
        return self._exchange(operation, lambda: self._request(operation, arguments, body, content_type))[0]

    def iterate(self, operation: Operation[Any], *arguments: Any) -> Iterator[Any]:
        """The items of a listing, page after page; the pages themselves where their items are not known. Raises as
        ``call``."""
        walk = self._walk(operation, arguments)
        while True:
            value, response = self._exchange(operation, lambda: self._page(operation, walk))
            yield from walk.items(value)
            if not walk.go_on(response):
                return

    def _exchange(self, operation: Operation[T], make: Callable[[], Request]) -> tuple[T, TransportResponse]:
        patience = self._retries.start()
        while True:
            try:
                response = self._transport(operation).send(make())
                return read_answer(operation, response), response
            except (TransportError, HttpError) as error:
                wait = wait_before_next(patience, operation.method, error)
                if wait is None:
                    raise
                time.sleep(wait)

    def stream(
        self, operation: Operation[Any], *arguments: Any, body: Any = LEFT_OUT, content_type: str = ""
    ) -> Iterator[Any]:
        """The parts of an answer as they arrive: ``ServerSentEvent``s, or a value for each line of JSON. It ends with
        the answer, or when the iterator is closed; ``timeout`` bounds each silence. Raises as ``call``."""
        request = self._request(operation, arguments, body, content_type, streams=True)
        stream = self._transport(operation).stream(request)
        try:
            if not 200 <= stream.code < 300:
                read_answer(operation, TransportResponse(stream.code, stream.headers, stream.read()))
            reader = stream_reader(operation, stream.code, stream.headers)
            for line in stream:
                part = reader.take(line)
                if part is not None:
                    yield part
        finally:
            stream.close()

    def close(self) -> None:
        """Closes the connections."""
        for transport in self._transports.values():
            transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(_Connection[AsyncTransport]):
    """Sends operations, awaited. For one event loop; close it, or use it in ``async with``."""

    _connect = AsyncTransport

    async def call(
        self, operation: Operation[T], *arguments: Any, body: Any = LEFT_OUT, content_type: str = ""
    ) -> T:
        value, _ = await self._exchange(
            operation, lambda: self._request(operation, arguments, body, content_type)
        )
        return value

    async def iterate(self, operation: Operation[Any], *arguments: Any) -> AsyncIterator[Any]:
        walk = self._walk(operation, arguments)
        while True:
            value, response = await self._exchange(operation, lambda: self._page(operation, walk))
            for item in walk.items(value):
                yield item
            if not walk.go_on(response):
                return

    async def _exchange(
        self, operation: Operation[T], make: Callable[[], Request]
    ) -> tuple[T, TransportResponse]:
        patience = self._retries.start()
        while True:
            try:
                response = await self._transport(operation).send(make())
                return read_answer(operation, response), response
            except (TransportError, HttpError) as error:
                wait = wait_before_next(patience, operation.method, error)
                if wait is None:
                    raise
                await asyncio.sleep(wait)

    async def stream(
        self, operation: Operation[Any], *arguments: Any, body: Any = LEFT_OUT, content_type: str = ""
    ) -> AsyncIterator[Any]:
        request = self._request(operation, arguments, body, content_type, streams=True)
        stream = await self._transport(operation).stream(request)
        try:
            if not 200 <= stream.code < 300:
                read_answer(operation, TransportResponse(stream.code, stream.headers, await stream.read()))
            reader = stream_reader(operation, stream.code, stream.headers)
            async for line in stream:
                part = reader.take(line)
                if part is not None:
                    yield part
        finally:
            await stream.close()

    async def close(self) -> None:
        """Closes the connections."""
        for transport in self._transports.values():
            await transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
