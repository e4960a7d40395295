"""HTTP/1.1 on a socket: bytes in, ``Request`` to the application, ``Response`` or ``StreamResponse`` out.

Why not an ASGI server: measured (``tests/bench/http_servers.py``), a protocol of this size over llhttp
(httptools) answers two to three times as many small requests as the ASGI servers in Python, and sends large
bodies without a copy. Parsing stays llhttp's, the loop uvloop's where it is installed.

States of a connection (RFC 9112)::

    IDLE --first byte--> READING --whole request--> HANDLING --answer sent--> IDLE
                            |                          |
                            +--- cannot be read -------+--> LINGERING --> closed

- One request is handled at a time; what a client sends ahead (pipelining) waits, and reading stops
  while more than one waits. Of all that was sent ahead one request is begun in a turn of the loop.
- A body over the limit is not kept. The answer (413) is sent, then what still comes is thrown away for a
  moment: closing at once would reset the connection and lose the answer (RFC 9112 §9.6).
- ``sweep``, called once a second, ends what takes too long: requests that do not arrive, handlers that do not
  answer, connections that idle.
- A client that goes away matters to a stream only; other handlers run to their end.

What a client can make this side hold is bounded (``ConnectionLimits``):

- A head, and what surrounds a body (chunk sizes, their extensions, trailers), in bytes and in fields: 431; its
  target: 414.
- A body above ``anonymous_body_bytes`` is kept only for somebody whom the application knows; whoever it does not
  know is answered before the rest has come.
- What all of them together make this side hold (heads, bodies, answers that are not taken) the ``governor`` counts:
  past its limits a request is answered 429 and its connection ends. Idle ones end sooner where there are many.
- A client that takes nothing of an answer for ``stall_seconds`` is disconnected.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, cast

import httptools
import msgspec

from apimachinery.http.governor import BODY_BYTES, Crowded, Governor
from apimachinery.http.heads import USUAL_METHODS, head_of, readable
from apimachinery.http.leftovers import free_what_was_made
from apimachinery.http.messages import (
    BrokenOff,
    Request,
    Response,
    StreamResponse,
    UpgradeResponse,
)
from apimachinery.http.queries import unescaped
from apimachinery.http.reading import MUCH_BYTES, Reading
from apimachinery.http.sending import Pace, Sender
from apimachinery.http.tls import peer_chain
from apimachinery.http.tunnel import GONE_SECONDS, RESERVED_BYTES, SocketTunnel
from apimachinery.http.turns import TURN_SECONDS, Rota
from apimachinery.http.workers import begin_request

log = logging.getLogger("kubewright.server")

HEAD_BYTES = 1 << 20
HEAD_FIELDS = 2_000
TARGET_BYTES = 256 << 10
"""The longest that clients send is the command of an exec, in its query: one argument is at most 128 KiB on Linux, and
escaping makes text half as long again. Selectors, names and continue tokens have a few KiB."""
FRAMING_FACTOR = 8
"""A body that comes byte by byte takes six bytes of a chunked message for each of its own."""
SLICE_BYTES = 16 << 10
"""So much of a long body is parsed before the time is looked at..."""
HEAD_SLICE_BYTES = 4 << 10
"""...and so much of a long piece that may be many requests, each of which takes as long as many kilobytes of a body."""
LINGER_BYTES = 64 << 20
LINGER_SECONDS = 2.0
HALF_SENT_SECONDS = 1.0
CLOSING_SECONDS = 1.0
"""How long closing waits for the client's TLS close_notify, which a client that does not read never sends."""
ENDING_STALL_SECONDS = 3.0
"""How long closing waits for a client that takes nothing of an answer."""
LARGE_HEAD_BYTES = 16 << 10
"""A larger head is counted for as long as its request is there."""
PLAIN_CONNECTION_BYTES = 8 << 10
"""What a connection takes at most while nothing comes or goes; those over TLS take more (``handshakes``)."""
TLS_PIECE_BYTES, TLS_LARGE_BYTES = 16 << 10, 640 << 10
"""Once more than a record comes at once over TLS, its buffers stay large."""
CROWDED_IDLE_SECONDS = 5.0
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
TOO_LARGE = "431 Request Header Fields Too Large"
TOO_LONG = "414 URI Too Long"
UNKNOWN_CODING = "501 Not Implemented: unsupported transfer encoding"
UNKNOWN_VERSION = "505 HTTP Version Not Supported"
VERSIONS = frozenset({"1.0", "1.1"})


