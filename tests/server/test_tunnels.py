"""Connections that were handed over: what they may hold, how many there may be, and that nothing stays of them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from urllib.request import urlopen

import pytest
import wsproto
from tests.server.test_address_proxy import fill
from wsproto.events import BytesMessage, CloseConnection, Ping

from apimachinery.http import protocol, tunnel
from apimachinery.http.governor import Account
from apimachinery.http.messages import Request
from apimachinery.http.tunnel import SocketTunnel
from apimachinery.server.node.channels import LARGEST_MESSAGE, StreamChannels
from apimachinery.server.node.commands import CommandInput
from kubewright.testing import ApiServer

AGREED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
OFFER = (
    b"POST /api/v1/namespaces/default/pods/p/proxy/x HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
)


class Transport:
    """As much of a transport as a tunnel uses."""

    def __init__(self) -> None:
        self.reading, self.aborted, self.written = True, False, b""

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True

    def write(self, data: bytes) -> None:
        self.written += data


def made(account: Account) -> tuple[SocketTunnel, Transport]:
    transport = Transport()
    return SocketTunnel(transport, lambda: None, account), transport


def test_many_that_nobody_takes_from_leave_room_for_one_more():
    async def story() -> None:
        account = Account("tunneled", 4 << 20)
        hogs = [made(account) for _ in range(60)]
        for _ in range(200):
            for each, transport in hogs:
                if transport.reading:
                    each.feed(b"x" * 4096)
        assert not any(transport.reading or transport.aborted for _, transport in hogs)
        assert account.held < account.limit - 16_384
        last, transport = made(account)
        for _ in range(100):
            last.feed(b"y" * 4096)
            assert await last.read() == b"y" * 4096
            assert transport.reading
        # Where one takes everything, it is read on.
        each, transport = hogs[0]
        while not transport.reading:
            await each.read()
        for each, _ in [*hogs, (last, transport)]:
            each.close()
        assert account.held == 0

    asyncio.run(story())


def test_past_the_limit_a_tunnel_ends():
    async def story() -> None:
        each, transport = made(Account("tunneled", 10_000))
        each.feed(b"x" * 20_000)
        assert transport.aborted

    asyncio.run(story())


class Deaf:
    """Agrees to every offer, then reads nothing."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                self.open.append(sock)
                while not sock.recv(4096).endswith(b"\r\n\r\n"):
                    pass
                sock.sendall(AGREED)

    def close(self) -> None:
        self.listener.close()
        for sock in self.open:
            sock.close()


@pytest.fixture
def deaf():
    backend = Deaf()
    yield backend
    backend.close()


@pytest.fixture
def server(deaf):
    with ApiServer(controllers="none", proxy_networks=["127.0.0.0/8"]) as running:
        fill(running, deaf.port)
        yield running


def held(server, sort: str) -> int:
    with urlopen(f"{server.url}/metrics") as answer:
        text = answer.read().decode()
    return int(float(text.split(f'kubewright_held_bytes{{sort="{sort}"}} ')[1].split()[0]))


