"""Commands and ports of pods over SPDY/3.1, for servers that have no websockets, without any I/O.

Protocol: the upgrade is asked for in HTTP/1.1; then each channel is a stream, which its headers name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from apimachinery.client.channels import ERROR, REMOTE_COMMAND, RESIZE, STDERR, STDIN, STDOUT
from apimachinery.client.endpoint import TransportError, TransportResponse
from apimachinery.client.errors import error_of
from apimachinery.http.asking import AnswerReader, BadAnswer
from apimachinery.meta.errors import ApiError
from apimachinery.wire.spdy import Came, SpdyConnection, SpdyFault

LARGEST_ANSWER: Final = 1 << 16
Streams = Mapping[int, Mapping[str, str]]
"""The headers of a stream by the number of its channel, in the order in which they are opened."""


@dataclass(frozen=True, slots=True)
class SpdyPlan:
    """What is asked of a server: protocols to choose from, and streams; on those of ``unread`` channels it sends
    nothing. ``greeting`` is what each channel begins with in a websocket."""

    protocols: Sequence[str]
    streams: Streams
    unread: frozenset[int] = frozenset()
    greeting: bytes = b""


def may_lack_websockets(refusal: ApiError) -> bool:
    """Whether a server that refuses a websocket so may know SPDY alone. Such an answer is often no Status."""
    return refusal.code in (400, 405, 426, 501) or (refusal.code == 403 and not refusal.reason)


def chosen(websocket: ApiError, spdy: ApiError) -> ApiError:
    """Which of two refusals says more: not the one that speaks of protocols."""
    return spdy if "upgrade" in websocket.message.lower() or not websocket.reason else websocket


def plan_of_command(*, stdin: bool, tty: bool) -> SpdyPlan:
    """The streams of a command."""
    names = {ERROR: "error", STDIN: "stdin", STDOUT: "stdout", STDERR: "stderr", RESIZE: "resize"}
    without = {STDERR if tty else RESIZE, *(() if stdin else (STDIN,))}
    streams = {channel: {"streamtype": name} for channel, name in names.items() if channel not in without}
    return SpdyPlan(REMOTE_COMMAND, streams, frozenset((STDIN, RESIZE)))


def plan_of_port(port: int) -> SpdyPlan:
    """The streams of one connection to a port."""
    streams = {
        channel: {"streamtype": kind, "port": str(port), "requestid": "0"}
        for channel, kind in ((1, "error"), (0, "data"))
    }
    return SpdyPlan(("portforward.k8s.io",), streams, greeting=port.to_bytes(2, "little"))


@dataclass(slots=True)
class SpdySocket:
    """As ``ChannelSocket``."""

    plan: SpdyPlan
    messages: list[tuple[int, bytes]] = field(default_factory=list)
    open: bool = False
    ended: bool = False
    _request: bytes = b""
    _answer: bytes = b""
    _spdy: SpdyConnection = field(default_factory=SpdyConnection)
    _streams: dict[int, int] = field(default_factory=dict)
    _reading: dict[int, int] = field(default_factory=dict)

    def begin(self, host: str, target: str, headers: Sequence[tuple[str, str]]) -> None:
        """Writes the upgrade."""
        upgrade = [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"), ("Content-Length", "0")]
        offered = [("X-Stream-Protocol-Version", name) for name in self.plan.protocols]
        lines = [f"{name}: {value}" for name, value in (("Host", host), *headers, *upgrade, *offered)]
        self._request = "\r\n".join([f"POST {target} HTTP/1.1", *lines, "", ""]).encode("latin-1")

    def receive_data(self, data: bytes) -> None:
        over = not data
        if not self.open:
            data = self._upgraded(data)
        try:
            for event in self._spdy.receive(data):
                if isinstance(event, Came):
                    self._take(event)
        except SpdyFault as error:
            raise TransportError(f"the SPDY connection broke: {error}", sent=True) from None
        if self.open:
            self.ended = self.ended or over or self._spdy.over or not self._reading

    def send(self, channel: int, data: bytes) -> None:
        """Writes bytes to a channel."""
        if channel in self._streams:
            self._spdy.send(self._streams[channel], data)

    def end_channel(self, channel: int) -> None:
        """Ends this side of a channel."""
        if channel in self._streams:
            self._spdy.send(self._streams[channel], b"", ended=True)

    def close(self) -> None:
        """Does nothing: who closes the connection ends all streams."""

    def take_outgoing(self) -> bytes:
        """What is to be sent now."""
        data, self._request = self._request + self._spdy.take_outgoing(), b""
        return data

    def _upgraded(self, data: bytes) -> bytes:
        """What follows the answer to the upgrade. Raises ``ApiError`` where the server refuses it."""
        self._answer += data
        head, whole, rest = self._answer.partition(b"\r\n\r\n")
        if whole and head.split(b" ", 2)[1:2] == [b"101"]:
            self.open = True
            for channel, headers in self.plan.streams.items():
                self._streams[channel] = stream = self._spdy.open(headers)
                if channel not in self.plan.unread:
                    self._reading[stream] = channel
                if self.plan.greeting:
                    self.messages.append((channel, self.plan.greeting))
            return rest
        refusal = _refusal(self._answer, over=not data) if whole else None
        if refusal is not None:
            raise error_of(refusal)
        if not data or len(self._answer) > LARGEST_ANSWER:
            raise TransportError("the connection ended before it was upgraded to SPDY", sent=True)
        return b""

    def _take(self, came: Came) -> None:
        channel = self._reading.get(came.stream)
        if channel is None:
            return
        if came.data:
            self.messages.append((channel, came.data))
        if came.ended:
            del self._reading[came.stream]


def _refusal(data: bytes, *, over: bool) -> TransportResponse | None:
    """The answer in HTTP/1.1; None where more of it is to come."""
    answer = AnswerReader("POST")
    try:
        body = answer.take(data)
        if over:
            answer.end()
    except BadAnswer:
        return None
    return TransportResponse(answer.code, answer.headers, body) if answer.ended else None
