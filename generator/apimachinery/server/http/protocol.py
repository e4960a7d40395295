"""HTTP/1.1 on a socket: bytes in, ``Request`` to the application, ``Response`` or ``StreamResponse`` out.

Why not an ASGI server: measured (``tests/bench/http_servers.py``), a protocol of this size over llhttp
(httptools) answers two to three times as many small requests as the ASGI servers in Python, and sends large
bodies without a copy. Parsing stays llhttp's, the loop uvloop's where it is installed.

States of a connection (RFC 9112)::

    IDLE --first byte--> READING --whole request--> HANDLING --answer sent--> IDLE
                            |                          |
                            +--- cannot be read -------+--> LINGERING --> closed

- One request is handled at a time; what a client sends ahead (pipelining) waits, and reading stops
  while more than one waits.
- A body over the limit is not kept. The answer (413) is sent, then what still comes is thrown away for a
  moment: closing at once would reset the connection and lose the answer (RFC 9112 §9.6).
- ``sweep``, called once a second, ends what takes too long: requests that do not arrive, handlers that do not
  answer, connections that idle.
- Whether a client went away matters to a stream only; other handlers run to their end.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.utils import formatdate
from enum import Enum
from http import HTTPStatus
from typing import Any, Protocol, cast
from urllib.parse import unquote

import httptools

from apimachinery.server.http.compression import gzip_parts, wants_gzip
from apimachinery.server.http.messages import Request, Response, StreamResponse

log = logging.getLogger("kubewright.server")

HEAD_BYTES = 1 << 20
JOIN_BYTES = 1 << 16
PIECE_BYTES = 1 << 18
LINGER_BYTES = 64 << 20
LINGER_SECONDS = 2.0
_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}


class Application(Protocol):
    """What a connection serves."""

    async def answer(self, request: Request, oversized: bool) -> Response | StreamResponse:
        """Answers; never raises but CancelledError. ``oversized`` says that the body was over the limit."""

    def timed_out(self, request: Request) -> Response:
        """The answer to a request whose handler took too long."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bytes and seconds."""

    body_bytes: int = 3 << 20
    request_seconds: float = 60.0
    idle_seconds: float = 90.0


class State(Enum):
    """See the module's text."""

    IDLE = "idle"
    READING = "reading"
    HANDLING = "handling"
    LINGERING = "lingering"


@dataclass(frozen=True, slots=True)
class _Pending:
    """A request that waits for its turn; ``chunks`` says that the client reads chunked answers."""

    request: Request
    oversized: bool
    keep_alive: bool
    chunks: bool


class Connections:
    """All connections of a server; the factory of new ones."""

    def __init__(self, application: Application, limits: ConnectionLimits | None = None) -> None:
        self.application = application
        self.limits = limits or ConnectionLimits()
        self.open: set[Connection] = set()
        self.ending = False

    def __call__(self) -> Connection:
        """A connection for a socket that was accepted."""
        return Connection(self)

    def sweep(self) -> None:
        """Ends what takes too long."""
        now = time.monotonic()
        for connection in tuple(self.open):
            connection.sweep(now)

    async def end(self, seconds: float) -> None:
        """Closes idle connections, waits for the busy ones, then closes those too."""
        self.ending = True
        until = time.monotonic() + seconds
        while self.open:
            for connection in tuple(self.open):
                connection.end(force=time.monotonic() >= until)
            await asyncio.sleep(0.01)


