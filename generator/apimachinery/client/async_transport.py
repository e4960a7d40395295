"""Requests over pooled connections, awaited.

``transport``, its plain twin, is made of this file by ``build/plain.py``.

Connections are in ``async_links``, how a request looks in ``endpoint``, how an answer is read in ``http/asking``.

Why no HTTP library: to import aiohttp takes 0.1 s of CPU and 10 MB, http.client 0.02 s and 2 MB, which is more than
most programs need for all their calls; and both must be steered around: retries of their own, bodies and lines
without bound, deadlines of reads and none of calls.

Rules: a connection that the server has closed while it lay in the pool is never used (its socket would be
readable); a 401 is answered once with a fresh credential where there may be one; nothing else is retried
here (``retry.py`` decides about that). ``TransportError.sent`` says whether the server may have acted on the
request. A call that fails, or is cancelled, ends its connection by RST.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Final

from apimachinery.client.async_links import AsyncLink, AsyncPool, AsyncWire, async_current_credential
from apimachinery.client.bodies import Lines, SentBody
from apimachinery.client.bodies import TransportError as TransportError
from apimachinery.client.config import Config, Credential
from apimachinery.client.endpoint import CHUNK, FAILURES, ServerAddress, named, opening_of, translate
from apimachinery.client.endpoint import AsyncLineStream as AsyncLineStream
from apimachinery.client.endpoint import Request as Request
from apimachinery.client.endpoint import TransportResponse as TransportResponse
from apimachinery.client.throttle import Limits
from apimachinery.http.asking import AnswerReader

LARGE_CHUNK: Final = 1 << 20


class AsyncExchange:
    """A request that was sent, and its answer as it comes."""

    def __init__(self, link: AsyncLink, method: str) -> None:
        self.link = link
        self.answer = AnswerReader(method)
        self._first = b""

    async def ask(self, data: bytes) -> None:
        """Sends the request and waits for the head of the answer. Raises OSError, ``BadAnswer``."""
        refused = False
        try:
            await self.link.send(data)
        except TimeoutError:
            raise
        except OSError:
            refused = True  # a server may answer, and go, before it has read a large request
        while not self.answer.code:
            self._first = await self._receive(CHUNK)
        if refused:
            self.answer.keeps = False

    async def _receive(self, size: int) -> bytes:
        data = await self.link.receive(size)
        if data:
            return self.answer.take(data)
        self.answer.end()
        return b""

    async def block(self, size: int) -> bytes:
        """The next bytes of the body; empty at its end. Raises OSError, ``BadAnswer``, ``TransportError``."""
        block, self._first = self._first, b""
        while not block and not self.answer.ended:
            block = await self._receive(size)
        return block

    async def whole(self, limit: int) -> bytes:
        """The rest of the body. Raises as ``block``, and ``AnswerTooLarge``."""
        length = self.answer.length
        size = CHUNK if length is not None and length <= CHUNK else LARGE_CHUNK
        body = SentBody(self.answer.headers, limit)
        while block := await self.block(size):
            body.take(block)
        return body.whole()


class AsyncTransport:
    """Sends requests to one server. In asyncio programs at most ``Limits.connections`` calls are on their way at once;
    streams are not counted, for each holds its connection as long as it lives."""

    def __init__(self, config: Config, limits: Limits | None = None) -> None:
        self._endpoint = ServerAddress(config)
        self._limits = limits if limits is not None else Limits(connections=0)
        self._pool = AsyncPool(self._limits.connections)

    async def send(self, request: Request) -> TransportResponse:
        """Sends and reads the whole answer. Raises ``TransportError`` and ``ConfigError``."""
        until = None if request.timeout is None else time.monotonic() + request.timeout
        try:
            await self._pool.enter(until)
        except TimeoutError as error:
            raise translate(error, request, sent=False) from None
        try:
            exchange = await self._exchange(request, until)
            body = await self._finish(exchange, request)
        finally:
            self._pool.leave()
        return TransportResponse(exchange.answer.code, exchange.answer.headers, body)

    async def stream(self, request: Request) -> AsyncLineStream:
        """Sends and gives the answer as it arrives; close it. ``request.timeout`` bounds each silence."""
        opening = opening_of(request)
        exchange = await self._exchange(replace(request, timeout=opening), time.monotonic() + opening)
        if exchange.answer.code < 400:  # a refusal is read as a whole, within the time that its head has
            exchange.link.flow(request.timeout)
        return AsyncAnswerStream(exchange, request, self._limits, self._pool)

    async def dial(self, timeout: float) -> AsyncWire:
        """A connection of its own, for another protocol. Raises ``TransportError`` and ``ConfigError``."""
        endpoint, until = self._endpoint, time.monotonic() + timeout
        request = Request("GET", "/", timeout=timeout)
        try:
            credential = await async_current_credential(endpoint, until)
            link = await AsyncLink.open(endpoint, endpoint.context(credential), until)
        except FAILURES as error:
            raise translate(error, request, sent=False) from None
        return link.wire(endpoint.authority, endpoint.prefix, endpoint.headers(request, credential))

    async def close(self) -> None:
        """Closes connections: those of streams too in asyncio programs, for threads those that wait in the pool."""
        await self._pool.close()

    async def _exchange(self, request: Request, until: float | None) -> AsyncExchange:
        credentials = self._endpoint.credentials
        exchange = await self._once(request, await self._credential(request, until), until)
        if exchange.answer.code == 401 and credentials.can_refresh:
            await self._finish(exchange, request)
            credentials.refresh()
            exchange = await self._once(request, await self._credential(request, until), until)
        return exchange

    async def _credential(self, request: Request, until: float | None) -> Credential:
        try:
            return await async_current_credential(self._endpoint, until)
        except TimeoutError as error:
            raise translate(error, request, sent=False) from None

    async def _once(self, request: Request, credential: Credential, until: float | None) -> AsyncExchange:
        endpoint = self._endpoint
        head = endpoint.head(request, credential)
        link: AsyncLink | None = None
        sent = False
        try:
            link = await self._pool.take(endpoint, endpoint.context(credential), until)
            exchange, sent = AsyncExchange(link, request.method), True
            await exchange.ask(head + request.body if request.body else head)
            return exchange
        except BaseException as error:
            if link is not None:
                self._pool.give_up(link)
            if not isinstance(error, FAILURES):
                raise
            endpoint.credentials.reread()
            raise translate(error, request, sent=sent) from None

    async def _finish(self, exchange: AsyncExchange, request: Request) -> bytes:
        """The rest of an answer; its connection is free again."""
        try:
            body = await exchange.whole(self._limits.answer_bytes)
        except BaseException as error:
            self._pool.give_up(exchange.link)
            if not isinstance(error, FAILURES):
                raise
            raise translate(error, request, sent=True) from None
        self._pool.put_back(exchange.link, exchange.answer.keeps)
        return body


class AsyncAnswerStream:
    """An answer that goes on (``AsyncLineStream``)."""

    def __init__(self, exchange: AsyncExchange, request: Request, limits: Limits, pool: AsyncPool) -> None:
        self.code = exchange.answer.code
        self.headers: Mapping[str, str] = exchange.answer.headers
        self._exchange = exchange
        self._request = request
        self._limits = limits
        self._pool = pool
        self._closing = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines = Lines(self.headers, self._limits.line_bytes)
        while not self._closing:
            try:
                block = await self._exchange.block(CHUNK)
            except FAILURES as error:
                if self._closing:
                    return
                raise translate(error, self._request, sent=True) from None
            if self._closing:  # what is read from a socket that another thread has closed is no answer
                return
            if not block:
                if rest := lines.rest():
                    yield rest
                await self.close()
                return
            for line in named(lines.take(block), self._request):
                yield line

    async def read(self) -> bytes:
        """The rest of the answer as one value. Raises ``TransportError``."""
        try:
            return await self._exchange.whole(self._limits.answer_bytes)
        except FAILURES as error:
            raise translate(error, self._request, sent=True) from None

    async def close(self) -> None:
        """Ends the stream. A watch that ended by itself leaves a good connection."""
        if self._closing:
            return
        self._closing = True
        if self._exchange.answer.ended:
            self._pool.put_back(self._exchange.link, self._exchange.answer.keeps)
        else:
            self._pool.hang_up(self._exchange.link)