class Application(Protocol):
    """What a connection serves."""

    async def answer(self, request: Request, oversized: bool) -> Response | StreamResponse | UpgradeResponse:
        """Answers; never raises but CancelledError. ``oversized`` says that the body was over the limit."""

    def timed_out(self, request: Request) -> Response:
        """The answer to a request whose handler took too long."""

    def knows(self, request: Request) -> bool:
        """Whether the sender of a request, of which only the head has come, may send a large body."""

    def takes_upgrade(self, request: Request) -> bool:
        """Whether an offer of another protocol than websockets may be accepted for a request."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bytes and seconds."""

    body_bytes: int = 3 << 20
    anonymous_body_bytes: int = 64 << 10
    buffered_bytes: int = BODY_BYTES
    request_seconds: float = 60.0
    idle_seconds: float = 90.0
    stall_seconds: float = 30.0


class ConnectionState(Enum):
    """See the module's text."""

    IDLE = "idle"
    READING = "reading"
    HANDLING = "handling"
    LINGERING = "lingering"


class _Pending(msgspec.Struct):
    """A request that waits for its turn; ``chunks`` says that the client reads chunked answers. Nobody changes one."""

    request: Request
    oversized: bool
    keep_alive: bool
    chunks: bool
    buffered: int
    head: int


class Connections:
    """All connections of a server; the factory of new ones."""

    def __init__(
        self,
        application: Application,
        limits: ConnectionLimits | None = None,
        governor: Governor | None = None,
    ) -> None:
        self.application = application
        self.limits = limits or ConnectionLimits()
        self.governor = governor or Governor()
        self.governor.bodies.limit = self.limits.buffered_bytes
        self.open: set[HttpConnection] = set()
        self.pace = Pace()
        self.reading = Reading()
        self.ahead = Rota()
        self.ending = False

    def __call__(self) -> HttpConnection:
        """A connection for a socket that was accepted."""
        return HttpConnection(self)

    def sweep(self) -> None:
        """Ends what takes too long."""
        now = time.monotonic()
        connections = self.governor.connections
        idle = self.limits.idle_seconds
        if connections.is_crowded:
            idle = min(idle, CROWDED_IDLE_SECONDS)
        for connection in tuple(self.open):
            connection.sweep(now, idle)

    async def quiet(self, seconds: float) -> None:
        """Ends each connection with its next answer, and waits until no request is under way, at most so long."""
        self.ending = True
        until = time.monotonic() + seconds
        # Polling: handlers end in many places, and this runs once, at the end of the process.
        while time.monotonic() < until and any(connection.busy for connection in tuple(self.open)):
            await asyncio.sleep(0.01)

    async def end(self, seconds: float) -> None:
        """Closes idle connections, waits for the busy ones, then closes those too."""
        self.ending = True
        until = time.monotonic() + seconds
        while self.open:
            for connection in tuple(self.open):
                connection.end(force=time.monotonic() >= until)
            await asyncio.sleep(0.01)


