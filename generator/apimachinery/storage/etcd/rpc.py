"""gRPC over HTTP/2: calls with one answer, and streams of messages, to one member.

Theory. A message travels as a byte that says whether it is compressed, its length, and its bytes; the fields behind the
body have the status. Of gRPC that is all that etcd's API needs: no compression, no retries, no names to look up. A
library would bring threads and a poller of its own beside the event loop, which costs several times what a call does.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
import time
from collections import deque
from typing import Any
from urllib.parse import unquote_to_bytes

from google.protobuf.message import DecodeError

from apimachinery.storage.etcd import http2
from apimachinery.storage.etcd.fields import Fields, encoded

CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, PERMISSION_DENIED, RESOURCE_EXHAUSTED = 1, 2, 4, 7, 8
UNIMPLEMENTED, INTERNAL, UNAVAILABLE, UNAUTHENTICATED = 12, 13, 14, 16
_STATUSES = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS "
    "UNAUTHENTICATED"
).split()
CONNECT_SECONDS = 2.0
PAUSE_SECONDS = 0.1
_MESSAGE = struct.Struct(">BL")
_STATUS_OF_RESET = {7: UNAVAILABLE, 8: CANCELLED, 11: RESOURCE_EXHAUSTED, 12: PERMISSION_DENIED}
_STATUS_OF_HTTP = {
    b"400": INTERNAL,
    b"401": UNAUTHENTICATED,
    b"403": PERMISSION_DENIED,
    b"404": UNIMPLEMENTED,
}
Method = tuple[str, Any, Any]
"""A path, and the types of the request and of the answer."""


class RpcFailed(Exception):
    """A call that has no answer. ``unsent``: the member has certainly not looked at it."""

    def __init__(self, status: int, details: str, *, unsent: bool = False) -> None:
        super().__init__(f"{status_name(status)}: {details}")
        self.status = status
        self.details = details
        self.unsent = unsent


def status_name(status: int) -> str:
    """The name of a status."""
    return _STATUSES[status] if 0 <= status < len(_STATUSES) else str(status)


class Answers:
    """The messages of one stream as they come, and how it ended; see ``http2.Receiver``."""

    def __init__(self) -> None:
        self.stream: http2.Http2Stream | None = None
        self.failed: RpcFailed | None = None
        self.done = False
        self._messages: deque[bytes] = deque()
        self._rest = (
            bytearray()
        )  # of a message that has not come as a whole, of which there are ``_awaited`` bytes
        self._awaited = 0
        self._fields: Fields = {}
        self._reader: asyncio.Future[None] | None = None

    def fields(self, fields: Fields) -> None:
        # The first fields have the HTTP status, the last ones that of the call; they may be the same.
        self._fields = {**self._fields, **fields} if self._fields else fields

    def data(self, data: bytes) -> None:
        if self._rest:
            self._rest += data
            data = bytes(self._rest) if len(self._rest) >= self._awaited else b""
        at, size = 0, len(data)
        self._awaited = max(self._awaited, 5) if not size else 5
        while size - at >= 5:
            compressed, length = _MESSAGE.unpack_from(data, at)
            if compressed:
                self._fail(RpcFailed(INTERNAL, "a compressed message, which was not asked for"))
                return
            self._awaited = 5 + length
            if size - at < self._awaited:
                break
            self._messages.append(data[at + 5 : at + 5 + length])
            at, self._awaited = at + 5 + length, 5
        if size:
            self._rest = bytearray(data[at:])
        if self._messages:
            self._wake()
        elif self.stream is not None:
            self.stream.acknowledge()

    def ended(self) -> None:
        self.done = True
        said = self._fields.get(b"grpc-status", b"")
        http = self._fields.get(b":status", b"")
        if said.isdigit():
            if status := int(said[:4]):
                details = unquote_to_bytes(self._fields.get(b"grpc-message", b"")).decode("utf-8", "replace")
                self.failed = RpcFailed(status, details)
        elif http != b"200":
            text = http.decode("ascii", "replace")
            self.failed = RpcFailed(_STATUS_OF_HTTP.get(http, UNAVAILABLE), f"HTTP status {text}")
        else:
            self.failed = RpcFailed(UNKNOWN, "the member named no status")
        self._wake()

    def lost(self, reason: str, code: int, unsent: bool) -> None:
        self.done = True
        status = UNAVAILABLE if code < 0 else _STATUS_OF_RESET.get(code, INTERNAL)
        self.failed = RpcFailed(status, reason, unsent=unsent)
        self._wake()

    def _fail(self, failed: RpcFailed) -> None:
        """Ends the stream from this side."""
        if self.done:
            return
        self.done, self.failed = True, failed
        if self.stream is not None:
            self.stream.cancel()
        self._wake()

    def late(self) -> None:
        """Ends the stream where its time is up."""
        self._fail(RpcFailed(DEADLINE_EXCEEDED, "no answer in time"))

    def cancel(self) -> None:
        """Ends the stream; whoever reads is told so."""
        self._fail(RpcFailed(CANCELLED, "the call was cancelled"))

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def next(self) -> bytes | None:
        """The next message; None behind the last one of a stream that ended well. Raises RpcFailed."""
        while not self._messages:
            if self.failed is not None:
                raise self.failed
            if self.done:
                return None
            if self.stream is not None:
                self.stream.acknowledge()
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self._messages.popleft()

    async def whole(self) -> bytes:
        """The one message of a stream that ended well. Raises RpcFailed."""
        while not self.done:
            if self.stream is not None:
                self.stream.acknowledge()
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        if self.failed is not None:
            raise self.failed
        if len(self._messages) != 1:
            raise RpcFailed(INTERNAL, f"{len(self._messages)} messages, where one answers")
        return self._messages[0]


class MessageStream:
    """A call that goes on: messages both ways."""

    def __init__(self, answers: Answers, stream: http2.Http2Stream, response: Any) -> None:
        self._answers = answers
        self._stream = stream
        self._parse = response.FromString

    def write(self, request: Any) -> None:
        """Sends a message; nothing where the stream has ended."""
        if not self._answers.done:
            self._stream.send(_framed(request))

    async def read(self) -> Any:
        """The next message; None behind the last one. Raises RpcFailed."""
        message = await self._answers.next()
        return None if message is None else _parsed(self._parse, message)

    def cancel(self) -> None:
        """Ends it. Harmless when repeated."""
        self._answers.cancel()


class RpcChannel:
    """Calls to one member, over one connection at a time, which is made when it is needed."""

    def __init__(self, endpoint: str, tls: ssl.SSLContext | None) -> None:
        host, _, port = endpoint.rpartition(":")
        self._host, self._port = host.strip("[]"), int(port)
        self._tls = tls
        self._endpoint = endpoint
        self._paths: dict[str, bytes] = {}
        self._connection: http2.Http2Connection | None = None
        self._connecting: asyncio.Task[http2.Http2Connection | None] | None = None
        self._failed = ""
        self._failed_at = 0.0
        self._closed = False
        self._draining: list[http2.Http2Connection] = []

    async def call(self, method: Method, request: Any, seconds: float) -> Any:
        """The answer of a call, in so many seconds. Raises RpcFailed."""
        path, _, response = method
        began = time.monotonic()
        connection = self._connection
        if connection is None or not connection.takes_streams:
            connection = await self._connected(seconds)
            seconds = max(seconds - (time.monotonic() - began), 0.01)
        answers = Answers()
        timer = asyncio.get_running_loop().call_later(seconds, answers.late)
        limit = b"%dm" % max(int(seconds * 1000), 1)
        fields = self._of(path) + encoded((b"grpc-timeout", limit))
        answers.stream = connection.begin(fields, answers, _framed(request), ends=True)
        try:
            return _parsed(response.FromString, await answers.whole())
        finally:
            timer.cancel()
            answers.cancel()

    async def stream(self, method: Method, request: Any = None) -> MessageStream:
        """A call that goes on; ``request`` is the only one there will be. Raises RpcFailed."""
        path, _, response = method
        connection = await self._connected(CONNECT_SECONDS)
        answers = Answers()
        body = b"" if request is None else _framed(request)
        answers.stream = connection.begin(self._of(path), answers, body, ends=request is not None)
        return MessageStream(answers, answers.stream, response)

    def _of(self, path: str) -> bytes:
        """The fields of calls of a method."""
        fields = self._paths.get(path)
        if fields is None:
            fields = self._paths[path] = encoded(
                (b":method", b"POST"),
                (b":scheme", b"http" if self._tls is None else b"https"),
                (b":path", path.encode()),
                (b":authority", self._endpoint.encode()),
                (b"te", b"trailers"),
                (b"content-type", b"application/grpc"),
            )
        return fields

    async def _connected(self, seconds: float) -> http2.Http2Connection:
        """A connection that takes calls. Raises RpcFailed, which is unsent."""
        if self._closed:
            raise RpcFailed(UNAVAILABLE, "the channel is closed", unsent=True)
        if self._connection is not None and self._connection.takes_streams:
            return self._connection
        if self._connecting is None:
            if time.monotonic() - self._failed_at < PAUSE_SECONDS:
                raise RpcFailed(UNAVAILABLE, self._failed, unsent=True)
            self._connecting = asyncio.create_task(self._connect())
        connecting = self._connecting
        await asyncio.wait((connecting,), timeout=seconds)
        if not connecting.done():
            raise RpcFailed(UNAVAILABLE, "no connection in time", unsent=True)
        made = None if connecting.cancelled() else connecting.result()
        if made is None:
            raise RpcFailed(UNAVAILABLE, self._failed, unsent=True)
        return made

    async def _connect(self) -> http2.Http2Connection | None:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                made = await http2.connect(self._host, self._port, self._tls)
        except (OSError, TimeoutError) as fault:
            self._failed = f"failed to connect: {str(fault) or 'no answer in time'}"
            self._failed_at = time.monotonic()
            return None
        finally:
            self._connecting = None
        before, self._connection = self._connection, made
        self._draining = [
            each for each in (*self._draining, before) if each is not None and not each.is_closed
        ]
        return made

    async def close(self) -> None:
        """Ends all calls."""
        self._closed = True
        if (connecting := self._connecting) is not None:
            self._failed = "the channel is closed"
            connecting.cancel()
            await asyncio.wait((connecting,))
        connections = (*self._draining, self._connection)
        await asyncio.gather(*(each.close() for each in connections if each is not None))


def _framed(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return _MESSAGE.pack(0, len(data)) + data


def _parsed(parse: Any, message: bytes) -> Any:
    try:
        return parse(message)
    except DecodeError as fault:
        raise RpcFailed(INTERNAL, f"a message that cannot be read: {fault}") from None
