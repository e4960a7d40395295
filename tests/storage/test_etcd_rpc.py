"""Calls to etcd without etcd: header fields, frames and messages of a peer that keeps the rules, and of one that does
not."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.storage.etcd import http2, messages, rpc
from apimachinery.storage.etcd.fields import BadBlock, BlockDecoder, encoded

HEAD = struct.Struct(">BHBBL")
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, UPDATE, MORE = 0, 1, 3, 4, 6, 7, 8, 9
ENDS, ACK, WHOLE, PADDED, PRIORITY = 1, 1, 4, 8, 32
GOOD = encoded((b":status", b"200"), (b"content-type", b"application/grpc"))
OKAY = encoded((b"grpc-status", b"0"), (b"grpc-message", b""))


def frame(kind: int, flags: int, number: int, payload: bytes = b"") -> bytes:
    return HEAD.pack(len(payload) >> 16, len(payload) & 0xFFFF, kind, flags, number) + payload


def framed(message: Any) -> bytes:
    data = message.SerializeToString()
    return struct.pack(">BL", 0, len(data)) + data


def answer(number: int, message: Any) -> bytes:
    return (
        frame(HEADERS, WHOLE, number, GOOD)
        + frame(DATA, 0, number, framed(message))
        + frame(HEADERS, WHOLE | ENDS, number, OKAY)
    )


class Transport:
    """What is written to it, and whether it is open."""

    def __init__(self, connection: http2.Http2Connection) -> None:
        self.written = b""
        self.closed = False
        self._connection = connection

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)
        self.closed = True

    abort = close


class Peer:
    """A channel whose connection is here."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.transports: list[Transport] = []
        self.connections: list[http2.Http2Connection] = []
        self.channel = rpc.RpcChannel("member:2379", None)
        monkeypatch.setattr(http2, "connect", self._connect)

    async def _connect(self, host: str, port: int, tls: object) -> http2.Http2Connection:
        connection = http2.Http2Connection()
        transport = Transport(connection)
        connection.connection_made(transport)  # type: ignore[arg-type]
        self.connections.append(connection)
        self.transports.append(transport)
        return connection

    def call(self, request: Any, seconds: float = 60) -> asyncio.Task[Any]:
        return asyncio.ensure_future(self.channel.call(messages.RANGE, request, seconds))

    def sent(self, which: int = -1) -> list[tuple[int, int, int, bytes]]:
        """The frames that were sent: type, flags, stream, payload."""
        data = self.transports[which].written.removeprefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        frames = []
        while data:
            high, low, kind, flags, number = HEAD.unpack_from(data)
            size = 9 + (high << 16 | low)
            frames.append((kind, flags, number, data[9:size]))
            data = data[size:]
        return frames

    def says(self, data: bytes, which: int = -1) -> None:
        self.connections[which].data_received(data)

    def body(self, number: int) -> bytes:
        return b"".join(
            payload for kind, _, stream, payload in self.sent() if (kind, stream) == (DATA, number)
        )


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Peer:
    return Peer(monkeypatch)


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def ended() -> None:
        await asyncio.wait_for(story(), 60)

    asyncio.run(ended())


async def turns() -> None:
    """Lets all that can run do so."""
    for _ in range(10):
        await asyncio.sleep(0)


REQUEST = messages.RangeRequest(key=b"k")


def told(revision: int) -> Any:
    return messages.RangeResponse(header={"revision": revision})


# Blocks of RFC 7541, appendix C.
@pytest.mark.parametrize(
    ("block", "fields"),
    [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", {"custom-key": "custom-header"}),
        ("040c2f73616d706c652f70617468", {":path": "/sample/path"}),
        ("100870617373776f726406736563726574", {"password": "secret"}),
        (
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            {":method": "GET", ":scheme": "http", ":path": "/", ":authority": "www.example.com"},
        ),
        (
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
            {
                ":status": "302",
                "cache-control": "private",
                "date": "Mon, 21 Oct 2013 20:13:21 GMT",
                "location": "https://www.example.com",
            },
        ),
        ("2082", {":method": "GET"}),
    ],
)
def test_blocks_of_the_standard(block, fields):
    decoder = BlockDecoder()
    for _ in range(2):
        read = decoder.fields(bytes.fromhex(block))
        assert {name.decode(): value.decode() for name, value in read.items()} == fields


