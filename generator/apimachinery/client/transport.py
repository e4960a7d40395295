# Made from async_transport.py by build/plain.py: edit that one.
"""Requests over pooled connections, for threads.

Connections are in ``links``, how a request looks in ``endpoint``, how an answer is read in ``http/asking``.

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
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from apimachinery.client.bodies import Lines, SentBody
from apimachinery.client.bodies import TransportError as TransportError
from apimachinery.client.config import Config, Credential
from apimachinery.client.endpoint import CHUNK, FAILURES, ServerAddress, named, opening_of, translate
from apimachinery.client.endpoint import LineStream as LineStream
from apimachinery.client.endpoint import Request as Request
from apimachinery.client.endpoint import TransportResponse as TransportResponse
from apimachinery.client.links import Link, Pool, Wire, current_credential
from apimachinery.client.throttle import Limits
from apimachinery.http.asking import AnswerReader

LARGE_CHUNK: Final = 1 << 20


class Exchange:
    """A request that was sent, and its answer as it comes."""

    def __init__(self, link: Link, method: str) -> None:
        self.link = link
        self.answer = AnswerReader(method)
        self._first = b""

    def ask(self, data: bytes) -> None:
        """Sends the request and waits for the head of the answer. Raises OSError, ``BadAnswer``."""
        refused = False
        try:
            self.link.send(data)
        except TimeoutError:
            raise
        except OSError:
            refused = True  # a server may answer, and go, before it has read a large request
        while not self.answer.code:
            self._first = self._receive(CHUNK)
        if refused:
            self.answer.keeps = False

    def _receive(self, size: int) -> bytes:
        data = self.link.receive(size)
        if data:
            return self.answer.take(data)
        self.answer.end()
        return b""

    def block(self, size: int) -> bytes:
        """The next bytes of the body; empty at its end. Raises OSError, ``BadAnswer``, ``TransportError``."""
        block, self._first = self._first, b""
        while not block and not self.answer.ended:
            block = self._receive(size)
        return block

    def whole(self, limit: int) -> bytes:
        """The rest of the body. Raises as ``block``, and ``AnswerTooLarge``."""
        length = self.answer.length
        size = CHUNK if length is not None and length <= CHUNK else LARGE_CHUNK
        body = SentBody(self.answer.headers, limit)
        while block := self.block(size):
            body.take(block)
        return body.whole()


class Transport:
    """Sends requests to one server. In asyncio programs at most ``Limits.connections`` calls are on their way at once;
    streams are not counted, for each holds its connection as long as it lives."""

    def __init__(self, config: Config, limits: Limits | None = None) -> None:
        self._endpoint = ServerAddress(config)
        self._limits = limits if limits is not None else Limits(connections=0)
        self._pool = Pool(self._limits.connections)

    def send(self, request: Request) -> TransportResponse:
        """Sends and reads the whole answer. Raises ``TransportError`` and ``ConfigError``."""
        until = None if request.timeout is None else time.monotonic() + request.timeout
        try:
            self._pool.enter(until)
        except TimeoutError as error:
            raise translate(error, request, sent=False) from None
        try:
            exchange = self._exchange(request, until)
            body = self._finish(exchange, request)
        finally:
            self._pool.leave()
        return TransportResponse(exchange.answer.code, exchange.answer.headers, body)

    def stream(self, request: Request) -> LineStream:
        """Sends and gives the answer as it arrives; close it. ``request.timeout`` bounds each silence."""
        opening = opening_of(request)
        exchange = self._exchange(replace(request, timeout=opening), time.monotonic() + opening)
        if exchange.answer.code < 400:  # a refusal is read as a whole, within the time that its head has
            exchange.link.flow(request.timeout)
        return AnswerStream(exchange, request, self._limits, self._pool)

    def dial(self, timeout: float) -> Wire:
        """A connection of its own, for another protocol. Raises ``TransportError`` and ``ConfigError``."""
        endpoint, until = self._endpoint, time.monotonic() + timeout
        request = Request("GET", "/", timeout=timeout)
        try:
            credential = current_credential(endpoint, until)
            link = Link.open(endpoint, endpoint.context(credential), until)
        except FAILURES as error:
            raise translate(error, request, sent=False) from None
        return link.wire(endpoint.authority, endpoint.prefix, endpoint.headers(request, credential))

    def close(self) -> None:
        """Closes connections: those of streams too in asyncio programs, for threads those that wait in the pool."""
        self._pool.close()

    def _exchange(self, request: Request, until: float | None) -> Exchange:
        credentials = self._endpoint.credentials
        exchange = self._once(request, self._credential(request, until), until)
        if exchange.answer.code == 401 and credentials.can_refresh:
            self._finish(exchange, request)
            credentials.refresh()
            exchange = self._once(request, self._credential(request, until), until)
        return exchange

    def _credential(self, request: Request, until: float | None) -> Credential:
        try:
            return current_credential(self._endpoint, until)
        except TimeoutError as error:
            raise translate(error, request, sent=False) from None

    def _once(self, request: Request, credential: Credential, until: float | None) -> Exchange:
        endpoint = self._endpoint
        head = endpoint.head(request, credential)
        link: Link | None = None
        sent = False
        try:
            link = self._pool.take(endpoint, endpoint.context(credential), until)
            exchange, sent = Exchange(link, request.method), True
            exchange.ask(head + request.body if request.body else head)
            return exchange
        except BaseException as error:
            if link is not None:
                self._pool.give_up(link)
            if not isinstance(error, FAILURES):
                raise
            endpoint.credentials.reread()
            raise translate(error, request, sent=sent) from None

    def _finish(self, exchange: Exchange, request: Request) -> bytes:
        """The rest of an answer; its connection is free again."""
        try:
            body = exchange.whole(self._limits.answer_bytes)
        except BaseException as error:
            self._pool.give_up(exchange.link)
            if not isinstance(error, FAILURES):
                raise
            raise translate(error, request, sent=True) from None
        self._pool.put_back(exchange.link, exchange.answer.keeps)
        return body


class AnswerStream:
    """An answer that goes on (``LineStream``)."""

    def __init__(self, exchange: Exchange, request: Request, limits: Limits, pool: Pool) -> None:
        self.code = exchange.answer.code
        self.headers: Mapping[str, str] = exchange.answer.headers
        self._exchange = exchange
        self._request = request
        self._limits = limits
        self._pool = pool
        self._closing = False

    def __iter__(self) -> Iterator[bytes]:
        lines = Lines(self.headers, self._limits.line_bytes)
        while not self._closing:
            try:
                block = self._exchange.block(CHUNK)
            except FAILURES as error:
                if self._closing:
                    return
                raise translate(error, self._request, sent=True) from None
            if self._closing:  # what is read from a socket that another thread has closed is no answer
                return
            if not block:
                if rest := lines.rest():
                    yield rest
                self.close()
                return
            yield from named(lines.take(block), self._request)

    def read(self) -> bytes:
        """The rest of the answer as one value. Raises ``TransportError``."""
        try:
            return self._exchange.whole(self._limits.answer_bytes)
        except FAILURES as error:
            raise translate(error, self._request, sent=True) from None

    def close(self) -> None:
        """Ends the stream. A watch that ended by itself leaves a good connection."""
        if self._closing:
            return
        self._closing = True
        if self._exchange.answer.ended:
            self._pool.put_back(self._exchange.link, self._exchange.answer.keeps)
        else:
            self._pool.hang_up(self._exchange.link)
