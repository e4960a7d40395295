"""The websocket that exec, attach and port-forward speak, without any I/O: bytes in, messages out, and back.

Protocol: ``v5.channel.k8s.io`` (and ``v4``, its predecessor). A message is binary; its first byte is the channel: 0
stdin, 1 stdout, 2 stderr, 3 the Status of the end, 4 the terminal's size. In v5 channel 255, followed by a channel's
number, closes that channel: so a command reads to the end of its stdin. Of port-forward (v4) each port has two
channels, data and errors, whose first message is the port's number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import wsproto
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import ProtocolError

from apimachinery.client.endpoint import TransportError, TransportResponse
from apimachinery.client.errors import UNDECODABLE, error_of, error_of_status
from apimachinery.meta.errors import ApiError

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
ERROR: Final = 3
RESIZE: Final = 4
CLOSE: Final = 255
REMOTE_COMMAND: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
PORT_FORWARD: Final = ("v4.channel.k8s.io",)
PIECE: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What a command in a container did."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""

    @property
    def text(self) -> str:
        """stdout as text, undecodable bytes replaced."""
        return self.stdout.decode("utf-8", "replace")


@dataclass(slots=True)
class ChannelSocket:
    """One websocket: what ``receive_data`` makes of bytes is in ``messages``; what must be sent is in ``outgoing``."""

    protocols: Sequence[str]
    messages: list[tuple[int, bytes]] = field(default_factory=list)
    outgoing: bytearray = field(default_factory=bytearray)
    protocol: str = ""
    open: bool = False
    ended: bool = False
    _refusal: TransportResponse | None = None
    _part: bytes = b""
    _socket: Any = field(default_factory=lambda: wsproto.WSConnection(wsproto.ConnectionType.CLIENT))

    def begin(self, host: str, target: str, headers: Sequence[tuple[str, str]]) -> None:
        """Writes the handshake."""
        extra = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        request = Request(host=host, target=target, subprotocols=list(self.protocols), extra_headers=extra)
        self._send(request)

    def receive_data(self, data: bytes) -> None:
        """Takes in bytes; empty for the end of the connection. Raises ``ApiError`` where the server refuses the
        websocket, ``TransportError`` for what is none."""
        try:
            self._socket.receive_data(data or None)
            for event in self._socket.events():
                self._take(event)
        except ProtocolError as error:
            raise TransportError(f"the websocket broke: {error}", sent=True) from None
        if not data:
            if self._refusal is not None:
                raise error_of(self._refusal)
            if not self.open:
                raise TransportError("the connection ended before there was a websocket", sent=True)
            self.ended = True

    def send(self, channel: int, data: bytes) -> None:
        """Writes bytes to a channel."""
        for low in range(0, len(data), PIECE):
            self._send(BytesMessage(bytes([channel]) + data[low : low + PIECE]))

    def end_channel(self, channel: int) -> None:
        """Closes a channel where the protocol can."""
        if self.protocol == REMOTE_COMMAND[0]:
            self._send(BytesMessage(bytes([CLOSE, channel])))

    def close(self) -> None:
        """Says that this side ends."""
        if self.open and not self.ended and self._socket.state is ConnectionState.OPEN:
            self._send(CloseConnection(code=1000))

    def take_outgoing(self) -> bytes:
        """Takes what is to be sent now."""
        data = bytes(self.outgoing)
        self.outgoing.clear()
        return data

    def _send(self, event: Any) -> None:
        self.outgoing += self._socket.send(event)

    def _take(self, event: Any) -> None:
        match event:
            case AcceptConnection():
                self.open, self.protocol = True, event.subprotocol or ""
            case RejectConnection():
                found = {name.decode().lower(): value.decode("latin-1") for name, value in event.headers}
                self._refusal = TransportResponse(event.status_code, found, b"")
                if not event.has_body:
                    raise error_of(self._refusal)
            case RejectData():
                before = self._refusal or TransportResponse(500, {}, b"")
                self._refusal = TransportResponse(
                    before.code, before.headers, before.body + bytes(event.data)
                )
                if event.body_finished:
                    raise error_of(self._refusal)
            case BytesMessage() | TextMessage():
                data = event.data.encode() if isinstance(event.data, str) else bytes(event.data)
                self._part += data
                if event.message_finished:
                    if self._part:
                        self.messages.append((self._part[0], self._part[1:]))
                    self._part = b""
            case Ping():
                self._send(event.response())
            case CloseConnection():
                if self._socket.state is ConnectionState.REMOTE_CLOSING:
                    self._send(event.response())
                self.ended = True


def exit_code_of(status: bytes) -> int:
    """The exit code in the Status that ends a command. Raises ``ApiError`` for an end of another kind."""
    try:
        read = msgspec.json.decode(status)
    except UNDECODABLE:
        read = None
    if not isinstance(read, dict):
        raise ApiError(
            500, "InternalError", f"the command's end cannot be read: {status[:200]!r}", has_details=False
        )
    if read.get("status") == "Success":
        return 0
    if read.get("reason") == "NonZeroExitCode":
        for cause in (read.get("details") or {}).get("causes") or ():
            if cause.get("reason") == "ExitCode" and str(cause.get("message")).isdigit():
                return int(cause["message"])
    raise error_of_status({**read, "code": read.get("code") or 500})