class Connection(asyncio.Protocol):
    """One client's socket."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._limits = connections.limits
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._parser: Any = None
        self._state = State.IDLE
        self._since = 0.0
        self._waiting: deque[_Pending] = deque()
        self._task: asyncio.Task[None] | None = None
        self._secure = False
        self._streaming = False
        self._timed_out = False
        self._drained: asyncio.Future[None] | None = None
        self._lingered = 0
        self._begin_message()

    # The socket.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        self._since = time.monotonic()
        self._secure = transport.get_extra_info("sslcontext") is not None
        self._connections.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client, or this side, closed."""
        self._connections.open.discard(self)
        self._waiting.clear()
        self.resume_writing()
        if self._streaming and self._task is not None:
            self._task.cancel()
        self._parser = None

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._state is State.LINGERING:
            self._lingered += len(data)
            if self._lingered > LINGER_BYTES:
                self._transport.close()
            return
        if self._state is State.IDLE:
            self._state, self._since = State.READING, time.monotonic()
        self._head_size += len(data)
        if self._head_size > HEAD_BYTES and not self._head_done:
            self._refuse(431, "431 Request Header Fields Too Large")
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # An offer to leave HTTP/1.1 is not taken up: the request is answered, and the connection ends.
            return
        except (httptools.HttpParserError, UnicodeDecodeError, ValueError):
            self._refuse(400, "400 Bad Request")

    def eof_received(self) -> bool:
        """The client sends no more; a request under way is answered all the same."""
        return self._state is State.HANDLING and not self._streaming

    def pause_writing(self) -> None:
        """The socket takes no more for now."""
        if self._drained is None:
            self._drained = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """The socket takes more."""
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    # What the parser calls.

    def on_message_begin(self) -> None:
        """A request begins."""
        self._begin_message()

    def on_url(self, url: bytes) -> None:
        """A piece of the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header field."""
        if self._head_done:
            return  # a trailer
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        if key in self._headers:
            text = f"{self._headers[key]}, {text}"
        self._headers[key] = text

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._head_done = True
        self._keep_alive = "upgrade" not in self._headers
        length = self._headers.get("content-length", "")
        if length.isascii() and length.isdigit() and len(length) < 20:
            self._oversized = int(length) > self._limits.body_bytes
        if self._headers.get("expect", "").lower() == "100-continue" and not self._oversized:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._body_size += len(body)
        if self._body_size > self._limits.body_bytes:
            self._oversized = True
            self._body.clear()
        if self._oversized:
            # Answered before the rest has come; what comes is thrown away.
            if not self._dispatched:
                self._dispatch(False)
            self._lingered += len(body)
            if self._lingered > LINGER_BYTES:
                self._transport.close()
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if not self._dispatched:
            self._dispatch(self._parser.should_keep_alive())

    # Requests.

    def _begin_message(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._body_size = 0
        self._head_size = 0
        self._head_done = False
        self._oversized = False
        self._dispatched = False
        self._keep_alive = True

    def _dispatch(self, keep_alive: bool) -> None:
        self._dispatched = True
        path, _, query = self._url.partition(b"?")
        body = self._body
        request = Request(
            self._parser.get_method().decode("ascii"),
            unquote(path.decode("ascii")),
            query.decode("ascii"),
            self._headers,
            b"".join(body) if len(body) != 1 else body[0],
        )
        keep_alive = keep_alive and self._keep_alive and not self._oversized
        chunks = self._parser.get_http_version() != "1.0"
        self._waiting.append(_Pending(request, self._oversized, keep_alive, chunks))
        if self._task is None:
            self._next()
        elif len(self._waiting) > 1:
            self._transport.pause_reading()

    def _next(self) -> None:
        pending = self._waiting.popleft()
        self._state, self._since = State.HANDLING, time.monotonic()
        self._task = asyncio.get_running_loop().create_task(self._handle(pending))

    async def _handle(self, pending: _Pending) -> None:
        request, oversized = pending.request, pending.oversized
        keep_alive = pending.keep_alive and not self._connections.ending
        try:
            try:
                response = await self._connections.application.answer(request, oversized)
            except asyncio.CancelledError:
                if not self._timed_out:
                    raise
                self._timed_out = False
                response = self._connections.application.timed_out(request)
            if isinstance(response, StreamResponse):
                keep_alive = await self._stream(response, keep_alive, pending.chunks)
            else:
                await self._send(request, response, keep_alive)
        except asyncio.CancelledError:
            keep_alive = False
        except Exception:
            log.exception("the answer could not be sent", extra={"path": request.path})
            keep_alive = False
        self._task = None
        self._answered(keep_alive, oversized)

    def _answered(self, keep_alive: bool, oversized: bool) -> None:
        if self._transport.is_closing():
            return
        if oversized:
            self._linger()
        elif not keep_alive or self._connections.ending:
            self._transport.close()
        elif self._waiting:
            self._next()
            if len(self._waiting) < 2:
                self._transport.resume_reading()
        else:
            self._state, self._since = State.IDLE, time.monotonic()

    async def _send(self, request: Request, response: Response, keep_alive: bool) -> None:
        body = response.body
        parts = (body,) if isinstance(body, bytes) else body
        size = sum(map(len, parts))
        extra = _lines(response.headers)
        if wants_gzip(size, request.headers.get("accept-encoding")):
            parts = (await gzip_parts(parts, size),)
            size = len(parts[0])
            extra += b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
        head = b"%b%bContent-Length: %d\r\n\r\n" % (
            _head(response.status, response.content_type, keep_alive),
            extra,
            size,
        )
        if request.method == "HEAD":
            parts, size = (), 0
        if size < JOIN_BYTES:
            self._transport.write(b"".join((head, *parts)))
        elif not self._secure:
            self._transport.writelines((head, *parts))
        else:
            await self._write_pieces((head, *parts))
        if self._drained is not None:
            await self._drained

    async def _write_pieces(self, parts: tuple[bytes, ...]) -> None:
        """Over TLS all that is written is encrypted at once, into memory: so a large body goes piece by piece."""
        for part in parts:
            view = memoryview(part)
            for low in range(0, len(part), PIECE_BYTES):
                self._transport.write(view[low : low + PIECE_BYTES])
                if self._drained is not None:
                    await self._drained

    async def _stream(self, response: StreamResponse, keep_alive: bool, chunked: bool) -> bool:
        parts: AsyncIterator[bytes] = response.parts
        keep_alive = keep_alive and chunked
        self._streaming = True
        framing = b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"\r\n"
        head = _head(response.status, response.content_type, keep_alive)
        write = self._transport.write
        write(b"%b%b%b" % (head, _lines(response.headers), framing))
        try:
            async for part in parts:
                write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
                if self._drained is not None:
                    await self._drained
        finally:
            self._streaming = False
            await cast(Any, parts).aclose()
        if chunked:
            write(b"0\r\n\r\n")
        return keep_alive

    # Endings.

    def sweep(self, now: float) -> None:
        """Ends what has taken too long by ``now``."""
        took = now - self._since
        match self._state:
            case State.IDLE if took > self._limits.idle_seconds:
                self._transport.close()
            case State.READING if took > self._limits.request_seconds:
                self._refuse(408, "408 Request Timeout")
            case State.HANDLING if took > self._limits.request_seconds and not self._streaming:
                if self._task is not None and not self._timed_out:
                    self._timed_out = True
                    self._task.cancel()
                elif took > 2 * self._limits.request_seconds:
                    self._transport.abort()
            case State.LINGERING if took > LINGER_SECONDS:
                self._transport.close()

    def end(self, force: bool) -> None:
        """Closes where nothing is under way, or in any case."""
        if force:
            self._transport.abort()
        elif self._state is State.IDLE:
            self._transport.close()

    def _refuse(self, status: int, text: str) -> None:
        """Answers what is no request, and closes."""
        if self._task is not None:
            # The requests before it are answered first; after them the connection ends.
            self._waiting.clear()
            self._connections_close_after()
            return
        body = text.encode()
        head = _head(status, "text/plain; charset=utf-8", False)
        self._transport.write(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body))
        self._linger()

    def _connections_close_after(self) -> None:
        self._keep_alive = False
        self._transport.pause_reading()
        task = self._task
        if task is not None:
            task.add_done_callback(lambda _: self._transport.close())

    def _linger(self) -> None:
        self._state, self._since = State.LINGERING, time.monotonic()
        self._transport.resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()


