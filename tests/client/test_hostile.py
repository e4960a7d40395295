"""Servers that are hostile or broken: whatever they send costs a bounded amount and ends in an error with a type."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import json
import logging
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.client.awaited import Api, take
from tests.client.test_wire import MAPS, QUICK
from tests.client.wires import Listening, ScriptedServer, answer
from tests.controller.forms import drive

from apimachinery.client import calls
from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_resource import AsyncDynamicResource
from apimachinery.client.bodies import AnswerTooLarge, Lines, SentBody, TransportError
from apimachinery.client.config import Config
from apimachinery.client.connection import LONGEST_WARNING, Client
from apimachinery.client.errors import InternalError, UnreadableAnswer, UnreadableObject
from apimachinery.client.reflector import ReflectorOptions
from apimachinery.client.resource import DynamicResource
from apimachinery.client.throttle import Limits
from apimachinery.typed.object import Object
from kubernetes_api.core_v1 import ConfigMap

both = pytest.mark.parametrize("mode", ["sync", "async"])
SMALL = Limits(answer_bytes=100_000, line_bytes=10_000)
BOMB = gzip.compress(bytes(50_000_000))
DEEP = b'{"metadata":{"name":"a"},"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


class EndlessServer(Listening):
    """Answers every request with a head and then blocks without end; counts what could be sent."""

    def __init__(self, head: bytes, blocks: Callable[[], Iterator[bytes]]) -> None:
        self._head, self._blocks = head, blocks
        self.requests = 0
        self.ended = threading.Event()
        super().__init__()
        self.config = Config(server=f"http://127.0.0.1:{self.port}")

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            if not connection.recv(65536):
                return
            self.requests += 1
            connection.sendall(b"HTTP/1.1 " + self._head + b"\r\n\r\n")
            for block in self._blocks():
                connection.sendall(block)
        self.ended.set()


def chunked(block: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: itertools.repeat(f"{len(block):x}\r\n".encode() + block + b"\r\n")


def told(mode: str, config: Config, story: Callable[[Any, Any], Any], **options: Any) -> Any:
    """What a story with a client and the API of a resource gives."""

    async def run() -> Any:
        async with AsyncClient(config, retry=QUICK, **options) as client:
            return await story(client, Api(AsyncDynamicResource(client, MAPS)))

    if mode == "async":
        return asyncio.run(run())
    with Client(config, retry=QUICK, **options) as client:
        return drive(story(client, Api(DynamicResource(client, MAPS))))


def to(server: ScriptedServer) -> Config:
    return Config(server=f"http://127.0.0.1:{server.port}")


@both
def test_a_small_body_that_unpacks_to_a_large_one(mode: str) -> None:
    async def story(client: Any, api: Api) -> None:
        with pytest.raises(AnswerTooLarge, match=r"GET .*/a: the answer has more than 100000 bytes; Limits"):
            await api.get("a")

    assert len(BOMB) < SMALL.answer_bytes
    with ScriptedServer([answer(200, BOMB, Content_Encoding="gzip")] * 5) as server:
        told(mode, to(server), story, limits=SMALL)
    assert len(server.requests) == 1  # it is not asked for again


@both
@pytest.mark.parametrize("code", ["200 OK", "500 Broken", "401 Who"])
def test_a_body_without_end(mode: str, code: str) -> None:
    async def story(client: Any, api: Api) -> None:
        with pytest.raises(AnswerTooLarge):
            await api.get("a")

    head = f"{code}\r\nTransfer-Encoding: chunked".encode()
    with EndlessServer(head, chunked(b"[" * 5000)) as server:
        told(mode, server.config, story, limits=SMALL)
        assert server.ended.wait(60)  # the client hung up
    assert server.requests == 1


@both
def test_a_body_that_says_that_it_is_too_large_is_not_read(mode: str) -> None:
    async def story(client: Any, api: Api) -> None:
        with pytest.raises(AnswerTooLarge):
            await api.get("a")

    with EndlessServer(b"200 OK\r\nContent-Length: 5000000000000", lambda: iter(())) as server:
        told(mode, server.config, story, limits=SMALL)


@both
@pytest.mark.parametrize("packed", [False, True])
def test_a_line_of_a_watch_without_end(mode: str, packed: bool) -> None:
    async def story(client: Any, api: Api) -> None:
        watch = await api.watch()
        with pytest.raises(AnswerTooLarge, match="a line of the answer has more than 10000 bytes"):
            await take(watch, 1)

    press = zlib.compressobj(wbits=31)
    first = press.compress(b"x" * 50_000_000) + press.flush(zlib.Z_SYNC_FLUSH)
    head = b"200 OK\r\nTransfer-Encoding: chunked"
    blocks = chunked(b"x" * 5000)
    if packed:
        head += b"\r\nContent-Encoding: gzip"
        blocks = chunked(first)
    with EndlessServer(head, blocks) as server:
        told(mode, server.config, story, limits=SMALL)
        assert server.ended.wait(60)


@both
def test_a_refused_watch_without_end(mode: str) -> None:
    async def story(client: Any, api: Api) -> None:
        with pytest.raises(AnswerTooLarge):
            await api.watch()

    head = b"403 No\r\nTransfer-Encoding: chunked"
    with EndlessServer(head, chunked(b"x" * 5000)) as server:
        told(mode, server.config, story, limits=SMALL)
        assert server.ended.wait(60)


@both
def test_a_head_that_comes_a_little_at_a_time(mode: str) -> None:
    """Each piece comes in time, and the whole never."""
    go = threading.Event()

    def trickle() -> Iterator[bytes]:
        while not go.wait(0.02):
            yield b"HTTP/1.1 100 Continue\r\n\r\n"

    async def story(client: Any, api: Api) -> None:
        call = calls.get(calls.Target(MAPS, "default"), calls.UNSTRUCTURED, "a")
        with pytest.raises(TransportError, match="no answer within") as late:
            await Api(client.within(0.3)).run(call)
        assert late.value.timed_out

    with EndlessServer(b"100 Continue", trickle) as server:
        told(mode, server.config, story)
        go.set()


@both
@pytest.mark.parametrize("pages", ["a", "ab"])
def test_a_continue_token_that_comes_again(mode: str, pages: str) -> None:
    tokens = itertools.cycle(pages)

    def page() -> bytes:
        body = {"metadata": {"continue": next(tokens), "resourceVersion": "1"}, "items": []}
        return answer(200, json.dumps(body).encode())

    async def story(client: Any, api: Api) -> None:
        with pytest.raises(UnreadableAnswer, match="its continue token is one that was used before"):
            async for _ in api.list():
                pass

    with ScriptedServer([page() for _ in range(10)]) as server:
        told(mode, to(server), story)
    assert len(server.requests) == len(pages) + 1

    async def mirror(client: Any, api: Api) -> None:
        informer = api._api.informer(options=ReflectorOptions(patient=True, first_wait=60, longest_wait=60))
        informer.start()
        while informer.last_error is None:
            await (asyncio.sleep(0.01) if mode == "async" else _nap())
        assert isinstance(informer.last_error, UnreadableAnswer)
        stopped = informer.stop()
        if mode == "async":
            await stopped

    with ScriptedServer([page() for _ in range(10)]) as server:
        told(mode, to(server), mirror)
    assert len(server.requests) == len(pages) + 1


async def _nap() -> None:
    threading.Event().wait(0.01)


@both
def test_json_that_is_nested_too_deep(mode: str) -> None:
    event = b'{"type":"ADDED","object":' + DEEP + b"}\n"

    async def story(client: Any, api: Api) -> None:
        with pytest.raises(UnreadableAnswer):
            await api.get("a")
        with pytest.raises(UnreadableAnswer):
            await api.list().page()
        with pytest.raises(UnreadableAnswer):
            await api.delete("a")
        with pytest.raises(UnreadableAnswer):
            await take(await api.watch(), 1)
        with pytest.raises(InternalError, match=r"\[\[\[\["):
            await api.get("a")

    script = [
        answer(200, DEEP),
        answer(200, b'{"items":[' + DEEP + b"]}"),
        answer(200, DEEP),
        answer(200, event),
    ]
    with ScriptedServer([*script, answer(500, DEEP)]) as server:
        told(mode, to(server), story)


def test_an_object_that_is_nested_too_deep_hides_no_others() -> None:
    codec = calls.typed_codec(ConfigMap)
    good = b'{"metadata":{"name":"b"},"data":{}}'
    items, unreadable = calls.decode_items(codec, [DEEP, good])
    assert [item.metadata.name for item in items if item.metadata] == ["b"]
    assert [type(each) for each in unreadable] == [UnreadableObject]
    assert isinstance(items[0], Object)


@both
def test_warnings_cannot_steer_a_terminal(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []
    evil = 'x\x1b[2J\x9b31m\u202e\x07 "quoted"'
    header = '299 - "' + evil.replace('"', '\\"') + '"'
    long = '299 - "' + "y" * 60_000 + '"'
    body = b'{"metadata":{"name":"a"}}'

    async def story(client: Any, api: Api) -> None:
        await api.get("a")

    raw = answer(200, body).replace(b"\r\n", b"\r\nWarning: " + header.encode() + b"\r\n", 1)
    endless = answer(200, body).replace(b"\r\n", b"\r\nWarning: " + long.encode()[:8000] + b'"\r\n', 1)
    with ScriptedServer([raw, raw, endless]) as server:
        told(mode, to(server), story, on_warning=heard.append)
        with caplog.at_level(logging.WARNING, "kubewright.client"):
            told(mode, to(server), story)
        told(mode, to(server), story, on_warning=heard.append)
    shown = [heard[0], *(record.getMessage() for record in caplog.records)]
    assert len(shown) == 2
    for text in shown:
        assert text.isprintable()
        assert r"x\x1b[2J" in text
        assert text.endswith('\\x07 "quoted"')
    assert len(heard[1]) == LONGEST_WARNING


@both
def test_a_write_that_ran_out_of_time_does_not_arrive_later(mode: str) -> None:
    """The connection ends by RST: what lies in buffers on the way is dropped, not delivered when the way is free."""
    ends: list[object] = []
    over = threading.Event()

    async def late(client: Any, api: Api) -> None:
        with pytest.raises(TransportError, match="no answer within"):
            await Api(api._api.within(0.2)).replace({"metadata": {"name": "a"}})

    def listen(sock: socket.socket) -> None:
        client, _ = sock.accept()
        with client:
            try:
                while client.recv(65536):
                    pass
            except ConnectionResetError as error:
                ends.append(error)
        over.set()

    with socket.create_server(("127.0.0.1", 0)) as sock:
        threading.Thread(target=listen, args=(sock,), daemon=True).start()
        config = Config(server=f"http://127.0.0.1:{sock.getsockname()[1]}")
        told(mode, config, late)
        assert over.wait(60)
    assert [type(end) for end in ends] == [ConnectionResetError]


# ------------------------------------------------------------------ the parts


def test_lines_take_time_in_proportion() -> None:
    """A line that comes byte by byte: joined once, not once for each byte (45 GB would be copied)."""
    lines = Lines({}, limit=1_000_000)
    for _ in range(300_000):
        assert not [*lines.take(b"x")]
    assert [len(line) for line in lines.take(b"\ny\n\nz")] == [300_000, 1]
    assert lines.rest() == b"z"


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3_000_000])
def test_what_is_packed_is_unpacked_whole(size: int) -> None:
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    packed = gzip.compress(data)
    for step in (len(packed), 1 + len(packed) // 7):
        body = SentBody({"content-encoding": "gzip"}, limit=size)
        for begin in range(0, len(packed), step):
            body.take(packed[begin : begin + step])
        assert body.whole() == data
    cut = SentBody({"content-encoding": "gzip"}, limit=size)
    cut.take(packed[:-1])
    with pytest.raises(TransportError, match="the answer ended within its gzip"):
        cut.whole()
    broken = SentBody({"content-encoding": "gzip"}, limit=size)
    with pytest.raises(TransportError, match="the answer says it is gzip"):
        broken.take(b"plain")
