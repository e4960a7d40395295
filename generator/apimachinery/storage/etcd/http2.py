"""One connection of HTTP/2 (RFC 9113) from the client's side: frames, flow control, pings; many streams at a time.

Theory. Everything that streams of one turn of the event loop send leaves as one write, so requests that come together
share a system call. What arrives is handed to a stream's ``Receiver`` in the same turn. Rules:

- A body waits where the peer's windows are used up; streams wait where the peer takes no more of them at a time.
- What is received is acknowledged at once for the connection. A stream's receiver acknowledges for the stream, so one
  that reads slowly is sent no more than ``STREAM_WINDOW`` bytes ahead.
- A peer that is gone without a word is noticed by an unanswered ping. etcd throws out who pings more often than every
  five seconds, or without streams: a connection without streams is closed after a while instead.
- ``unsent`` is said of streams that the peer has certainly not looked at: they may be tried elsewhere.
- A peer that breaks the rules is left, whatever it was about.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections import deque
from typing import Protocol, cast

from apimachinery.storage.etcd.fields import BadBlock, BlockDecoder, Fields

PING_SECONDS = 10.0
ANSWER_SECONDS = 5.0
CLOSE_SECONDS = 1.0
STREAM_WINDOW = 4 << 20
CONNECTION_WINDOW = 64 << 20
FRAME_BYTES = 1 << 18
BLOCK_BYTES = 1 << 16
STREAMS_AT_FIRST = 100  # at a time, before the peer has said how many it takes
_LAST_NUMBER = (1 << 31) - 1
_FIRST_WINDOW, _FIRST_FRAME = 65_535, 16_384
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD = struct.Struct(">BHBBL")  # length in two parts, type, flags, stream
_SETTING = struct.Struct(">HL")
_DATA, _HEADERS, _RESET, _SETTINGS, _PUSH, _PING, _GOAWAY, _UPDATE, _MORE = 0, 1, 3, 4, 5, 6, 7, 8, 9
_ENDS_STREAM, _ACK, _ENDS_BLOCK, _PADDED, _PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_TABLE_SIZE, _ENABLE_PUSH, _MOST_STREAMS, _WINDOW_SIZE, _FRAME_SIZE = 1, 2, 3, 4, 5
_PROTOCOL_ERROR, _FLOW_ERROR, _SIZE_ERROR, _REFUSED, _CANCEL, _COMPRESSION_ERROR = 1, 3, 6, 7, 8, 9


class Receiver(Protocol):
    """Takes what arrives on a stream; must not raise or wait. After ``ended`` and ``lost`` nothing comes."""

    def fields(self, fields: Fields) -> None:
        """Takes header fields, or those behind the body."""

    def data(self, data: bytes) -> None:
        """Takes a piece of the body."""

    def ended(self) -> None:
        """Notes that the peer has said all."""

    def lost(self, reason: str, code: int, unsent: bool) -> None:
        """Notes that the stream broke; ``code`` is the peer's reason where it gave one, else -1."""