def until(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def offered(server) -> tuple[socket.socket, bytes]:
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    sock.sendall(OFFER)
    return sock, sock.recv(4096)


def test_what_nobody_takes_is_counted_and_goes_with_the_client(server, deaf, monkeypatch):
    monkeypatch.setattr(tunnel, "PATIENCE_SECONDS", 1.0)
    sock, got = offered(server)
    assert got.startswith(b"HTTP/1.1 101 ")
    sock.settimeout(0.5)
    with contextlib.suppress(TimeoutError):
        for _ in range(300):
            sock.sendall(b"x" * (1 << 16))
    assert 0 < held(server, "tunneled") < 2 * tunnel.TUNNEL_BYTES
    assert held(server, "tunnels") == tunnel.RESERVED_BYTES
    sock.close()
    until(lambda: held(server, "tunnels") == 0)
    assert held(server, "tunneled") == 0
    # The other side was let go too.
    deaf.open[0].settimeout(60)
    with contextlib.suppress(ConnectionResetError):
        while deaf.open[0].recv(1 << 20):
            pass


def test_when_a_tunnel_is_stuck():
    async def story() -> None:
        each, _ = made(Account("tunneled", 1 << 20))
        now = time.monotonic()
        assert not each.is_stuck(now + 9e9, crowded=True), "nothing came"
        each.feed(b"x")
        assert not each.is_stuck(now + 31, crowded=False)
        assert each.is_stuck(now + 31, crowded=True)
        assert each.is_stuck(now + 601, crowded=False)
        await each.read()
        reading = asyncio.create_task(each.read())
        await asyncio.sleep(0)
        assert not each.is_stuck(now + 9e9, crowded=True), "somebody waits for more"
        each.feed_eof()
        assert await reading == b""
        # Somebody took it, and waits for it to be taken from him.
        assert each.is_stuck(now + 31, crowded=False)

    asyncio.run(story())


def test_there_are_only_so_many(server, monkeypatch):
    monkeypatch.setattr(protocol, "RESERVED_BYTES", 200 << 20)
    first, got = offered(server)
    assert got.startswith(b"HTTP/1.1 101 ")
    second, got = offered(server)
    assert got.startswith(b"HTTP/1.1 429 ")
    second.close()
    first.close()
    until(lambda: held(server, "tunnels") == 0)
    third, got = offered(server)
    assert got.startswith(b"HTTP/1.1 101 ")
    third.close()


def test_an_offer_that_is_declined_takes_no_place(server):
    offer = OFFER.replace(b"POST", b"GET").replace(b"SPDY/3.1", b"websocket")
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
            sock.sendall(offer.replace(b"pods/p/proxy", b"configmaps"))
            assert b" 404 " in sock.recv(4096)
            assert held(server, "tunnels") == 0


# The simulated node's side.


class Piped:
    """A tunnel whose client sent all of this; ``stuck`` says that it reads nothing."""

    def __init__(self, data: bytes, stuck: bool = False) -> None:
        self._data = data
        self._stuck = stuck
        self.sent = b""
        self.held = self.largest = 0

    async def read(self, size: int = 1 << 16) -> bytes:
        data, self._data = self._data[:size], self._data[size:]
        return data

    def write(self, data: bytes) -> None:
        self.sent += data

    async def drain(self) -> None:
        if self._stuck and len(self.sent) > 10_000:
            raise BlockingIOError("it would wait")

    def hold(self, size: int) -> None:
        self.held += size


HANDSHAKE = Request(
    "GET",
    "/x",
    headers={
        "host": "x",
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-protocol": "v5.channel.k8s.io",
    },
)


def client(*events: object) -> bytes:
    socket_ = wsproto.connection.Connection(wsproto.ConnectionType.CLIENT)
    return b"".join(map(socket_.send, events))


def test_a_message_without_end_is_refused():
    async def story() -> None:
        pieces = [BytesMessage(b"\0" + b"x" * 60_000, message_finished=False) for _ in range(30)]
        piped = Piped(client(*pieces))
        channels = StreamChannels(piped, HANDSHAKE)
        assert await channels.accept()
        assert await channels.receive() is None
        assert len(piped._data) > 30 * 60_000 - LARGEST_MESSAGE - 100_000, "the rest is not read"
        assert piped.sent.endswith(b"\x88\x02\x03\xf1")  # 1009

    asyncio.run(story())


def test_pings_of_who_reads_nothing_are_not_answered_for_ever():
    async def story() -> None:
        piped = Piped(client(*[Ping(b"x" * 100) for _ in range(5_000)]), stuck=True)
        channels = StreamChannels(piped, HANDSHAKE)
        assert await channels.accept()
        with pytest.raises(BlockingIOError):
            await channels.receive()
        assert len(piped.sent) < 30_000

    asyncio.run(story())


def test_what_is_collected_of_stdin_is_counted():
    async def story() -> None:
        piece = BytesMessage(b"\0" + b"x" * 30_000)
        piped = Piped(client(*[piece] * 10, CloseConnection(code=1000)))
        channels = StreamChannels(piped, HANDSHAKE)
        assert await channels.accept()
        given = CommandInput()
        await channels.pump(0, given)
        assert len(given.read()) == 300_000
        assert piped.held == 600_000

    asyncio.run(story())
