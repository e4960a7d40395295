"""Connections over TLS: counted from when they are accepted, and a handshake without end ends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable

import pytest

from apimachinery.http import handshakes, protocol
from apimachinery.http.handshakes import TlsListener, tls_bytes
from apimachinery.http.messages import Request, Response
from apimachinery.http.protocol import Connections
from apimachinery.http.tls import ensure_certificate, server_context


class Hello:
    async def answer(self, request: Request, oversized: bool) -> Response:
        return Response(200, b"%d" % len(request.body))

    def timed_out(self, request: Request) -> Response:
        return Response(504)

    def knows(self, request: Request) -> bool:
        return True

    def takes_upgrade(self, request: Request) -> bool:
        return False


@pytest.fixture(scope="module")
def contexts(tmp_path_factory):
    certificate, key = ensure_certificate(tmp_path_factory.mktemp("tls"), "localhost")
    trusting = ssl.create_default_context(cafile=certificate)
    return server_context(certificate, key), trusting


Story = Callable[[Connections, int], Awaitable[None]]


@pytest.fixture(params=["uvloop", "asyncio"])
def tell(request, contexts):
    """Runs a story with a listener, on both loops."""
    new_loop = asyncio.new_event_loop
    if request.param == "uvloop":
        new_loop = pytest.importorskip("uvloop").new_event_loop

    def run(story: Story) -> None:
        async def main() -> None:
            connections = Connections(Hello())
            listener = await TlsListener.on(connections, contexts[0], "127.0.0.1", 0)
            try:
                await story(connections, listener.sockets[0].getsockname()[1])
            finally:
                listener.close()
                await connections.end(0.0)
                await listener.wait_closed()
            assert connections.governor.connections.held == 0

        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(main())

    return run


def hello(context: ssl.SSLContext) -> bytes:
    """The first message of a client."""
    out = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost").do_handshake()
    return out.read()


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def test_a_connection_is_counted_before_its_handshake_is_done(tell, contexts):
    async def story(connections: Connections, port: int) -> None:
        account, weight = connections.governor.connections, tls_bytes(asyncio.get_running_loop())
        begun = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        for _, writer in begun[:3]:
            writer.write(hello(contexts[1]))
        await until(lambda: account.held == 5 * weight)
        assert not connections.open
        reader, writer = await asyncio.open_connection("localhost", port, ssl=contexts[1])
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in await reader.readline()
        assert account.held == 6 * weight
        for _, each in [*begun, (reader, writer)]:
            each.close()
        await until(lambda: account.held == 0)

    tell(story)


def test_a_handshake_without_end_ends(tell, contexts, monkeypatch):
    monkeypatch.setattr(handshakes, "HANDSHAKE_SECONDS", 0.3)

    async def story(connections: Connections, port: int) -> None:
        for sent in (b"", hello(contexts[1])[:50], hello(contexts[1])):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            async with asyncio.timeout(60):
                try:
                    while await reader.read(4096):
                        pass
                except ConnectionError:
                    pass
            writer.close()
        await until(lambda: connections.governor.connections.held == 0)

    tell(story)


def test_what_is_no_tls_is_closed(tell):
    async def story(connections: Connections, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(60):
            with contextlib.suppress(ConnectionError):
                assert b"HTTP" not in await reader.read(4096)
        writer.close()
        await until(lambda: connections.governor.connections.held == 0)

    tell(story)


def test_without_room_it_is_closed_at_once(tell):
    async def story(connections: Connections, port: int) -> None:
        account = connections.governor.connections
        account.limit = 3 * tls_bytes(asyncio.get_running_loop())
        begun = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        await until(lambda: account.held == account.limit)
        loop = asyncio.get_running_loop()
        with socket.create_connection(("127.0.0.1", port)) as refused:
            refused.setblocking(False)
            async with asyncio.timeout(60):
                assert await loop.sock_recv(refused, 100) == b""
        assert (account.held, account.refused) == (account.limit, 1)
        for _, writer in begun:
            writer.close()
        await until(lambda: account.held == 0)

    tell(story)


def test_buffers_that_have_grown_are_counted(tell, contexts):
    async def story(connections: Connections, port: int) -> None:
        account = connections.governor.connections
        reader, writer = await asyncio.open_connection("localhost", port, ssl=contexts[1])
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000\r\n\r\n" + b"x" * 500_000)
        assert b" 200 " in await reader.readline()
        assert account.held == protocol.TLS_LARGE_BYTES
        writer.close()
        await until(lambda: account.held == 0)

    tell(story)
