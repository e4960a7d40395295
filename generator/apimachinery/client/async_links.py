"""Connections of asyncio programs, and the pool of those that wait for another request; ``links`` has the same for
threads. All is for the event loop that a connection was made in.

A link is a protocol of asyncio and not a pair of streams: what came is handed on as it came, without a copy.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from typing import Final, Self, cast

from apimachinery.client.bodies import TransportError
from apimachinery.client.config import ConfigError, Credential
from apimachinery.client.endpoint import (
    CHUNK,
    CONNECT_SECONDS,
    IDLE_CONNECTIONS,
    ServerAddress,
    end_by_reset,
    has_news,
    prepare,
    seconds_until,
)
from apimachinery.http.asking import AnswerReader
from apimachinery.http.async_dialing import async_dial

READ_AHEAD: Final = 1 << 18
"""What is kept of an answer that nobody reads; then the server has to wait."""
CLOSE_SECONDS: Final = 1.0


class AsyncLink(asyncio.Protocol):
    """One connection: an exchange at a time. ``until`` is when the call that uses it has to be done
    (``time.monotonic``); ``silence`` takes its place when a stream begins."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.context = context
        self.until: float | None = None
        self.silence: float | None = None
        self.loop = asyncio.get_running_loop()
        self.lost = self.loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._came: list[bytes] = []
        self._size = 0
        self._over = False
        self._paused = False
        self._fault: Exception | None = None
        self._reading: asyncio.Future[None] | None = None
        self._writing: asyncio.Future[None] | None = None
        self._full = False

    @classmethod
    async def open(cls, endpoint: ServerAddress, context: ssl.SSLContext | None, until: float | None) -> Self:
        """Connects, through proxies, up to where requests may be sent. Raises OSError, ``BadAnswer``,
        ``ConfigError``."""
        async with asyncio.timeout(seconds_until(until)):
            if endpoint.is_socks:
                sock = await _through_socks(endpoint)
            else:
                sock = await async_dial(*endpoint.first_hop, CONNECT_SECONDS)
            prepare(sock)
            link = cls(context)
            link.until = until
            first = endpoint.proxy_tls(context) if endpoint.through_proxy else context
            name = endpoint.first_hop[0] if endpoint.through_proxy else endpoint.server_name
            await link.loop.create_connection(
                lambda: link, sock=sock, ssl=first, server_hostname=name if first is not None else None
            )
            if endpoint.tunnels:
                try:
                    await link._tunnel(endpoint)
                except BaseException:
                    link.abort()
                    raise
        return link

    async def _tunnel(self, endpoint: ServerAddress) -> None:
        await self.send(endpoint.tunnel_head())
        answer = AnswerReader("CONNECT")
        while not answer.code:
            data = await self.receive()
            answer.take(data) if data else answer.end()
        if answer.code >= 300:
            raise ConnectionError(f"the proxy refused to connect: it answered {answer.code}")
        assert self._transport is not None and self.context is not None
        self._transport = cast(
            asyncio.Transport,
            await self.loop.start_tls(
                self._transport, self, self.context, server_hostname=endpoint.server_name
            ),
        )

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the connection."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Keeps what came; has the server wait where nobody reads."""
        self._came.append(data)
        self._size += len(data)
        if self._size > READ_AHEAD and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        _wake(self._reading)

    def eof_received(self) -> None:
        """Notes that the server sends no more."""
        self._over = True
        _wake(self._reading)

    def connection_lost(self, exc: Exception | None) -> None:
        """Notes the end, and wakes whoever waits."""
        self._over, self._fault = True, exc
        _wake(self._reading)
        _wake(self._writing)
        _wake(self.lost)

    def pause_writing(self) -> None:
        """Has ``send`` wait."""
        self._full = True

    def resume_writing(self) -> None:
        """Lets ``send`` go on."""
        self._full = False
        _wake(self._writing)

    # What its user calls; one reads and one writes at a time.

    def begin(self, until: float | None) -> None:
        """Begins a call that has to be done by then."""
        self.until, self.silence = until, None

    def flow(self, silence: float | None) -> None:
        """Begins a stream: from now on each silence has a limit."""
        self.until, self.silence = None, silence

    async def send(self, data: bytes) -> None:
        """Sends bytes. Raises OSError."""
        if self._transport is None or self._transport.is_closing():
            raise self._broken()
        self._transport.write(data)
        while self._full:
            self._writing = self.loop.create_future()
            await self._wait(self._writing)
            if self._over and self._full:
                raise self._broken()

    async def receive(self, size: int = CHUNK) -> bytes:
        """What came; empty at the end. Raises OSError."""
        while not self._came and not self._over:
            self._reading = self.loop.create_future()
            await self._wait(self._reading)
        if not self._came:
            if self._fault is not None:
                raise self._broken()
            return b""
        if self.until is not None and time.monotonic() > self.until:
            raise TimeoutError("timed out")
        data = self._came[0] if len(self._came) == 1 else b"".join(self._came)
        self._came.clear()
        self._size = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def _wait(self, event: asyncio.Future[None]) -> None:
        seconds = seconds_until(self.until) if self.until is not None else self.silence
        if seconds is None:
            await event
            return
        late = self.loop.call_later(seconds, _fail_late, event)
        try:
            await event
        finally:
            late.cancel()

    def _broken(self) -> OSError:
        fault = self._fault
        return (
            fault
            if isinstance(fault, OSError)
            else ConnectionError(str(fault or "the connection was closed"))
        )

    def is_stale(self) -> bool:
        """Whether the server closed it, or said something unasked, while it lay in the pool."""
        transport = self._transport
        if transport is None or self._over or self._came or transport.is_closing():
            return True
        return has_news(transport.get_extra_info("socket"))

    def abort(self) -> None:
        """Closes it by RST, also with what was not sent yet."""
        sock = self._transport.get_extra_info("socket") if self._transport is not None else None
        if sock is not None:  # TLS forgets it when the connection is lost
            end_by_reset(sock)
        self.close()

    def close(self) -> None:
        """Closes it at once; whoever waits for it is woken."""
        if self._transport is not None and not self.lost.done() and not self.loop.is_closed():
            self._transport.abort()

    def wire(self, host: str, prefix: str, headers: list[tuple[str, str]]) -> AsyncWire:
        """This connection for another protocol, whose handshake has these."""
        return AsyncWire(self, host, prefix, headers)

    async def hang_up(self) -> None:
        """Closes it once all is sent."""
        if self._transport is not None:
            self._transport.close()
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self.lost
            except TimeoutError:
                self.close()


