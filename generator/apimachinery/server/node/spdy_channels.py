"""Channels over SPDY/3.1, the server's side, as clients speak it that know no websockets.

Protocol: after the upgrade the client opens a stream for each channel, which its header ``streamtype`` names; the
stream of errors takes the Status of the end. Unlike a websocket's, each side of a stream ends by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from apimachinery.http.messages import Request, Tunnel
from apimachinery.server.node.channels import ERROR, READ_BYTES, RESIZE, STDERR, STDIN, STDOUT
from apimachinery.server.node.commands import CommandInput
from apimachinery.wire.spdy import Came, OpenedStream, SpdyConnection, SpdyFault

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
PORT_FORWARD: Final = ("portforward.k8s.io",)
CHANNELS: Final = {"error": ERROR, "stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "resize": RESIZE}
END_SECONDS: Final = 1.0
"""How long a client may take to close a connection whose streams have ended."""


class RawChannels:
    """The connection itself, after an upgrade to SPDY."""

    def __init__(self, tunnel: Tunnel, request: Request) -> None:
        self._tunnel = tunnel
        self._request = request

    def accept(self, known: Sequence[str]) -> bool:
        """Answers the upgrade with the first protocol that is known to both; whether there is one."""
        offered = [
            each.strip() for each in self._request.headers.get("x-stream-protocol-version", "").split(",")
        ]
        chosen = next((name for name in known if name in offered), None)
        if chosen is None:
            text = f"unable to upgrade: X-Stream-Protocol-Version must be one of {', '.join(known)}\n"
            # httpstream.Handshake answers 403 where no protocol is common to both.
            head = f"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: {len(text)}\r\n\r\n"
            self._tunnel.write(head.encode() + text.encode())
            return False
        head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        self._tunnel.write(f"{head}X-Stream-Protocol-Version: {chosen}\r\n\r\n".encode())
        return True

    async def receive_bytes(self) -> bytes | None:
        """What came; None at the end."""
        return await self._tunnel.read(READ_BYTES) or None

    async def send_bytes(self, data: bytes) -> None:
        """Sends bytes."""
        self._tunnel.write(data)
        await self._tunnel.drain()


class SpdyChannels:
    """As ``StreamChannels``."""

    says_status = True

    def __init__(self, tunnel: Tunnel, request: Request) -> None:
        self._tunnel = tunnel
        self._request = request
        self._raw = RawChannels(tunnel, request)
        self._spdy = SpdyConnection()
        self._streams: dict[int, int] = {}
        self._came: list[Came] = []
        self._ended = False

    async def accept(self) -> bool:
        """Answers the upgrade, and waits for the streams that the request speaks of; whether they are there."""
        if not self._raw.accept(PROTOCOLS):
            return False
        # One stream always, for errors; a terminal has one for its size.
        names = ("stdin", "stdout", "stderr", "tty")
        expected = 1 + sum(self._request.first(name) in ("true", "1") for name in names)
        while len(self._streams) < expected and not self._ended:
            await self._receive()
        return not self._ended

    async def send(self, channel: int, data: bytes) -> None:
        """Sends bytes on a channel; nothing to a client that has gone, or has no stream for it."""
        stream = self._streams.get(channel)
        if stream is not None and not self._ended:
            self._spdy.send(stream, data)
            await self._raw.send_bytes(self._spdy.take_outgoing())

    async def pump(self, channel: int, into: CommandInput) -> None:
        """Hands on what comes on a channel, to its end."""
        try:
            while True:
                for came in self._came:
                    if came.stream == self._streams.get(channel):
                        self._tunnel.hold(
                            2 * len(came.data)
                        )  # as it is collected, and as the command gets it
                        into.feed(came.data)
                        if came.ended:
                            return
                self._came.clear()
                if self._ended:
                    return
                await self._receive()
        finally:
            into.end()

    async def close(self) -> None:
        """Ends all streams, and waits for the client to close the connection."""
        for stream in self._streams.values():
            self._spdy.send(stream, b"", ended=True)
        await self._raw.send_bytes(self._spdy.take_outgoing())
        try:
            async with asyncio.timeout(END_SECONDS):
                while not self._ended:
                    await self._receive()
        except TimeoutError:
            return

    async def _receive(self) -> None:
        data = await self._raw.receive_bytes()
        try:
            for event in self._spdy.receive(data or b""):
                if isinstance(event, OpenedStream):
                    self._open(event)
                else:
                    self._came.append(event)
        except SpdyFault:
            data = None
        if outgoing := self._spdy.take_outgoing():
            await self._raw.send_bytes(outgoing)
        self._ended = data is None or self._spdy.over

    def _open(self, opened: OpenedStream) -> None:
        channel = CHANNELS.get(opened.headers.get("streamtype", ""))
        if channel is None or channel in self._streams:
            raise SpdyFault("a stream of no channel")
        self._streams[channel] = opened.stream
        self._spdy.accept(opened.stream)
        if opened.ended:
            self._came.append(Came(opened.stream, b"", True))
