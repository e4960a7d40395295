"""Logs, exec, attach and port-forward of the simulated node, over websockets as a kubelet's.

Protocol (k8s.io/apimachinery/pkg/util/remotecommand): binary messages whose first byte is a channel: 0 stdin, 1 stdout,
2 stderr, 3 the Status of the end, 4 the terminal's size; in ``v5.channel.k8s.io`` 255 followed by a channel closes that
channel, which is how stdin ends. A ``v4`` client cannot say that, so its stdin ends when it pauses. Of port-forward
(``v4.channel.k8s.io``) each port has a channel of data and one of errors, which both begin with the port's number.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import wsproto
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    RejectConnection,
    TextMessage,
)
from wsproto.events import (
    Request as Handshake,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import ProtocolError

from apimachinery.http.messages import (
    Request,
    Response,
    StreamResponse,
    Tunnel,
    UpgradeResponse,
)
from apimachinery.kinds.hooks import Json
from apimachinery.meta.asked import Route
from apimachinery.meta.errors import ApiError, bad_request
from apimachinery.server.node.behaviour import Command, NodeBehaviour, Ran
from apimachinery.wire.json import encode

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
PAUSE_SECONDS: Final = 0.3
"""How long a v4 client is silent where its stdin is taken to be at its end."""
LARGEST_STDIN: Final = 64 << 20
LARGEST_MESSAGE: Final = 1 << 20
"""Clients send pieces of 32 KiB."""
READ_BYTES: Final = 8 << 10
"""What is read at once: it may be messages of a byte each."""
PIECE: Final = 1 << 15


class NodeStreams:
    """Answers the subresources of pods that a cluster asks a kubelet for."""

    def __init__(self, behaviour: NodeBehaviour) -> None:
        self._behaviour = behaviour

    async def answer(
        self, request: Request, route: Route, pod: Json
    ) -> Response | StreamResponse | UpgradeResponse:
        """Answers one of them. Raises ApiError 400 and 501."""
        if route.subresource == "log":
            return await self._log(request, pod)
        if route.subresource not in ("exec", "attach", "portforward"):
            raise ApiError(
                501, "NotImplemented", f"the simulated node does not answer pods/{route.subresource}"
            )
        if request.headers.get("upgrade", "").lower() != "websocket":
            raise bad_request(
                "Upgrade request required: the simulated node speaks websockets (v5.channel.k8s.io)"
            )
        if route.subresource == "portforward":
            ports = [
                int(text) for text in request.query.get("ports", []) if text.isascii() and text.isdigit()
            ]
            if not ports:
                raise bad_request('query parameter "ports" is required')
            return UpgradeResponse(lambda tunnel: self._forward(StreamChannels(tunnel, request), pod, ports))
        container = container_of(pod, request.first("container"))
        argv = tuple(request.query.get("command", [])) if route.subresource == "exec" else ()
        if route.subresource == "exec" and not argv:
            raise bad_request("you must specify at least 1 command for the container")
        return UpgradeResponse(
            lambda tunnel: self._execute(StreamChannels(tunnel, request), request, pod, container, argv)
        )

    async def _log(self, request: Request, pod: Json) -> Response | StreamResponse:
        container = container_of(pod, request.first("container"))
        if request.first("previous") in ("true", "1"):
            name = pod["metadata"]["name"]
            raise bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        text = await asyncio.to_thread(self._behaviour.logs, pod, container)
        lines = text.splitlines(keepends=True)
        tail = request.first("tailLines")
        if tail.isascii() and tail.isdigit():
            lines = lines[-int(tail) :] if int(tail) else []
        if request.first("timestamps") in ("true", "1"):
            moment = time.strftime("%Y-%m-%dT%H:%M:%S.000000000Z ", time.gmtime())
            lines = [moment + line for line in lines]
        limit = request.first("limitBytes")
        body = "".join(lines).encode()[: int(limit) if limit.isascii() and limit.isdigit() else None]
        if request.first("follow") not in ("true", "1"):
            return Response(200, body, "text/plain")
        return StreamResponse(200, _pieces(body), "text/plain")

    async def _execute(
        self, channels: StreamChannels, request: Request, pod: Json, container: str, argv: tuple[str, ...]
    ) -> None:
        if not await channels.accept():
            return
        stdin = b""
        if request.first("stdin") in ("true", "1"):
            stdin = await channels.read_all(STDIN)
        command = Command(pod, container, argv, stdin, request.first("tty") in ("true", "1"))
        if argv:
            ran = await asyncio.to_thread(self._behaviour.execute, command)
        else:
            text = await asyncio.to_thread(self._behaviour.logs, pod, container)
            ran = Ran(text.encode() + stdin)
        await channels.send(STDOUT, ran.stdout)
        await channels.send(STDERR, ran.stderr)
        await channels.send(ERROR, encode(_status(ran.exit_code)))
        await channels.close()

    async def _forward(self, channels: StreamChannels, pod: Json, ports: list[int]) -> None:
        if not await channels.accept():
            return
        for at, port in enumerate(ports):
            for channel in (2 * at, 2 * at + 1):
                await channels.send(channel, port.to_bytes(2, "little"))
        while (found := await channels.receive()) is not None:
            channel, data = found
            if channel % 2 == 0 and channel // 2 < len(ports) and data:
                answer = await asyncio.to_thread(self._behaviour.forward, pod, ports[channel // 2], data)
                await channels.send(channel, answer)


class StreamChannels:
    """A websocket of channels, the server's side."""

    def __init__(self, tunnel: Tunnel, request: Request) -> None:
        self._tunnel = tunnel
        self._request = request
        self._socket = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
        self._waiting: list[tuple[int, bytes]] = []
        self._part = bytearray()
        self._ended = False
        self.protocol = ""

    async def accept(self) -> bool:
        """Answers the handshake; whether there is a websocket now."""
        headers = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in self._request.headers.items()
        ]
        try:
            self._socket.initiate_upgrade_connection(headers, self._request.path)
            offered = next((e.subprotocols for e in self._socket.events() if isinstance(e, Handshake)), [])
        except ProtocolError:
            self._tunnel.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            return False
        chosen = next((name for name in PROTOCOLS if name in offered), None)
        if offered and chosen is None:
            self._tunnel.write(self._socket.send(RejectConnection(status_code=403)))
            return False
        self.protocol = chosen or ""
        self._tunnel.write(self._socket.send(AcceptConnection(subprotocol=chosen)))
        return True

    async def send(self, channel: int, data: bytes) -> None:
        """Sends bytes on a channel, in pieces; nothing to a client that has gone."""
        for low in range(0, len(data), PIECE):
            message = bytes([channel]) + data[low : low + PIECE]
            try:
                framed = self._socket.send(BytesMessage(message))
            except ProtocolError:  # it closed while the command ran
                self._ended = True
                return
            self._tunnel.write(framed)
            await self._tunnel.drain()

    async def receive(self, seconds: float | None = None) -> tuple[int, bytes] | None:
        """The next message: channel and bytes; None at the end. Raises TimeoutError."""
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

    async def read_all(self, channel: int) -> bytes:
        """All of a channel, to its end."""
        found = bytearray()
        while len(found) < LARGEST_STDIN:
            try:
                message = await self.receive(
                    None if self.protocol == PROTOCOLS[0] or not found else PAUSE_SECONDS
                )
            except TimeoutError:
                break
            if message is None or message == (CLOSE, bytes([channel])):
                break
            if message[0] == channel:
                self._tunnel.hold(2 * len(message[1]))  # as it is collected, and as the command gets it
                found += message[1]
        return bytes(found)

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
                        self._waiting.append((self._part[0], bytes(self._part[1:])))
                    self._part.clear()
            case Ping():
                self._tunnel.write(self._socket.send(event.response()))
            case CloseConnection():
                if not self._ended and self._socket.state is ConnectionState.REMOTE_CLOSING:
                    self._tunnel.write(self._socket.send(event.response()))
                self._ended = True


def container_of(pod: Json, asked: str) -> str:
    """The container that is meant. Raises ApiError 400 where there is no such one, or several and none is named."""
    spec = pod.get("spec") or {}
    names = [entry["name"] for entry in spec.get("containers") or []]
    others = [
        entry["name"] for key in ("initContainers", "ephemeralContainers") for entry in spec.get(key) or []
    ]
    name = pod["metadata"]["name"]
    if asked:
        if asked not in names + others:
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    if len(names) > 1:
        raise bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
        )
    return str(names[0])


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for line in body.splitlines(keepends=True):
        yield line


def _status(code: int) -> Json:
    if not code:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