def _wake(event: asyncio.Future[None] | None) -> None:
    if event is not None and not event.done():
        event.set_result(None)


def _fail_late(event: asyncio.Future[None]) -> None:
    if not event.done():
        event.set_exception(TimeoutError("timed out"))


async def _through_socks(endpoint: ServerAddress) -> socket.socket:
    """A connection made by a SOCKS5 proxy; the proxy looks up the name (``socks5h``), as curl and Go have it."""
    try:
        from python_socks import ProxyError, ProxyTimeoutError
        from python_socks.async_.asyncio import Proxy
    except ImportError:
        raise ConfigError("a socks5 proxy needs: pip install 'kubewright[socks]'") from None
    proxy = Proxy.from_url(endpoint.socks_url, rdns=True)
    try:
        made: socket.socket = await proxy.connect(endpoint.host, endpoint.port, timeout=CONNECT_SECONDS)
    except (ProxyError, ProxyTimeoutError) as error:
        raise ConnectionError(f"the proxy refused: {error}") from None
    return made


async def async_current_credential(endpoint: ServerAddress, until: float | None) -> Credential:
    """The credential to use now; what may block is done in a thread."""
    if not endpoint.credentials.may_block:
        return endpoint.credentials.current()
    async with asyncio.timeout(seconds_until(until)):
        return await asyncio.to_thread(endpoint.credentials.current)


class AsyncPool:
    """Links that wait for another request. At most ``calls`` are on their way at once, 0 for no bound."""

    def __init__(self, calls: int) -> None:
        self.idle: list[AsyncLink] = []
        self._links: set[AsyncLink] = set()
        self._slots = asyncio.Semaphore(calls) if calls else None

    async def enter(self, until: float | None) -> None:
        """Waits for the place of a call. Raises TimeoutError."""
        if self._slots is None:
            return
        if not self._slots.locked():
            await self._slots.acquire()  # without a timer, for nobody waits
            return
        async with asyncio.timeout(seconds_until(until)):
            await self._slots.acquire()

    def leave(self) -> None:
        """Gives the place of a call back."""
        if self._slots is not None:
            self._slots.release()

    async def take(
        self, endpoint: ServerAddress, context: ssl.SSLContext | None, until: float | None
    ) -> AsyncLink:
        """A link to the server, for a call that has to be done by then. Raises as ``AsyncLink.open``."""
        loop = asyncio.get_running_loop()
        while self.idle:
            link = self.idle.pop()
            if link.context is context and link.loop is loop and not link.is_stale():
                link.begin(until)
                return link
            self._drop(link)
        link = await AsyncLink.open(endpoint, context, until)
        self._links.add(link)
        link.begin(until)
        return link

    def put_back(self, link: AsyncLink, keeps: bool) -> None:
        """Takes back a link whose exchange has ended."""
        if keeps and len(self.idle) < IDLE_CONNECTIONS and link in self._links:
            self.idle.append(link)
        else:
            self._drop(link)

    def _drop(self, link: AsyncLink) -> None:
        self._links.discard(link)
        link.close()

    def give_up(self, link: AsyncLink) -> None:
        """Ends a link in the middle of an exchange, by RST."""
        self._links.discard(link)
        link.abort()

    def hang_up(self, link: AsyncLink) -> None:
        """Ends a link in the middle of an exchange."""
        self._drop(link)

    async def close(self) -> None:
        """Closes every link."""
        links, self._links = self._links, set()
        self.idle.clear()
        for link in links:
            link.close()
        if links:
            await asyncio.sleep(0)  # their sockets are closed when the loop goes on


class AsyncWire:
    """As ``Wire``, awaited."""

    def __init__(self, link: AsyncLink, host: str, prefix: str, headers: list[tuple[str, str]]) -> None:
        self.host, self.prefix, self.headers = host, prefix, headers
        self._link = link

    async def read(self) -> bytes:
        """What came; empty at the end. Raises ``TransportError``."""
        try:
            return await self._link.receive()
        except OSError as error:
            raise TransportError(f"the connection broke: {error}", sent=True) from None

    async def write(self, data: bytes) -> None:
        """Sends bytes. Raises ``TransportError``."""
        try:
            await self._link.send(data)
        except OSError as error:
            raise TransportError(f"the connection broke: {error}", sent=True) from None

    async def close(self) -> None:
        """Ends it."""
        await self._link.hang_up()
