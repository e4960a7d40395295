"""The upgrade to SPDY without a socket: refusals in any pieces, broken and endless answers. Node tests speak it."""

from __future__ import annotations

import struct

import pytest

from apimachinery.client.channels import STDIN, STDOUT
from apimachinery.client.endpoint import TransportError
from apimachinery.client.errors import ApiError, BadRequest, Forbidden
from apimachinery.client.spdy import (
    LARGEST_ANSWER,
    SpdySocket,
    chosen,
    may_lack_websockets,
    plan_of_command,
    plan_of_port,
)
from apimachinery.wire.spdy import Came, OpenedStream, SpdyConnection

ACCEPTED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
STATUS = b'{"kind":"Status","code":403,"reason":"Forbidden","message":"not you"}'
REFUSALS = {
    "length": b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%s" % (len(STATUS), STATUS),
    "chunks": b"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
    % (len(STATUS), STATUS),
    "end": b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n" + STATUS,
}


def asked(socket: SpdySocket) -> SpdySocket:
    socket.begin("there", "/exec", [("Authorization", "Bearer x")])
    assert socket.take_outgoing().startswith(
        b"POST /exec HTTP/1.1\r\nHost: there\r\nAuthorization: Bearer x\r\n"
    )
    return socket


def command() -> SpdySocket:
    return asked(SpdySocket(plan_of_command(stdin=True, tty=False)))


@pytest.mark.parametrize("form", REFUSALS)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_refusals_arrive_in_any_pieces(form: str, size: int) -> None:
    socket, answer = command(), REFUSALS[form]
    with pytest.raises(Forbidden, match="not you"):
        for low in range(0, len(answer), size):
            socket.receive_data(answer[low : low + size])
        assert form == "end"
        socket.receive_data(b"")


@pytest.mark.parametrize("given", [b"", b"HTTP/1.1 101", b"nonsense\r\n\r\n", REFUSALS["length"][:-1]])
def test_answers_that_break_off(given: bytes) -> None:
    socket = command()
    with pytest.raises(TransportError, match="ended before it was upgraded"):
        socket.receive_data(given)
        socket.receive_data(b"")


@pytest.mark.parametrize("piece", [b"x" * 1000, b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"])
def test_an_endless_answer_is_given_up(piece: bytes) -> None:
    socket = command()
    with pytest.raises(TransportError):
        for _ in range(LARGEST_ANSWER // len(piece) + 1):
            socket.receive_data(piece)


@pytest.mark.parametrize(
    "sent", [struct.pack(">II", 3, 2 << 20), struct.pack(">II", 0x80030002, 8) + b"12345678"]
)
def test_broken_frames(sent: bytes) -> None:
    socket = command()
    with pytest.raises(TransportError, match="SPDY connection broke"):
        socket.receive_data(ACCEPTED + sent)


def test_each_side_of_a_stream_ends_by_itself() -> None:
    socket, server = command(), SpdyConnection()
    socket.receive_data(ACCEPTED)
    socket.send(STDIN, b"in" * 40_000)
    socket.end_channel(STDIN)
    events = list(server.receive(socket.take_outgoing()))
    streams = {
        event.headers["streamtype"]: event.stream for event in events if isinstance(event, OpenedStream)
    }
    assert [*streams] == ["error", "stdin", "stdout", "stderr"]
    came = [event for event in events if isinstance(event, Came)]
    assert {event.stream for event in came} == {streams["stdin"]}
    assert (b"".join(event.data for event in came), came[-1].ended) == (b"in" * 40_000, True)
    for stream in streams.values():
        server.accept(stream)
    server.send(streams["stdout"], b"out", ended=True)
    server.send(streams["stderr"], b"", ended=True)
    socket.receive_data(server.take_outgoing())
    assert socket.messages == [(STDOUT, b"out")]
    assert not socket.ended
    server.send(streams["error"], b"", ended=True)
    socket.receive_data(server.take_outgoing())
    assert socket.ended


def test_a_port_is_as_over_a_websocket() -> None:
    socket = asked(SpdySocket(plan_of_port(8080)))
    socket.receive_data(ACCEPTED)
    assert socket.messages == [(1, b"\x90\x1f"), (0, b"\x90\x1f")]
    opened = [
        event for event in SpdyConnection().receive(socket.take_outgoing()) if isinstance(event, OpenedStream)
    ]
    assert [event.headers["port"] for event in opened] == ["8080", "8080"]


def test_which_refusal_is_reported() -> None:
    """That of the protocol which the server speaks."""
    upgrade = BadRequest(400, "", "unable to upgrade: missing upgrade headers", has_details=False)
    real = BadRequest(400, "BadRequest", "container x is not valid")
    assert chosen(upgrade, real) is real
    assert chosen(real, upgrade) is real
    assert may_lack_websockets(upgrade)
    assert may_lack_websockets(ApiError(403, "", "the server answered 403"))
    assert not may_lack_websockets(Forbidden(403, "Forbidden", "you may not"))
    assert not may_lack_websockets(ApiError(404, "NotFound", "no such pod"))