@pytest.mark.parametrize(
    "block", ["be", "80", "3f09", "40", "0001", "00ff", "00ffffffffffff", "0081ff00", "0084ffffffff00"]
)
def test_blocks_that_cannot_be_read(block):
    with pytest.raises(BadBlock):
        BlockDecoder().fields(bytes.fromhex(block))


@given(st.binary(max_size=80))
def test_any_bytes_are_a_block_or_a_bad_one(block):
    with contextlib.suppress(BadBlock):
        BlockDecoder().fields(block)


@given(st.dictionaries(st.binary(max_size=300), st.binary(max_size=300)))
def test_what_is_encoded_is_decoded(fields):
    assert BlockDecoder().fields(encoded(*fields.items())) == fields


def test_calls_of_one_turn_leave_as_one_write_and_are_answered_in_any_order(peer):
    async def story() -> None:
        calls = [peer.call(REQUEST) for _ in range(3)]
        await turns()
        numbers = [stream for kind, _, stream, _ in peer.sent() if kind == HEADERS]
        assert numbers == [1, 3, 5] and all(peer.body(number) == framed(REQUEST) for number in numbers)
        for number in (5, 1, 3):
            peer.says(answer(number, told(number)))
        assert [(await call).header.revision for call in calls] == numbers
        await peer.channel.close()

    run(story)


def test_an_answer_may_come_byte_by_byte_padded_and_in_several_frames(peer):
    async def story() -> None:
        call = peer.call(REQUEST)
        await turns()
        message = framed(told(7))
        said = (
            frame(SETTINGS, 0, 0)
            + frame(HEADERS, PRIORITY, 1, bytes(5) + GOOD[:3])
            + frame(MORE, WHOLE, 1, GOOD[3:])
            + frame(99, 0, 1, b"of an extension")
            + frame(DATA, PADDED, 1, b"\2" + message[:3] + b"\0\0")
            + frame(PING, 0, 0, b"12345678")
            + frame(DATA, 0, 1, message[3:])
            + frame(HEADERS, WHOLE | ENDS, 1, OKAY)
        )
        for octet in said:
            peer.says(bytes((octet,)))
        assert (await call).header.revision == 7
        await turns()
        assert (PING, ACK, 0, b"12345678") in peer.sent() and (SETTINGS, ACK, 0, b"") in peer.sent()
        await peer.channel.close()

    run(story)


