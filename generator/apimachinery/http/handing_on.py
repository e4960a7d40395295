"""Requests that one process of a server hands on to another, as they came, and its answers.

Theory. The other process decides everything about such a request, who it is of too: the header fields go on as they
are, credentials included. What a request says besides its bytes, the client's address and the certificate that TLS
verified, is said once for a connection, in a line before the first request. So whoever can open such a connection can
claim any certificate. It cannot be opened by a name: both ends are made by ``socketpair``, and one is sent over a
socket that the processes share since the fork.

A connection is used for one address and one certificate alone, and for one request at a time; requests are written
again from what was read, so the two parsers cannot disagree about where one ends. Answers of known length are read
whole, others are passed on as they come, and so are connections that are upgraded.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import cast

from apimachinery.http.asking import AnswerReader, BadAnswer
from apimachinery.http.messages import BrokenOff, Request, Response, StreamResponse, Tunnel, UpgradeResponse
from apimachinery.http.outgoing import CallFailed
from apimachinery.http.protocol import Connections, HttpConnection
from apimachinery.http.relay import is_upgrade, pump

Answered = Response | StreamResponse | UpgradeResponse
Connect = Callable[[], Awaitable[socket.socket]]
"""Makes a connection to the other process. Raises OSError."""
IDLE_SECONDS, MOST_IDLE = 15.0, 256
HEAD_BYTES = 1 << 16
_BETWEEN_NEIGHBOURS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        # What goes to the client is compressed where TLS is, as everything is.
        "accept-encoding",
    }
)
_SET_BY_PROTOCOL = frozenset(
    {
        "connection",
        "content-length",
        "content-type",
        "date",
        "keep-alive",
        "transfer-encoding",
        "x-content-type-options",
    }
)
_Client = tuple[str, tuple[bytes, ...]]


def _introduction(client: _Client) -> bytes:
    """The line before the first request."""
    source, peer = client
    return b"%b %b\n" % (source.encode("ascii"), b",".join(each.hex().encode() for each in peer))


class HandedConnection(HttpConnection):
    """The connection at the process that answers. It never idles too long: the other side ends it."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        self._introduced: bytearray | None = bytearray()

    def data_received(self, data: bytes) -> None:
        """Takes the introduction, then requests."""
        if self._introduced is None:
            super().data_received(data)
            return
        # The introduction may come in several pieces.
        self._introduced += data
        line, ended, rest = bytes(self._introduced).partition(b"\n")
        if not ended:
            return
        self._introduced = None
        source, _, peer = line.partition(b" ")
        self._source = source.decode("ascii")
        self._peer = tuple(bytes.fromhex(each.decode()) for each in peer.split(b",") if each)
        if rest:
            super().data_received(rest)

    # The server's own idle limit would close a connection just when the other side uses it again.
    def sweep(self, now: float, idle_seconds: float) -> None:
        """Ends what takes too long, but no idling."""
        super().sweep(now, float("inf"))


class HandingOn:
    """The process that hands on. Call ``sweep`` now and then."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._idle: dict[_Client, list[_Line]] = {}
        self._count = 0

    async def answer(self, request: Request) -> Answered:
        """The other process's answer. Raises CallFailed."""
        client = (request.source, request.peer)
        try:
            if is_upgrade(request):
                return await self._upgrade(request, client)
            line = self._kept(client) or await self._new(client)
            return await self._ask(request, line)
        except (OSError, BadAnswer) as fault:
            raise CallFailed(str(fault)) from None

    def sweep(self) -> None:
        """Ends what nobody has used for a while."""
        before = time.monotonic() - IDLE_SECONDS
        for client, lines in list(self._idle.items()):
            # The list is in order of use, so the oldest is first.
            while lines and lines[0].used < before:
                lines.pop(0).close()
                self._count -= 1
            if not lines:
                del self._idle[client]

    def close(self) -> None:
        """Ends what is not in use."""
        for lines in self._idle.values():
            for line in lines:
                line.close()
        self._idle.clear()
        self._count = 0

    def _kept(self, client: _Client) -> _Line | None:
        lines = self._idle.get(client)
        while lines:
            # The newest: it is least likely to have been closed meanwhile.
            line = lines.pop()
            self._count -= 1
            if not line.closed:
                return line
        return None

    def _keep(self, line: _Line) -> None:
        if line.closed or self._count >= MOST_IDLE:
            line.close()
            return
        line.used = time.monotonic()
        self._idle.setdefault(line.client, []).append(line)
        self._count += 1

    async def _new(self, client: _Client) -> _Line:
        line = _Line(client)
        own = await self._connect()
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: line, sock=own)
        except BaseException:
            own.close()
            raise
        # HandedConnection reads it before any request.
        line.write(_introduction(client))
        return line

    async def _ask(self, request: Request, line: _Line) -> Answered:
        try:
            answer = await line.ask(request.method, _head(request) + request.body)
            fields, content_type = _fields(answer.headers)
            # Without a length: a watch. It is passed on as it comes.
            if answer.length is None and not answer.ended:
                return StreamResponse(answer.code, _parts(line), content_type, fields)
            body = b"".join([part async for part in line.parts()])
        except BaseException:
            # A connection given up halfway would deliver its rest as the next answer.
            line.close()
            raise
        self._let_go(line, answer)
        return Response(answer.code, body, content_type, fields)

    def _let_go(self, line: _Line, answer: AnswerReader) -> None:
        if answer.keeps and answer.ended:
            self._keep(line)
        else:
            line.close()

    async def _upgrade(self, request: Request, client: _Client) -> Answered:
        own = await self._connect()
        try:
            reader, writer = await asyncio.open_unix_connection(sock=own, limit=HEAD_BYTES)
        except BaseException:
            own.close()
            raise
        try:
            offer = f"Connection: Upgrade\r\nUpgrade: {request.headers['upgrade']}\r\n".encode("latin-1")
            writer.write(_introduction(client) + _head(request, offer) + request.body)
            # The other process may refuse by status code; then its answer is a whole HTTP answer.
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            if head.split(b" ", 2)[1] != b"101":
                refusal = await _refusal(request, head, reader)
                writer.close()
                return refusal
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, IndexError):
            writer.close()
            raise CallFailed("error reading the answer to an offer to upgrade") from None
        except BaseException:
            writer.close()
            raise

        async def run(tunnel: Tunnel) -> None:
            try:
                tunnel.write(head)
                await pump(tunnel, reader, writer)
            except OSError:
                pass
            finally:
                writer.close()

        return UpgradeResponse(run)


