"""Clients of ordinary HTTP APIs: they send operations, in threads or in asyncio.

Nothing is retried: whether a request may be sent twice, a document does not say. Certificates of the server are
checked against those of the system, or ``certificate_authority``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from apimachinery.client.config import Config
from apimachinery.client.transport import AsyncTransport, Request, SyncTransport
from apimachinery.openapi.answers import read_answer
from apimachinery.openapi.encoding import make_request
from apimachinery.openapi.operation import LEFT_OUT, Credential, Operation, SecurityScheme

T = TypeVar("T")
Transport = TypeVar("Transport", bound=SyncTransport | AsyncTransport)
SECONDS: Final = 60.0


class _Connection(Generic[Transport]):
    """What both clients know: the server, the credentials, how long a request may take, and a transport by server."""

    _connect: type[Transport]

    def __init__(
        self,
        server: str,
        schemes: Mapping[str, SecurityScheme],
        credentials: Mapping[str, Credential | None],
        *,
        default_server: str = "",
        timeout: float | None = SECONDS,
        certificate_authority: bytes = b"",
    ) -> None:
        """``server`` is a URL, with the path that all operations begin with. Only for ``default_server``, that of
        the document, operations that are elsewhere go there. ``timeout`` is in seconds. Raises ``ConfigError`` for
        a server that is none."""
        self.server = server
        self.timeout = timeout
        self._schemes = schemes
        self._credentials = {name: given for name, given in credentials.items() if given is not None}
        self._elsewhere = server == default_server
        self._certificate_authority = certificate_authority
        self._transports: dict[str, Transport] = {server: self._transport_to(server)}

    def _transport_to(self, server: str) -> Transport:
        return self._connect(Config(server=server, certificate_authority=self._certificate_authority))

    def _transport(self, operation: Operation[Any]) -> Transport:
        server = operation.server if operation.server and self._elsewhere else self.server
        transport = self._transports.get(server)
        if transport is None:
            transport = self._transports.setdefault(server, self._transport_to(server))
        return transport

    def _request(
        self, operation: Operation[T], arguments: tuple[Any, ...], body: Any, content_type: str
    ) -> Request:
        return make_request(
            operation, arguments, body, content_type, self._credentials, self._schemes, self.timeout
        )


class Client(_Connection[SyncTransport]):
    """Sends operations and waits. Safe to share between threads; close it, or use it in ``with``."""

    _connect = SyncTransport

    def call(
        self, operation: Operation[T], *arguments: Any, body: Any = LEFT_OUT, content_type: str = ""
    ) -> T:
        """One call; ``arguments`` are in the order of the operation's parameters. Raises ``HttpError`` for an answer
        that is no success, ``TransportError`` where there is none."""
        request = self._request(operation, arguments, body, content_type)
        return read_answer(operation, self._transport(operation).send(request))

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
        """As ``Client.call``."""
        request = self._request(operation, arguments, body, content_type)
        return read_answer(operation, await self._transport(operation).send(request))

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