class HttpConnection(asyncio.Protocol):
    """One client's socket. ``weight`` is what of it is counted already."""

    def __init__(self, connections: Connections, weight: int = 0) -> None:
        self._connections = connections
        self._limits = connections.limits
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._sender: Sender = cast(Sender, None)
        self._parser: Any = None
        self._state = ConnectionState.IDLE
        self._since = 0.0
        self._waiting: deque[_Pending] = deque()
        self._task: asyncio.Task[None] | None = None
        self._timed_out = False
        self._closed_at = 0.0
        self._lingered = 0
        self._unread = b""
        self._piece = 0
        self._held = 0
        self._head_held = 0
        self._weight = weight
        self._secure = False
        self._credential = ""
        self._continue_due = False
        self._offer: bytearray | None = None
        self._tunnel: SocketTunnel | None = None
        self._reserved = 0
        self._begin_message()

    def _begin_message(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._repeated: dict[str, list[str]] = {}
        self._names: list[bytes] = []
        self._values: list[bytes] = []
        self._body: bytes | bytearray = b""
        self._body_size = 0
        self._received = 0
        self._head_done = False
        self._oversized = False
        self._dispatched = False
        self._upgrades = False
        self._crowded = False
        self._known: bool | None = None
        self._fault = "400 Bad Request"

    # The socket.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Registers a new connection."""
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        self._since = time.monotonic()
        self._secure = transport.get_extra_info("sslcontext") is not None
        self._sender = Sender(
            self._transport, self._connections.governor.answers, self._connections.pace, self._secure
        )
        self._peer = peer_chain(transport.get_extra_info("ssl_object"))
        address = transport.get_extra_info("peername")
        self._source = str(address[0]) if isinstance(address, tuple) else ""
        self._connections.open.add(self)
        # TlsListener has counted it already, before the handshake.
        if not self._weight:
            self._grow(PLAIN_CONNECTION_BYTES)

    def never_made(self) -> None:
        """Gives back what was counted, where nothing came of the connection."""
        if self._parser is None:
            self._connections.governor.connections.give(self._weight)
            self._weight = 0

    def _grow(self, weight: int) -> None:
        """Counts what the connection takes from now on; it ends where there is no room for that."""
        if self._connections.governor.connections.take(weight - self._weight):
            self._weight = weight
        else:
            # Not close(): that would wait until the client has taken what is buffered.
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cleans up after the client, or this side, closed."""
        self._connections.open.discard(self)
        self._connections.governor.connections.give(self._weight)
        self._weight = 0
        # A tunnel's reservation is given back by _hand_over, once the other side is done too.
        if self._tunnel is None:
            self._unreserve()
        self._release()
        self._drop_waiting()
        # Whoever waits for room to write goes on, and finds the transport closed.
        self._sender.resume()
        if self._task is not None and self._tunnel is not None and not self._connections.ending:
            self._tunnel.feed_eof()
            # Who does not take the rest by then keeps nothing of it, nor a connection to somebody else.
            asyncio.get_running_loop().call_later(GONE_SECONDS, self._task.cancel)
        elif self._task is not None and self._is_open_ended:
            self._task.cancel()
        # Breaks the circle between parser and connection, which only the collector could free.
        self._parser = None

    def data_received(self, data: bytes) -> None:
        """Feeds the parser, or whoever owns the connection now."""
        # asyncio and uvloop enlarge their TLS buffers once much comes at once, and never shrink them.
        if self._secure and len(data) > TLS_PIECE_BYTES and self._weight < TLS_LARGE_BYTES:
            self._grow(TLS_LARGE_BYTES)
        if self._tunnel is not None:
            self._tunnel.feed(data)
            return
        if self._offer is not None:
            self._offer += data  # of a websocket that is not accepted yet; clients wait, so there is little
            if len(self._offer) > HEAD_BYTES or not self._takes_head(len(data)):
                self._transport.abort()
            return
        if self._state is ConnectionState.LINGERING:
            self._lingered += len(data)
            # The client ignores the answer that it was given; so much of its body was read for nothing.
            if self._lingered > LINGER_BYTES:
                self._transport.close()
            return
        if self._state is ConnectionState.IDLE:
            self._state, self._since = ConnectionState.READING, time.monotonic()
            # A comparison of four bytes spares nearly all requests the regular expression.
            if data[:4] not in USUAL_METHODS:
                data = readable(data)
        self._piece = len(data)  # which may begin a message, whose count begins after it
        self._received += self._piece
        # What surrounds a body (sizes of chunks, their extensions) is bounded in proportion to the body.
        room = HEAD_BYTES + (FRAMING_FACTOR * self._body_size + len(data) if self._head_done else 0)
        if self._received > room and not self._oversized:
            self._refuse(431, TOO_LARGE)
            return
        # The rest of an earlier piece is parsed first; _read_on takes this with it.
        if self._unread:
            self._unread += data
        else:
            self._parse(data)
        if self._piece >= MUCH_BYTES and self._state is not ConnectionState.LINGERING:
            self._connections.reading.took(self, self._flow, self._piece)

    @property
    def _flow(self) -> Hashable:
        """Whose turns this connection takes."""
        return self._credential or self._peer or self._source

    def pause(self) -> None:
        self._transport.pause_reading()

    def resume(self) -> None:
        """Reads on, unless a long piece is still being parsed or requests wait: whoever finishes those reads on."""
        # Paused reading is resumed by whoever paused it: _read_on, or the end of the request under way.
        if not self._unread and len(self._waiting) <= 1 and not self._transport.is_closing():
            self._transport.resume_reading()

    def _parse(self, data: bytes) -> None:
        try:
            if len(data) > HEAD_SLICE_BYTES:
                self._parse_in_turns(data)
            else:
                self._parser.feed_data(data)
            # Bytes not parsed yet are counted when they are.
            parsed = len(data) - len(self._unread)
            if (
                not self._head_done
                and self._state is not ConnectionState.LINGERING
                and not self._takes_head(parsed)
            ):
                self._crowded = True
                self._refuse(429, "")
        except httptools.HttpParserUpgrade as offer:
            self._decline_upgrade(data[offer.args[0] :])
        except (httptools.HttpParserError, UnicodeDecodeError, ValueError):
            self._refuse(int(self._fault[:3]), self._fault)

    def _parse_in_turns(self, data: bytes) -> None:
        """Parses a large piece in slices and lets others read in between: a body in chunks of a byte is work, and so
        are a thousand requests in one piece, of which no more are read ahead."""
        began, low = time.thread_time(), 0
        # Thread time: what other threads took meanwhile is no reason to give way.
        while low < len(data):
            goes_on = self._is_within_body or (low and not self._dispatched)  # in a body, or a long head
            begun, low = low, low + (SLICE_BYTES if goes_on else HEAD_SLICE_BYTES)
            try:
                self._parser.feed_data(data[begun:low])
            except httptools.HttpParserUpgrade as offer:
                # The parser counts from the beginning of the slice; the caller needs the place in the whole piece.
                raise httptools.HttpParserUpgrade(begun + offer.args[0]) from None
            if len(self._waiting) > 1 or time.thread_time() - began > TURN_SECONDS:
                self._unread = data[low:]
                self._transport.pause_reading()
                # call_soon, not a direct call: whatever is ready gets its turn first.
                asyncio.get_running_loop().call_soon(self._read_on)
                return

    @property
    def _is_within_body(self) -> bool:
        return self._head_done and not self._dispatched

    def _read_on(self) -> None:
        if self._transport.is_closing() or len(self._waiting) > 1:
            return
        self._transport.resume_reading()
        rest, self._unread = self._unread, b""
        if rest and self._parser is not None:
            self._parse(rest)

    def _takes_head(self, size: int) -> bool:
        """Counts a part of a head that is not whole yet; whether there is room for it."""
        if not self._connections.governor.heads.take(size):
            return False
        self._head_held += size
        return True

    def _decline_upgrade(self, rest: bytes) -> None:
        """Continues in HTTP/1.1, as RFC 9110 §7.8 lets a server do. The parser ends a message where its head
        offers another protocol, body or not; so the head is read again without the offer, then what follows it."""
        if not self._upgrades:  # CONNECT: answered, and the connection ends
            return
        websocket = self._headers["upgrade"].lower() == "websocket" and self._parser.get_method() == b"GET"
        if self._has_no_body() and (
            websocket or self._connections.application.takes_upgrade(self._request())
        ):
            if not self._connections.governor.tunnels.take(RESERVED_BYTES):
                self._crowded = True
                self._refuse(429, "")
                return
            self._reserved = RESERVED_BYTES
            # The handler decides whether the offer is accepted; until then incoming bytes are kept.
            self._offer = bytearray(rest)
            self._upgrades = False
            try:
                self._dispatch(keep_alive="close" not in self._headers.get("connection", "").lower())
            except ValueError:
                self._refuse(400, self._fault)
            return
        skipped = ("upgrade", "connection", "http2-settings")
        lines = [f"{name}: {value}" for name, value in self._headers.items() if name not in skipped]
        # "connection" named the upgrade; of its options only "close" still applies.
        close = "connection: close" if "close" in self._headers.get("connection", "").lower() else ""
        method = self._parser.get_method().decode("ascii")
        first = f"{method} {self._url.decode('latin-1')} HTTP/{self._parser.get_http_version()}"
        head = "\r\n".join([first, *lines, *filter(None, (close,)), "", ""])
        # An offer ends the parser's message; only a new parser reads the body that follows.
        self._parser = httptools.HttpRequestParser(self)
        self.data_received(head.encode("latin-1"))
        if rest and self._state is not ConnectionState.LINGERING:
            self.data_received(rest)

    def _unreserve(self) -> None:
        """Gives back the memory reserved for a tunnel, once there is none."""
        self._connections.governor.tunnels.give(self._reserved)
        self._reserved = 0

    # With a body, the bytes after the head would not be the new protocol's.
    def _has_no_body(self) -> bool:
        headers = self._headers
        return "transfer-encoding" not in headers and headers.get("content-length", "0").strip() == "0"

    def eof_received(self) -> bool:
        """The client sends no more; a request under way is answered all the same, but over TLS, which has no half."""
        if self._tunnel is not None:
            self._tunnel.feed_eof()
            return not self._secure
        return not self._secure and self._state is ConnectionState.HANDLING and not self._sender.streaming

    def pause_writing(self) -> None:
        """Stops writing until the socket takes more."""
        self._sender.pause()

    def resume_writing(self) -> None:
        """Goes on writing."""
        self._sender.resume()

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Begins a request."""
        self._begin_message()

    def on_url(self, url: bytes) -> None:
        """Collects a piece of the target."""
        self._url += url
        if len(self._url) > TARGET_BYTES:
            self._fault = TOO_LONG
            raise ValueError(TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collects a header field, or counts a trailer."""
        if len(self._names) >= HEAD_FIELDS:
            self._fault = TOO_LARGE
            raise ValueError(TOO_LARGE)
        self._names.append(name)
        if not self._head_done:
            self._values.append(value)

    def _read_fields(self) -> None:
        """Reads what was collected of a head, all at once: each step for each field would be as long as all of this."""
        names, values = self._names, self._values
        if not names:
            return
        # The parser lets no line break pass.
        keys = b"\n".join(names).decode("latin-1").lower().split("\n")
        joined = b"\n".join(values).decode("latin-1")
        texts = joined.split("\n")
        if "\t" in joined:
            # The parser takes spaces off both ends, but tabs off the first alone (RFC 9110 section 5.5).
            texts = [text.strip(" \t") for text in texts]
        self._headers = headers = dict(zip(keys, texts, strict=True))
        if len(headers) < len(keys):
            # The single values are kept as well: X-Remote-Group and others have one value a line.
            grouped: defaultdict[str, list[str]] = defaultdict(list)
            for key, text in zip(keys, texts, strict=True):
                grouped[key].append(text)
            self._repeated = {key: found for key, found in grouped.items() if len(found) > 1}
            headers |= {key: ", ".join(found) for key, found in self._repeated.items()}
        # Trailers are counted with them.
        self._names, self._values = [b""] * len(names), []

    def on_headers_complete(self) -> None:
        """Checks a whole head, and decides whether its body may come."""
        self._head_done = True
        self._read_fields()
        headers = self._headers
        # Requests with the same credential share turns: they are one client's, over however many connections.
        self._credential = headers.get("authorization", "")
        if "host" in self._repeated:
            # RFC 9112 §3.2: two proxies could route such a request differently.
            self._fault = "400 Bad Request: too many Host headers"
            raise ValueError(self._fault)
        if "host" not in headers and self._parser.get_http_version() == "1.1":
            self._fault = "400 Bad Request: missing required Host header"  # RFC 9112 §3.2
            raise ValueError(self._fault)
        if self._parser.get_http_version() not in VERSIONS:
            self._fault = UNKNOWN_VERSION
            raise ValueError(self._fault)
        if "upgrade" in headers and self._parser.should_upgrade() and self._parser.get_method() != b"CONNECT":
            self._upgrades = True
            return
        # RFC 9112 §6.1: the last coding must be chunked, and no other is implemented (501).
        if headers.get("transfer-encoding", "chunked").lower() != "chunked":
            self._fault = UNKNOWN_CODING
            raise ValueError(self._fault)
        length = headers.get("content-length", "")
        # The parser takes nothing but digits, of 64 bits at most; of zeros in front it takes any number.
        expected = int(length.lstrip("0") or 0) if length else -1
        if expected > self._limits.body_bytes or (
            expected > self._limits.anonymous_body_bytes and not self._knows()
        ):
            # Answered before the body has come: who waits for "100 Continue" would wait in vain.
            self._oversized = True
            self._dispatch(False)
        elif "expect" in headers and self._parser.get_http_version() == "1.1":
            # RFC 9110 section 10.1.1: other expectations are not met, and in HTTP/1.0 there are none.
            if any(wish.strip().lower() != "100-continue" for wish in headers["expect"].split(",")):
                self._fault = "417 Expectation Failed"
                raise ValueError(self._fault)
            if not expected or (expected < 0 and "transfer-encoding" not in headers):
                return  # without a body nobody waits
            if self._task is None:
                self._transport.write(CONTINUE)
            else:
                self._continue_due = True  # the answers to the requests before this one go first

    def on_body(self, body: bytes) -> None:
        """Collects a piece of the body."""
        size = len(body)
        self._body_size += size
        # Whoever sends a chunked body announces no length, so the limit for strangers is checked here too.
        if not self._oversized and self._body_size > self._limits.anonymous_body_bytes:
            self._oversized = self._body_size > self._limits.body_bytes or not self._knows()
        if self._oversized:
            self._body = b""
            self._release()
            # Answered before the rest has come; what comes is thrown away.
            if not self._dispatched:
                self._dispatch(False)
            self._lingered += size
            if self._lingered > LINGER_BYTES:
                self._transport.close()
            return
        if self._connections.governor.bodies.take(size):
            self._held += size
        else:
            self._body = b""
            self._release()
            self._crowded = True
            # httptools ends parsing at an exception; _refuse then answers 429.
            raise ValueError("bodies of all connections")
        # Most bodies come in one piece, which is kept as it is; one that comes in many small ones must not become
        # as many objects.
        if not self._body:
            self._body = body
        elif isinstance(self._body, bytearray):
            self._body += body
        else:
            self._body = bytearray(self._body)
            self._body += body

    def on_message_complete(self) -> None:
        """Hands on a whole request."""
        # Upgrades are dispatched by _decline_upgrade, which has to see what follows the head.
        if not self._dispatched and not self._upgrades:
            self._dispatch(self._parser.should_keep_alive())

    # Requests.

    def _request(self) -> Request:
        if not self._url.isascii():
            raise ValueError("RFC 3986 knows no other characters")
        # The query stays as it came: Go decodes its pairs one by one, and drops bad ones.
        path, _, query = self._url.partition(b"?")
        if path[:1] != b"/" and b"://" in path:
            # The absolute form, whose authority counts, not that of the Host field (RFC 9112 §3.2.2).
            authority, slash, rest = path.partition(b"://")[2].partition(b"/")
            path = slash + rest or b"/"
            self._headers["host"] = authority.rpartition(b"@")[2].decode("latin-1")
        return Request(
            self._parser.get_method().decode("ascii"),
            unescaped(path) if b"%" in path else path.decode("ascii"),
            query.decode("ascii"),
            self._headers,
            self._body if isinstance(self._body, bytes) else bytes(self._body),
            repeated=self._repeated,
            peer=self._peer,
            uri=self._url,
            source=self._source,
            governor=self._connections.governor,
        )

    def _knows(self) -> bool:
        """Whether the sender may send a large body; asked once a request."""
        if self._known is None:
            self._known = self._connections.application.knows(self._request())
        return self._known

    def _release(self) -> None:
        """Lets go of the body that is being read."""
        governor = self._connections.governor
        governor.bodies.give(self._held)
        governor.heads.give(self._head_held)
        self._held = self._head_held = 0

    def _drop_waiting(self) -> None:
        while self._waiting:
            self._let_go(self._waiting.popleft())

    def _let_go(self, pending: _Pending) -> None:
        governor = self._connections.governor
        # Most requests have no body, and a small head, which nobody counted.
        if pending.buffered:
            governor.bodies.give(pending.buffered)
        if pending.head:
            governor.heads.give(pending.head)

    def _dispatch(self, keep_alive: bool) -> None:
        """Queues what has come as a request. Raises ValueError where there is no room for its head."""
        heads, head = self._connections.governor.heads, self._head_size()
        # Part of a head that came in pieces is counted by _takes_head already.
        more = head - self._head_held
        if more > 0 and not heads.take(more):
            self._crowded = True
            raise ValueError("heads of all connections")
        if more < 0:
            heads.give(-more)
        self._head_held = 0
        self._dispatched = True
        request = self._request()
        keep_alive = keep_alive and not self._oversized
        chunks = self._parser.get_http_version() != "1.0"
        held, self._held = self._held, 0
        self._forget()
        self._waiting.append(_Pending(request, self._oversized, keep_alive, chunks, held, head))
        if self._task is None:
            self._next(self._handle)
        # One request is read ahead, so that the next begins without a round trip; a second one pauses the socket.
        elif len(self._waiting) > 1:
            self._transport.pause_reading()

    def _head_size(self) -> int:
        """The bytes of a large head, 0 for others: most are in a small piece that need not be looked at."""
        if self._received < LARGE_HEAD_BYTES and self._piece < LARGE_HEAD_BYTES:
            return 0
        size = len(self._url) + sum(map(len, self._names)) + sum(map(len, self._values))
        size += sum(len(name) + len(value) for name, value in self._headers.items())
        size += sum(len(value) for values in self._repeated.values() for value in values)
        return size if size >= LARGE_HEAD_BYTES else 0

    def _forget(self) -> None:
        """Lets go of what has come: a connection that idles must not hold what nobody counts any more."""
        self._url, self._body = b"", b""
        self._headers, self._repeated = {}, {}
        self._names, self._values = [], []

    def _next(self, handle: Callable[[_Pending], Coroutine[Any, Any, None]]) -> None:
        # The clock of the request starts when it begins, not when it was read.
        pending = self._waiting.popleft()
        self._state, self._since = ConnectionState.HANDLING, time.monotonic()
        self._task = asyncio.get_running_loop().create_task(handle(pending))

    async def _handle_ahead(self, pending: _Pending) -> None:
        """Handles a request that was sent ahead, when its turn comes."""
        try:
            await self._connections.ahead.turn(self._flow)
        except asyncio.CancelledError:
            self._let_go(pending)
            # The client sent several requests: without an answer to this one, it would take the next one's for it.
            self._transport.abort()
            raise
        if self._transport.is_closing():
            self._let_go(pending)
        else:
            await self._handle(pending)

    async def _handle(self, pending: _Pending) -> None:
        request, oversized = pending.request, pending.oversized
        # The check for a body or query first: nearly all requests have neither.
        large = bool(request.body or request.query_string) and request.large
        begin_request(keeps_what_is_made=large)
        keep_alive = pending.keep_alive and not self._connections.ending
        try:
            try:
                response = await self._connections.application.answer(request, oversized)
            # Both the deadline (sweep) and a lost connection cancel the task; only the deadline has an answer.
            except asyncio.CancelledError:
                if not self._timed_out:
                    raise
                self._timed_out = False
                response = self._connections.application.timed_out(request)
            # Also after a failure: the traceback refers to what the work made.
            finally:
                if large:
                    free_what_was_made()
            # The tunnel ends with the connection: no HTTP may follow on it.
            if isinstance(response, UpgradeResponse):
                await self._hand_over(response)
                keep_alive = False
            elif isinstance(response, StreamResponse):
                keep_alive = await self._sender.stream(request, response, keep_alive, pending.chunks)
            else:
                await self._sender.send(request, response, keep_alive)
        except asyncio.CancelledError:
            keep_alive = False
        except BrokenOff as fault:
            log.warning("an answer broke off", extra={"path": request.path, "reason": str(fault)})
            keep_alive = False
        except Exception:
            log.exception("the answer could not be sent", extra={"path": request.path})
            keep_alive = False
        finally:
            self._let_go(pending)
            if request.done is not None:
                request.done()
        # Before _answered, which may begin the next request's task.
        self._task = None
        self._answered(keep_alive, oversized)

    def _answered(self, keep_alive: bool, oversized: bool) -> None:
        if self._transport.is_closing():
            return
        # The rest of the body is still coming: closing now would reset the connection, and lose the answer.
        if oversized:
            self._linger()
        elif not keep_alive or self._connections.ending:
            self._transport.close()
        elif self._waiting:
            # Reading was paused while two requests waited.
            self._next(self._handle_ahead)
            self._read_on()
        elif self._offer is not None:
            # The upgrade was declined by the handler: what came after the head is the next request.
            offer, self._offer = self._offer, None
            self._unreserve()
            self._state, self._since = ConnectionState.IDLE, time.monotonic()
            self._parser = httptools.HttpRequestParser(self)
            if offer:
                self.data_received(bytes(offer))
        else:
            self._state, self._since = ConnectionState.IDLE, time.monotonic()
            # Now that the answers before it are sent, the client may be asked for the body.
            if self._continue_due:
                self._continue_due = False
                self._state = ConnectionState.READING
                self._transport.write(CONTINUE)

    async def _hand_over(self, response: UpgradeResponse) -> None:
        """Lets somebody else speak on the connection, until they are done."""
        # The reader on the other side may pause; the tunnel's account bounds what waits meanwhile.
        account = self._connections.governor.tunneled
        tunnel = self._tunnel = SocketTunnel(self._transport, lambda: self._sender.drained, account)
        if self._offer:
            # Some clients send the first frames together with the offer.
            tunnel.feed(bytes(self._offer))
        self._offer = None
        self._release()
        if self._transport.is_closing():
            tunnel.feed_eof()
        try:
            await response.run(tunnel)
        # Nothing more can be kept for the client; the new protocol has no answer that says so.
        except Crowded:
            self._transport.abort()
        finally:
            tunnel.close()
            self._unreserve()

    # Endings.

    def sweep(self, now: float, idle_seconds: float) -> None:
        """Ends what has taken too long by ``now``."""
        if self._sender.is_stuck(now, self._limits.stall_seconds):
            self._transport.abort()
            return
        if self._tunnel is not None and self._task is not None:
            governor = self._connections.governor
            crowded = governor.tunnels.is_crowded or governor.tunneled.is_crowded
            if self._tunnel.is_stuck(now, crowded):
                self._task.cancel()
            return
        took = now - self._since
        match self._state:
            case ConnectionState.IDLE if took > idle_seconds:
                self._transport.close()
            case ConnectionState.READING if took > self._limits.request_seconds:
                self._refuse(408, "408 Request Timeout")
            case ConnectionState.HANDLING if took > self._limits.request_seconds and not self._is_open_ended:
                # Once: a handler that takes its time to end is not cancelled again.
                if self._task is not None and not self._timed_out:
                    self._timed_out = True
                    self._task.cancel()
                # The handler was cancelled, and has not ended.
                elif took > 2 * self._limits.request_seconds:
                    self._transport.abort()
            case ConnectionState.LINGERING if took > LINGER_SECONDS:
                self._transport.close()

    @property
    def _is_open_ended(self) -> bool:
        """Whether the answer under way may take any time."""
        return self._sender.streaming or self._tunnel is not None

    @property
    def busy(self) -> bool:
        """Whether a request is under way."""
        return self._state is ConnectionState.HANDLING

    def end(self, force: bool) -> None:
        """Closes where nothing is under way, or in any case."""
        # A request that is still arriving may become whole a moment later.
        now = time.monotonic()
        half_sent = self._state is ConnectionState.READING and now - self._since > HALF_SENT_SECONDS
        stuck = self._sender.is_stuck(now, min(self._limits.stall_seconds, ENDING_STALL_SECONDS))
        # TLS waits for the client's close_notify after everything was sent.
        if self._transport.is_closing() and not self._transport.get_write_buffer_size():
            self._closed_at = self._closed_at or now
        if force or stuck or (self._closed_at and now - self._closed_at > CLOSING_SECONDS):
            self._transport.abort()
        elif half_sent or self._state is ConnectionState.IDLE:
            self._transport.close()

    def _refuse(self, status: int, text: str) -> None:
        """Answers what is not a request, and closes."""
        if self._crowded:
            status, text = 429, "429 Too Many Requests: what all clients sent together is too large"
        self._release()
        self._forget()
        if self._task is not None:
            # The requests before it are answered first; then the connection ends.
            self._drop_waiting()
            self._connections_close_after()
            return
        body = text.encode()
        head = head_of(status, "text/plain; charset=utf-8", False)
        # Clients of client-go retry a 429 only if Retry-After is there.
        later = b"Retry-After: 1\r\n" if status == 429 else b""
        self._transport.write(b"%b%bContent-Length: %d\r\n\r\n%b" % (head, later, len(body), body))
        self._linger()

    def _connections_close_after(self) -> None:
        self._transport.pause_reading()
        task = self._task
        if task is not None:
            # Not at once: the answers before it are still to be sent.
            task.add_done_callback(lambda _: self._transport.close())

    def _linger(self) -> None:
        self._state, self._since = ConnectionState.LINGERING, time.monotonic()
        # Reading goes on, to discard the body: unread bytes would make close() send a reset (RFC 9112 §9.6).
        self._transport.resume_reading()
        if self._transport.can_write_eof():
            # TLS over asyncio cannot close one half.
            self._transport.write_eof()