class _Line(asyncio.Protocol):
    """One connection, at the side that asks."""

    def __init__(self, client: _Client) -> None:
        self.client = client
        self.used = 0.0
        self.closed = False
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._answer: AnswerReader | None = None
        self._parts: list[bytes] = []
        self._fault: Exception | None = None
        self._bell: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes the socket."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Notes the end."""
        self.closed = True
        answer = self._answer
        if answer is not None and not answer.ended and self._fault is None:
            try:
                answer.end()
            except BadAnswer as fault:
                self._fault = fault
        self._ring()

    def data_received(self, data: bytes) -> None:
        """Takes a piece of the answer."""
        answer = self._answer
        if answer is None:
            # Nobody asked: the connection cannot be used any more.
            self._transport.abort()
            return
        try:
            part = answer.take(data)
        except BadAnswer as fault:
            self._fault = fault
            self._transport.abort()
        else:
            if part:
                self._parts.append(part)
                if answer.length is None:
                    # Of an endless answer one piece at a time is kept, or a slow client would fill the memory.
                    self._transport.pause_reading()
        if answer.code or self._fault:
            self._ring()

    def write(self, data: bytes) -> None:
        """Sends bytes."""
        self._transport.write(data)

    def close(self) -> None:
        """Ends it."""
        if not self.closed:
            self.closed = True
            self._transport.abort()

    async def ask(self, method: str, data: bytes) -> AnswerReader:
        """Sends a request, and returns when the head of its answer has come. Raises BadAnswer."""
        if self.closed:
            raise BadAnswer("the connection was closed before an answer came")
        answer = self._answer = AnswerReader(method)
        self._transport.write(data)
        while not answer.code:
            await self._wait()
        return answer

    async def parts(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises BadAnswer where it is not whole."""
        answer = self._answer
        assert answer is not None
        while True:
            parts, self._parts = self._parts, []
            for part in parts:
                yield part
            # What came while the parts were consumed.
            if self._parts:
                continue
            if answer.ended:
                return
            if answer.length is None and not self.closed:
                self._transport.resume_reading()
            await self._wait()

    async def _wait(self) -> None:
        if self._fault is not None:
            raise self._fault
        if self.closed:
            raise BadAnswer("the connection was closed in the middle of the answer")
        self._bell = asyncio.get_running_loop().create_future()
        try:
            await self._bell
        finally:
            self._bell = None
        if self._fault is not None:
            raise self._fault

    def _ring(self) -> None:
        # The waiter may have been cancelled.
        if self._bell is not None and not self._bell.done():
            self._bell.set_result(None)


async def _parts(line: _Line) -> AsyncIterator[bytes]:
    try:
        async for part in line.parts():
            yield part
    except (OSError, BadAnswer) as fault:
        raise BrokenOff(str(fault)) from None
    finally:
        line.close()


async def _refusal(request: Request, head: bytes, reader: asyncio.StreamReader) -> Response:
    """The answer to an offer that is not taken. Raises BadAnswer."""
    answer, parts, data = AnswerReader(request.method), list[bytes](), head
    while data:
        parts.append(answer.take(data))
        data = b"" if answer.ended else await reader.read(HEAD_BYTES)
    if not answer.ended:
        answer.end()
    fields, content_type = _fields(answer.headers)
    return Response(answer.code, b"".join(parts), content_type, fields)


def _head(request: Request, more: bytes = b"") -> bytes:
    """The head of a request as it goes on. Raises BadAnswer for one that would be read otherwise there."""
    named = _BETWEEN_NEIGHBOURS
    if "connection" in request.headers:
        named = named | {each.strip().lower() for each in request.headers["connection"].split(",")}
    lines = [f"{request.method} {request.uri.decode('latin-1')} HTTP/1.1"]
    for name in request.headers:
        if name not in named:
            lines += [f"{name}: {value}" for value in request.values(name)]
    # Our parser of HTTP/1.1 on the other side refuses a request without a Host.
    if "host" not in request.headers:  # of HTTP/1.0
        lines.append("host:")
    if request.body or request.method not in ("GET", "HEAD"):
        lines.append(f"content-length: {len(request.body)}")
    text = "\r\n".join([*lines, ""])
    # The parser lets no line end through, but a field decides what the other side believes: better refused here.
    if text.count("\n") != len(lines) or text.count("\r") != len(lines):
        raise BadAnswer("a field of the request has a line end in it")
    return text.encode("latin-1") + more + b"\r\n"


def _fields(headers: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], str]:
    """The fields of an answer that go on, and its media type."""
    fields = [
        (name, value)
        for name, values in headers.items()
        if name not in _SET_BY_PROTOCOL
        for value in values.split("\n")
        # The protocol adds this to every answer; twice would be sent on.
        if (name, value) != ("cache-control", "no-cache, private")
    ]
    return tuple(fields), headers.get("content-type", "")