_heads: dict[tuple[int, str, bool], bytes] = {}
_date: list[Any] = [0, b""]


def _head(status: int, content_type: str, keep_alive: bool) -> bytes:
    """Status line and the fields that every answer has; kept by what they depend on."""
    place = (status, content_type, keep_alive)
    head = _heads.get(place)
    if head is None:
        if len(_heads) > 1000:
            _heads.clear()
        head = _heads[place] = b"HTTP/1.1 %d %b\r\n%b%bCache-Control: no-cache, private\r\n" % (
            status,
            _REASONS.get(status, b""),
            b"" if keep_alive else b"Connection: close\r\n",
            b"Content-Type: %b\r\n" % content_type.encode("latin-1") if content_type else b"",
        )
    now = int(time.time())
    if _date[0] != now:
        _date[0], _date[1] = now, b"Date: %b\r\n" % formatdate(now, usegmt=True).encode()
    return head + cast(bytes, _date[1])


def _lines(headers: tuple[tuple[str, str], ...]) -> bytes:
    if not headers:
        return b""
    return b"".join(
        [b"%b: %b\r\n" % (name.encode("latin-1"), _clean(value).encode("utf-8")) for name, value in headers]
    )


def _clean(value: str) -> str:
    """A value that cannot end its line (RFC 9110 §5.5)."""
    return value.replace("\r", " ").replace("\n", " ").replace("\0", " ")