@given(st.lists(st.integers(0, 60), max_size=6), st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_messages_come_out_whole_however_they_are_cut(sizes, cuts):
    answers = rpc.Answers()
    wanted = [bytes(size) for size in sizes]
    data = b"".join(struct.pack(">BL", 0, len(each)) + each for each in wanted)
    while data:
        for cut in cuts:
            if data:
                answers.data(data[:cut])
                data = data[cut:]
    assert list(answers._messages) == wanted and answers.failed is None


def test_a_large_request_waits_for_room(peer):
    async def story() -> None:
        large = messages.RangeRequest(key=b"k" * 200_000)
        call = peer.call(large)
        await turns()
        assert len(peer.body(1)) == 65_535
        peer.says(frame(UPDATE, 0, 0, struct.pack(">L", 1 << 20)))
        await turns()
        assert len(peer.body(1)) == 65_535
        peer.says(frame(SETTINGS, 0, 0, struct.pack(">HL", 4, 100_000)))
        await turns()
        assert len(peer.body(1)) == 100_000
        peer.says(frame(UPDATE, 0, 1, struct.pack(">L", 1 << 20)))
        await turns()
        assert peer.body(1) == framed(large)
        pieces = [each for each in peer.sent() if each[0] == DATA]
        assert max(len(each[3]) for each in pieces) <= 16_384
        assert [bool(each[1] & ENDS) for each in pieces] == [False] * (len(pieces) - 1) + [True]
        peer.says(answer(1, told(2)))
        assert (await call).header.revision == 2
        await peer.channel.close()

    run(story)


def test_a_large_answer_is_acknowledged_as_it_comes(peer):
    async def story() -> None:
        call = peer.call(REQUEST)
        await turns()
        large = messages.RangeResponse(kvs=[messages.KeyValue(value=bytes(1 << 20))] * 80)
        data = framed(large)
        peer.says(frame(HEADERS, WHOLE, 1, GOOD))
        for start in range(0, len(data), 16_384):
            peer.says(frame(DATA, 0, 1, data[start : start + 16_384]))
        peer.says(frame(HEADERS, WHOLE | ENDS, 1, OKAY))
        assert len((await call).kvs) == 80
        await turns()
        room = {0: http2.CONNECTION_WINDOW, 1: http2.STREAM_WINDOW}
        for kind, _, stream, payload in peer.sent()[2:]:
            if kind == UPDATE:
                room[stream] += struct.unpack(">L", payload)[0]
        assert all(each > len(data) for each in room.values())
        await peer.channel.close()

    run(story)


def test_who_reads_a_stream_slowly_is_sent_no_more_than_its_window(peer):
    async def story() -> None:
        opening = asyncio.ensure_future(peer.channel.stream(messages.SNAPSHOT, messages.SnapshotRequest()))
        stream = await opening
        piece = framed(messages.SnapshotResponse(blob=bytes(1 << 14)))
        peer.says(frame(HEADERS, WHOLE, 1, GOOD))
        for _ in range(100):
            peer.says(frame(DATA, 0, 1, piece))
        await turns()
        assert not [each for each in peer.sent()[2:] if each[0] == UPDATE and each[2] == 1]
        for _ in range(100):
            assert len((await stream.read()).blob) == 1 << 14
        reading = asyncio.ensure_future(stream.read())
        await turns()
        assert [each for each in peer.sent()[2:] if each[0] == UPDATE and each[2] == 1]
        peer.says(frame(HEADERS, WHOLE | ENDS, 1, OKAY))
        assert await reading is None
        await peer.channel.close()

    run(story)


def test_calls_wait_where_the_peer_takes_no_more_at_a_time(peer):
    async def story() -> None:
        first = peer.call(REQUEST)
        await turns()
        peer.says(frame(SETTINGS, 0, 0, struct.pack(">HL", 3, 1)))
        others = [peer.call(REQUEST) for _ in range(2)]
        await turns()
        peer.says(frame(SETTINGS, 0, 0))
        assert [stream for kind, _, stream, _ in peer.sent() if kind == HEADERS] == [1]
        peer.says(answer(1, told(1)))
        await first
        assert [stream for kind, _, stream, _ in peer.sent() if kind == HEADERS] == [1, 3]
        others[0].cancel()
        await turns()
        assert (RESET, 0, 3, struct.pack(">L", 8)) in peer.sent()
        peer.says(answer(5, told(5)))
        assert (await others[1]).header.revision == 5
        await peer.channel.close()

    run(story)


TRAILERS = frame(HEADERS, WHOLE | ENDS, 1, OKAY)
WITHOUT_BODY = frame(HEADERS, WHOLE, 1, GOOD) + TRAILERS


@pytest.mark.parametrize(
    ("said", "status", "details", "unsent"),
    [
        (frame(GOAWAY, 0, 0, struct.pack(">LL", 0, 0)), rpc.UNAVAILABLE, "takes no more calls", True),
        (frame(RESET, 0, 1, struct.pack(">L", 7)), rpc.UNAVAILABLE, "broke the call off", True),
        (frame(RESET, 0, 1, struct.pack(">L", 8)), rpc.CANCELLED, "broke the call off", False),
        (frame(RESET, 0, 1, struct.pack(">L", 2)), rpc.INTERNAL, "broke the call off", False),
        (frame(RESET, 0, 1, b"1"), rpc.UNAVAILABLE, "does not speak HTTP/2", False),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", rpc.UNAVAILABLE, "does not speak HTTP/2: a frame of", False),
        (frame(5, WHOLE, 1, bytes(8)), rpc.UNAVAILABLE, "a push", False),
        (frame(HEADERS, WHOLE, 1, b"\xff"), rpc.UNAVAILABLE, "cannot be decoded", False),
        (
            frame(HEADERS, 0, 1, GOOD) + frame(PING, 0, 0, bytes(8)),
            rpc.UNAVAILABLE,
            "amid header fields",
            False,
        ),
        (frame(MORE, 0, 1, GOOD), rpc.UNAVAILABLE, "of no stream", False),
        (frame(DATA, PADDED, 1, b"\x09"), rpc.UNAVAILABLE, "more padding", False),
        (frame(UPDATE, 0, 0, b"\x7f\xff\xff\xff"), rpc.UNAVAILABLE, "above the greatest", False),
        (frame(SETTINGS, 0, 0, b"\0\4\xff\xff\xff\xff"), rpc.UNAVAILABLE, "a window of", False),
        (frame(SETTINGS, 0, 0, b"123"), rpc.UNAVAILABLE, "does not speak HTTP/2", False),
        (WITHOUT_BODY, rpc.INTERNAL, "0 messages", False),
        (
            frame(HEADERS, WHOLE, 1, GOOD) + frame(DATA, 0, 1, b"\0\0\0\0\1\xff") + TRAILERS,
            rpc.INTERNAL,
            "cannot be read",
            False,
        ),
        (
            frame(HEADERS, WHOLE, 1, GOOD) + frame(DATA, 0, 1, b"\1\0\0\0\0"),
            rpc.INTERNAL,
            "compressed",
            False,
        ),
        (frame(HEADERS, WHOLE | ENDS, 1, GOOD), rpc.UNKNOWN, "named no status", False),
        (
            frame(HEADERS, WHOLE | ENDS, 1, encoded((b":status", b"503"))),
            rpc.UNAVAILABLE,
            "HTTP status 503",
            False,
        ),
        (
            frame(
                HEADERS,
                WHOLE | ENDS,
                1,
                GOOD + encoded((b"grpc-status", b"9"), (b"grpc-message", b"a%20%C3%A4%")),
            ),
            9,
            "a ä%",
            False,
        ),
    ],
)
def test_a_call_fails_once_with_what_is_known(peer, said, status, details, unsent):
    async def story() -> None:
        call = peer.call(REQUEST)
        await turns()
        peer.says(said)
        with pytest.raises(rpc.RpcFailed) as failed:
            await call
        assert (failed.value.status, failed.value.unsent) == (status, unsent)
        assert details in failed.value.details
        peer.says(answer(1, told(1)))
        # Another call goes on, over another connection where this one is not to be used any more.
        again = peer.call(REQUEST)
        await turns()
        number = next(each[2] for each in reversed(peer.sent()) if each[0] == HEADERS)
        peer.says(answer(number, told(3)))
        assert (await again).header.revision == 3
        await peer.channel.close()

    run(story)


def test_a_connection_that_breaks_says_which_calls_never_left(peer):
    async def story() -> None:
        first = peer.call(REQUEST)
        await turns()
        peer.says(frame(SETTINGS, 0, 0, struct.pack(">HL", 3, 1)))
        second = peer.call(REQUEST)
        await turns()
        peer.connections[-1].connection_lost(ConnectionResetError("reset by peer"))
        failed = await asyncio.gather(first, second, return_exceptions=True)
        assert [str(each) for each in failed] == ["UNAVAILABLE: reset by peer"] * 2
        assert [each.unsent for each in failed] == [False, True]

    run(story)


def test_calls_under_way_end_well_on_a_connection_that_takes_no_more(peer):
    async def story() -> None:
        first = peer.call(REQUEST)
        await turns()
        peer.says(frame(GOAWAY, 0, 0, struct.pack(">LL", 1, 0)))
        second = peer.call(REQUEST)
        await turns()
        assert len(peer.connections) == 2
        peer.says(answer(1, told(1)), 0)
        peer.says(answer(1, told(2)), 1)
        assert [(await each).header.revision for each in (first, second)] == [1, 2]
        assert [each.closed for each in peer.transports] == [True, False]
        await peer.channel.close()
        assert peer.transports[1].closed

    run(story)


def test_another_connection_follows_where_the_numbers_of_streams_run_out(peer):
    async def story() -> None:
        first = peer.call(REQUEST)
        await turns()
        peer.connections[0]._next = (1 << 31) - 1
        second, third = peer.call(REQUEST), peer.call(REQUEST)
        await turns()
        assert len(peer.connections) == 2
        peer.says(answer(1, told(1)), 0)
        peer.says(answer((1 << 31) - 1, told(2)), 0)
        peer.says(answer(1, told(3)), 1)
        assert [(await each).header.revision for each in (first, second, third)] == [1, 2, 3]
        await peer.channel.close()

    run(story)


def test_a_silent_peer_is_asked_and_left(peer, monkeypatch):
    monkeypatch.setattr(http2, "PING_SECONDS", 0.01)
    monkeypatch.setattr(http2, "ANSWER_SECONDS", 0.01)

    async def story() -> None:
        with pytest.raises(rpc.RpcFailed, match="no answer to a ping"):
            await peer.call(REQUEST)
        assert (PING, 0, 0, bytes(8)) in peer.sent()

    run(story)


def test_a_connection_that_nobody_uses_is_closed_without_a_ping(peer, monkeypatch):
    monkeypatch.setattr(http2, "PING_SECONDS", 0.01)

    async def story() -> None:
        (await peer.channel.stream(messages.WATCH)).cancel()
        while not peer.transports[0].closed:
            await asyncio.sleep(0.01)
        assert PING not in [each[0] for each in peer.sent()]
        await peer.channel.close()

    run(story)


def test_a_call_whose_time_is_up_is_cancelled_at_the_peer(peer):
    async def story() -> None:
        with pytest.raises(rpc.RpcFailed) as failed:
            await peer.call(REQUEST, 0.01)
        assert failed.value.status == rpc.DEADLINE_EXCEEDED and not failed.value.unsent
        await turns()
        assert (RESET, 0, 1, struct.pack(">L", 8)) in peer.sent()
        await peer.channel.close()

    run(story)


def test_a_channel_that_is_closed_while_it_connects(monkeypatch):
    async def never(host: str, port: int, tls: object) -> http2.Http2Connection:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(http2, "connect", never)

    async def story() -> None:
        channel = rpc.RpcChannel("member:2379", None)
        call = asyncio.ensure_future(channel.call(messages.RANGE, REQUEST, 60))
        await turns()
        await channel.close()
        for each in (call, channel.call(messages.RANGE, REQUEST, 60)):
            with pytest.raises(rpc.RpcFailed, match="the channel is closed") as failed:
                await each
            assert failed.value.unsent

    run(story)


FRAMES = st.builds(
    frame,
    st.integers(0, 11),
    st.integers(0, 255),
    st.integers(0, 5),
    st.binary(max_size=40) | st.sampled_from([GOOD, OKAY, framed(told(1))]),
)


@given(st.lists(FRAMES | st.binary(max_size=30), max_size=12))
def test_whatever_a_peer_sends_calls_end_when_the_connection_does(said: Sequence[bytes]):
    async def story() -> None:
        connection = http2.Http2Connection()
        transport = Transport(connection)
        connection.connection_made(transport)  # type: ignore[arg-type]
        answers = [rpc.Answers() for _ in range(3)]
        for each in answers:
            each.stream = connection.begin(GOOD, each, framed(REQUEST), ends=True)
        for piece in said:
            connection.data_received(piece)
        connection.connection_lost(None)
        assert all(each.done for each in answers) and transport.closed
        await asyncio.sleep(0)

    asyncio.run(story())