class BrokenRule(Exception):
    """What the peer sent is no HTTP/2."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Http2Stream:
    """One request and its answer."""

    __slots__ = (
        "_at",
        "_body",
        "_connection",
        "_ends",
        "_unacknowledged",
        "fields",
        "number",
        "receiver",
        "window",
    )

    def __init__(self, connection: Http2Connection, fields: bytes, receiver: Receiver) -> None:
        self._connection = connection
        self.fields = fields
        self.receiver = receiver
        self.number = 0  # until it is begun
        self.window = 0
        self._body, self._at, self._ends = b"", 0, False
        self._unacknowledged = 0

    def send(self, data: bytes, *, ends: bool = False) -> None:
        """Sends a piece of the body; nothing where the stream has ended."""
        self._body = self._body[self._at :] + data if self._at < len(self._body) else data
        self._at, self._ends = 0, ends
        if self.number:
            self._connection.pump(self)

    def take(self, room: int) -> tuple[bytes, bool] | None:
        """The next piece of the body, and whether it is the last; None where there is none, or no room."""
        left = len(self._body) - self._at
        if left:
            room = min(room, self.window)
            if room <= 0:
                return None
            piece = self._body[self._at : self._at + room] if room < left else self._body[self._at :]
            self._at += len(piece)
            self.window -= len(piece)
        elif self._ends:
            piece = b""
        else:
            return None
        if self._at < len(self._body):
            return piece, False
        ends, self._body, self._at, self._ends = self._ends, b"", 0, False
        return piece, ends

    @property
    def waits_for_room(self) -> bool:
        """Whether some of the body is still to be sent."""
        return self._at < len(self._body)

    def received(self, size: int) -> None:
        """Counts bytes that are not acknowledged yet."""
        self._unacknowledged += size
        if self._unacknowledged > STREAM_WINDOW:
            raise BrokenRule(_FLOW_ERROR, "more of a stream than its window")

    def acknowledge(self) -> None:
        """Lets the peer send as much again as has arrived, once it is enough to say so."""
        if self._unacknowledged > STREAM_WINDOW // 4:
            size, self._unacknowledged = self._unacknowledged, 0
            self._connection.acknowledge(self, size)

    def cancel(self) -> None:
        """Ends the stream, whatever has been said; harmless where it has ended. Its receiver is told nothing."""
        self._connection.cancel(self)


class Http2Connection(asyncio.Protocol):
    """See the module. Made by ``connect``."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._decoder = BlockDecoder()
        self._out: list[bytes] = []
        self._rest = b""
        self._block: tuple[int, int, bytearray] | None = None  # of a stream, its flags: fields that go on
        self._streams: dict[int, Http2Stream] = {}
        self._waiting: deque[Http2Stream] = deque()  # for the peer to take more streams
        self._blocked: dict[int, Http2Stream] = {}  # for room
        self._next = 1
        self._window = _FIRST_WINDOW
        self._stream_window = _FIRST_WINDOW
        self._frame_bytes = _FIRST_FRAME
        self._most_streams = STREAMS_AT_FIRST
        self._settled = False
        self._unacknowledged = 0
        self._draining = False
        self._closed = False
        self._heard = False
        self._looking: asyncio.TimerHandle | None = None
        self._gone = asyncio.Event()

    @property
    def takes_streams(self) -> bool:
        """Whether streams can be begun on it."""
        return not self._draining and not self._closed

    @property
    def is_closed(self) -> bool:
        """Whether it has ended."""
        return self._closed

    # The transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's derives from none of asyncio's
        settings = (
            (_TABLE_SIZE, 0),
            (_ENABLE_PUSH, 0),
            (_WINDOW_SIZE, STREAM_WINDOW),
            (_FRAME_SIZE, FRAME_BYTES),
        )
        self._send_frame(
            _SETTINGS, 0, 0, b"".join(_SETTING.pack(*each) for each in settings), before=_PREFACE
        )
        self._send_frame(_UPDATE, 0, 0, struct.pack(">L", CONNECTION_WINDOW - _FIRST_WINDOW))
        self._looking = self._loop.call_later(PING_SECONDS, self._look)

    def connection_lost(self, fault: Exception | None) -> None:
        self._end(str(fault) if fault is not None else "the connection was closed")
        self._gone.set()

    async def close(self) -> None:
        """Ends all streams, and the connection. Returns when its socket is closed."""
        self._end("the connection was closed")
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._gone.wait()
        except TimeoutError:  # what is left to be sent is not taken any more
            if self._transport is not None:
                self._transport.abort()

    def _end(self, reason: str) -> None:
        if self._closed:
            return
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
        self._flush()
        if self._transport is not None:
            self._transport.close()
        streams, self._streams = self._streams, {}
        waiting, self._waiting = self._waiting, deque()
        self._blocked.clear()
        for stream in streams.values():
            stream.receiver.lost(reason, -1, False)
        for stream in waiting:
            stream.receiver.lost(reason, -1, True)

    def _look(self) -> None:
        """Asks a peer that has been silent whether it is there."""
        if self._heard:
            self._heard = False
            self._looking = self._loop.call_later(PING_SECONDS, self._look)
            return
        if not self._streams:
            self._end("nobody used the connection")
            return
        self._send_frame(_PING, 0, 0, bytes(8))
        self._looking = self._loop.call_later(ANSWER_SECONDS, self._look_again)

    def _look_again(self) -> None:
        if not self._heard:
            if self._transport is not None:
                self._transport.abort()
            self._end("no answer to a ping")
            return
        self._heard = False
        self._looking = self._loop.call_later(PING_SECONDS, self._look)

    # Sending.

    def begin(
        self, fields: bytes, receiver: Receiver, body: bytes = b"", *, ends: bool = False
    ) -> Http2Stream:
        """Begins a stream with fields, and the body or its first piece. Only where it ``takes_streams``."""
        stream = Http2Stream(self, fields, receiver)
        if len(self._streams) < self._most_streams:
            self._start(stream)
        else:
            self._waiting.append(stream)
        if body or ends:
            stream.send(body, ends=ends)
        return stream

    def _start(self, stream: Http2Stream) -> None:
        number = stream.number = self._next
        self._next += 2
        if self._next > _LAST_NUMBER:
            self._draining = True
        stream.window = self._stream_window
        self._streams[number] = stream
        self._send_frame(_HEADERS, _ENDS_BLOCK, number, stream.fields)

    def pump(self, stream: Http2Stream) -> None:
        """Sends of a stream's body what there is room for."""
        if stream.number not in self._streams:
            return
        while (taken := stream.take(min(self._window, self._frame_bytes))) is not None:
            piece, ends = taken
            self._window -= len(piece)
            self._send_frame(_DATA, _ENDS_STREAM if ends else 0, stream.number, piece)
        if stream.waits_for_room:
            self._blocked[stream.number] = stream
        else:
            self._blocked.pop(stream.number, None)

    def cancel(self, stream: Http2Stream) -> None:
        """Ends a stream; see ``Http2Stream.cancel``."""
        if self._streams.get(stream.number) is stream:
            self._send_frame(_RESET, 0, stream.number, struct.pack(">L", _CANCEL))
            self._forget(stream)
        elif stream in self._waiting:
            self._waiting.remove(stream)

    def acknowledge(self, stream: Http2Stream, size: int) -> None:
        """Lets the peer send ``size`` more bytes of a stream."""
        if stream.number in self._streams:
            self._send_frame(_UPDATE, 0, stream.number, struct.pack(">L", size))

    def _send_frame(self, kind: int, flags: int, number: int, payload: bytes, *, before: bytes = b"") -> None:
        if not self._out:
            self._loop.call_soon(self._flush)
        size = len(payload)
        self._out.append(before + _HEAD.pack(size >> 16, size & 0xFFFF, kind, flags, number) + payload)

    def _flush(self) -> None:
        if self._out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def _forget(self, stream: Http2Stream) -> None:
        """Has done with a stream; those who wait take its place."""
        self._streams.pop(stream.number, None)
        self._blocked.pop(stream.number, None)
        self._start_waiting()
        if self._draining:
            self._drained()

    def _start_waiting(self) -> None:
        while self._waiting and len(self._streams) < self._most_streams and self.takes_streams:
            waiting = self._waiting.popleft()
            self._start(waiting)
            self.pump(waiting)

    def _drained(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            each.receiver.lost("the member takes no more calls on this connection", -1, True)
        if not self._streams:
            self._end("the connection was closed")

    # Receiving.

    def data_received(self, data: bytes) -> None:
        self._heard = True
        if self._rest:
            data = self._rest + data
        at, size = 0, len(data)
        try:
            while size - at >= 9 and not self._closed:
                high, low, kind, flags, number = _HEAD.unpack_from(data, at)
                length = high << 16 | low
                if length > FRAME_BYTES:
                    raise BrokenRule(_SIZE_ERROR, f"a frame of {length} bytes")
                if at + 9 + length > size:
                    break
                self._frame(kind, flags, number & _LAST_NUMBER, data[at + 9 : at + 9 + length])
                at += 9 + length
        except (BrokenRule, BadBlock, struct.error, IndexError) as fault:
            self._leave(fault)
            return
        self._rest = data[at:] if at else data

    def _leave(self, fault: Exception) -> None:
        code = fault.code if isinstance(fault, BrokenRule) else _COMPRESSION_ERROR
        if not self._closed:
            self._send_frame(_GOAWAY, 0, 0, struct.pack(">LL", 0, code))
        self._end(f"the member does not speak HTTP/2: {fault}")

    def _frame(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._block is not None and (kind != _MORE or number != self._block[0]):
            raise BrokenRule(_PROTOCOL_ERROR, "a frame amid header fields")
        if kind == _DATA:
            self._take_data(flags, number, payload)
        elif kind == _HEADERS:
            payload = _unpadded(flags, payload)
            self._take_block(flags, number, payload[5:] if flags & _PRIORITY else payload)
        elif kind == _MORE:
            self._take_more(flags, payload)
        elif kind == _RESET:
            (code,) = struct.unpack(">L", payload)
            if (stream := self._streams.get(number)) is not None:
                self._forget(stream)
                stream.receiver.lost("the member broke the call off", code, code == _REFUSED)
        elif kind == _SETTINGS:
            self._take_settings(flags, payload)
        elif kind == _PING:
            if not flags & _ACK:
                self._send_frame(_PING, _ACK, 0, payload)
        elif kind == _GOAWAY:
            self._take_goaway(payload)
        elif kind == _UPDATE:
            self._take_update(number, payload)
        elif kind == _PUSH:
            raise BrokenRule(_PROTOCOL_ERROR, "a push, which was not allowed")

    def _take_data(self, flags: int, number: int, payload: bytes) -> None:
        if not number:
            raise BrokenRule(_PROTOCOL_ERROR, "a body of no stream")
        size = len(payload)
        self._unacknowledged += size
        if self._unacknowledged > CONNECTION_WINDOW // 4:
            self._send_frame(_UPDATE, 0, 0, struct.pack(">L", self._unacknowledged))
            self._unacknowledged = 0
        stream = self._streams.get(number)
        if stream is None:
            return
        stream.received(size)
        stream.receiver.data(_unpadded(flags, payload))
        if flags & _ENDS_STREAM:
            self._ended(stream)

    def _take_block(self, flags: int, number: int, block: bytes) -> None:
        if not number:
            raise BrokenRule(_PROTOCOL_ERROR, "header fields of no stream")
        if not flags & _ENDS_BLOCK:
            self._block = (number, flags, bytearray(block))
            return
        fields = self._decoder.fields(block)
        stream = self._streams.get(number)
        if stream is None:
            return
        stream.receiver.fields(fields)
        if flags & _ENDS_STREAM:
            self._ended(stream)

    def _take_more(self, flags: int, payload: bytes) -> None:
        if self._block is None:
            raise BrokenRule(_PROTOCOL_ERROR, "more header fields of no stream")
        number, first, block = self._block
        block += payload
        if len(block) > BLOCK_BYTES:
            raise BrokenRule(_PROTOCOL_ERROR, f"more than {BLOCK_BYTES} bytes of header fields")
        if flags & _ENDS_BLOCK:
            self._block = None
            self._take_block(first | _ENDS_BLOCK, number, bytes(block))

    def _ended(self, stream: Http2Stream) -> None:
        if self._streams.get(stream.number) is stream:
            self._forget(stream)
            stream.receiver.ended()

    def _take_settings(self, flags: int, payload: bytes) -> None:
        if flags & _ACK:
            return
        said = dict(_SETTING.iter_unpack(payload))
        if (size := said.get(_WINDOW_SIZE)) is not None:
            if size > _LAST_NUMBER:
                raise BrokenRule(_FLOW_ERROR, f"a window of {size} bytes")
            for stream in self._streams.values():
                stream.window += size - self._stream_window
            self._stream_window = size
        self._frame_bytes = max(_FIRST_FRAME, min(said.get(_FRAME_SIZE, self._frame_bytes), 1 << 24))
        # Who says nothing of streams at first takes any number.
        self._most_streams = said.get(_MOST_STREAMS, self._most_streams if self._settled else _LAST_NUMBER)
        self._settled = True
        self._send_frame(_SETTINGS, _ACK, 0, b"")
        self._unblock()
        self._start_waiting()

    def _take_update(self, number: int, payload: bytes) -> None:
        (more,) = struct.unpack(">L", payload)
        if number:
            if (stream := self._streams.get(number)) is not None:
                stream.window += more
                self.pump(stream)
            return
        self._window += more
        if self._window > _LAST_NUMBER:
            raise BrokenRule(_FLOW_ERROR, "a window above the greatest")
        self._unblock()

    def _unblock(self) -> None:
        for stream in tuple(self._blocked.values()):
            if self._window <= 0:
                break
            self.pump(stream)

    def _take_goaway(self, payload: bytes) -> None:
        (last,) = struct.unpack_from(">L", payload)
        self._draining = True
        for stream in [each for number, each in self._streams.items() if number > last & _LAST_NUMBER]:
            self._streams.pop(stream.number, None)
            self._blocked.pop(stream.number, None)
            stream.receiver.lost("the member takes no more calls on this connection", -1, True)
        self._drained()


def _unpadded(flags: int, payload: bytes) -> bytes:
    if not flags & _PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise BrokenRule(_PROTOCOL_ERROR, "more padding than frame")
    return payload[1 : len(payload) - payload[0]]


async def connect(host: str, port: int, tls: ssl.SSLContext | None) -> Http2Connection:
    """A connection. Raises OSError."""
    loop = asyncio.get_running_loop()
    transport, connection = await loop.create_connection(
        Http2Connection, host, port, ssl=tls, server_hostname=host if tls is not None else None
    )
    if tls is not None:
        agreed = transport.get_extra_info("ssl_object")
        if agreed is not None and agreed.selected_alpn_protocol() != "h2":
            transport.abort()
            raise OSError("the member offers no HTTP/2")
    return connection
