"""The websocket of exec, attach and port-forward, the server's side: messages of channels, or whole ones.

Protocol (k8s.io/apimachinery/pkg/util/remotecommand): binary messages whose first byte is a channel: 0 stdin, 1 stdout,
2 stderr, 3 the Status of the end, 4 the terminal's size; in ``v5.channel.k8s.io`` 255 followed by a channel closes that
channel, which is how stdin ends. A client of an older protocol cannot say that, so its stdin ends when it pauses. In
``base64`` protocols messages are text: a digit for the channel, then base64. Before ``v4`` the end is said in words,
and only if something failed. Logs are messages without channels.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
from collections.abc import Sequence
from typing import Any, Final

import wsproto
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    TextMessage,
)
from wsproto.events import (
    Request as Handshake,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import ProtocolError

from apimachinery.http.messages import Request, Tunnel
from apimachinery.server.node.commands import CommandInput

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PROTOCOLS: Final = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
)
WITHOUT_CHANNELS: Final = ("binary.k8s.io", "base64.binary.k8s.io")
PAUSE_SECONDS: Final = 0.3
"""How long a v4 client is silent where its stdin is taken to be at its end."""
LARGEST_MESSAGE: Final = 1 << 20
"""Clients send pieces of 32 KiB."""
READ_BYTES: Final = 8 << 10
"""What is read at once: it may be messages of a byte each."""
PIECE: Final = 1 << 15


class StreamChannels:
    """A websocket of channels, the server's side."""

    def __init__(self, tunnel: Tunnel, request: Request) -> None:
        self._tunnel = tunnel
        self._request = request
        self._socket = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
        self._waiting: list[bytes] = []
        self._part = bytearray()
        self._ended = False
        self.protocol = ""

    async def accept(self, known: Sequence[str] = PROTOCOLS) -> bool:
        """Answers the handshake with the first protocol that is known to both; whether there is a websocket now."""
        headers = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in self._request.headers.items()
        ]
        try:
            self._socket.initiate_upgrade_connection(headers, self._request.path)
            offered = next((e.subprotocols for e in self._socket.events() if isinstance(e, Handshake)), [])
        except ProtocolError:
            self._tunnel.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            return False
        chosen = next((name for name in known if name in offered), None)
        if offered and chosen is None:
            # 403, as golang.org/x/net/websocket answers a handshake that its server does not take.
            self._tunnel.write(self._socket.send(RejectConnection(status_code=403)))
            return False
        self.protocol = chosen or ""
        self._tunnel.write(self._socket.send(AcceptConnection(subprotocol=chosen)))
        return True

    async def send(self, channel: int, data: bytes) -> None:
        """Sends bytes on a channel, in pieces; nothing to a client that has gone."""
        for low in range(0, len(data), PIECE):
            await self.send_bytes(bytes([channel]) + data[low : low + PIECE])

    @property
    def says_status(self) -> bool:
        """Whether the end is a Status; words otherwise."""
        return self.protocol.startswith(("v5.", "v4."))

    async def send_whole(self, data: bytes) -> None:
        """Sends bytes on no channel."""
        for low in range(0, len(data), PIECE):
            piece = data[low : low + PIECE]
            await self._send(TextMessage(_base64(piece)) if self._is_text else BytesMessage(piece))

    async def send_bytes(self, message: bytes) -> None:
        """Sends one message; nothing to a client that has gone."""
        await self._send(
            TextMessage(f"{message[0]}{_base64(message[1:])}") if self._is_text else BytesMessage(message)
        )

    @property
    def _is_text(self) -> bool:
        return "base64" in self.protocol

    async def _send(self, message: Event) -> None:
        if self._ended:
            return
        try:
            framed = self._socket.send(message)
        except ProtocolError:  # it closed while the command ran
            self._ended = True
            return
        self._tunnel.write(framed)
        await self._tunnel.drain()

    async def receive(self, seconds: float | None = None) -> tuple[int, bytes] | None:
        """The next message: channel and bytes; None at the end. Raises TimeoutError."""
        message = await self.receive_bytes(seconds)
        if message is None:
            return None
        if self._is_text:
            with contextlib.suppress(binascii.Error):
                return message[0] - ord("0"), base64.b64decode(message[1:])
        return message[0], message[1:]

    async def receive_bytes(self, seconds: float | None = None) -> bytes | None:
        """The next message whole; None at the end. Raises TimeoutError."""
        while not self._waiting and not self._ended:
            async with asyncio.timeout(seconds):
                data = await self._tunnel.read(READ_BYTES)
            try:
                self._socket.receive_data(data or None)
                for event in self._socket.events():
                    self._take(event)
            except ProtocolError:
                self._ended = True
            # Answers to pings wait for a client that does not read.
            await self._tunnel.drain()
        return self._waiting.pop(0) if self._waiting else None

    async def pump(self, channel: int, into: CommandInput) -> None:
        """Hands on what comes on a channel, to its end: for an older client, which cannot say so, that is a pause."""
        came = False
        try:
            while True:
                patience = PAUSE_SECONDS if came and self.protocol not in ("", PROTOCOLS[0]) else None
                message = await self.receive(patience)
                if message is None or message == (CLOSE, bytes([channel])):
                    return
                if message[0] == channel:
                    self._tunnel.hold(2 * len(message[1]))  # as it is collected, and as the command gets it
                    into.feed(message[1])
                    came = True
        except TimeoutError:
            return
        finally:
            into.end()

    async def close(self) -> None:
        """Ends the websocket in order: both sides say so."""
        if not self._ended and self._socket.state is ConnectionState.OPEN:
            self._tunnel.write(self._socket.send(CloseConnection(code=1000)))
            try:
                while await self.receive(1.0) is not None:
                    pass
            except TimeoutError:
                return

    def _take(self, event: Any) -> None:
        match event:
            case BytesMessage() | TextMessage():
                self._part += event.data.encode() if isinstance(event.data, str) else event.data
                if len(self._part) > LARGEST_MESSAGE:
                    self._tunnel.write(self._socket.send(CloseConnection(code=CloseReason.MESSAGE_TOO_BIG)))
                    self._ended = True
                    self._part.clear()
                elif event.message_finished:
                    if self._part:
                        self._waiting.append(bytes(self._part))
                    self._part.clear()
            case Ping():
                self._tunnel.write(self._socket.send(event.response()))
            case CloseConnection():
                if not self._ended and self._socket.state is ConnectionState.REMOTE_CLOSING:
                    self._tunnel.write(self._socket.send(event.response()))
                self._ended = True


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
