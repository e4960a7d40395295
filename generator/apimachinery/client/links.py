"""Connections of programs with threads, and the pool of those that wait for another request; ``async_links`` has the
same for asyncio."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar

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
from apimachinery.http.dialing import dial

if TYPE_CHECKING:
    import ssl

T = TypeVar("T")


class Link:
    """One connection: an exchange at a time. ``until`` is when the call that uses it has to be done
    (``time.monotonic``): a server that sends a little again and again must not hold a call forever."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext | None) -> None:
        self.context = context
        self.sock = sock
        self.until: float | None = None

    @classmethod
    def open(cls, endpoint: ServerAddress, context: ssl.SSLContext | None, until: float | None) -> Self:
        """Connects, through proxies, up to where requests may be sent. Raises OSError, ``BadAnswer``,
        ``ConfigError``."""
        if endpoint.tunnels and endpoint.proxy_tls(context) is not None:
            raise ConfigError(
                "TLS within TLS, which an https proxy needs, is for AsyncClient: use an http proxy"
            )
        left = seconds_until(until)
        seconds = CONNECT_SECONDS if left is None else max(min(CONNECT_SECONDS, left), 0.001)
        if endpoint.is_socks:
            link = cls(_through_socks(endpoint, seconds), context)
        else:
            link = cls(dial(*endpoint.first_hop, seconds), context)
        try:
            prepare(link.sock)
            link.until = time.monotonic() + seconds if until is None else until
            if endpoint.through_proxy:
                link._begin_tls(endpoint.proxy_tls(context), endpoint.first_hop[0])
            if endpoint.tunnels:
                link._tunnel(endpoint)
            link._begin_tls(context, endpoint.server_name)
        except BaseException:
            link.close()
            raise
        return link

    def _begin_tls(self, context: ssl.SSLContext | None, name: str) -> None:
        if context is not None:
            self.sock.settimeout(self._left())
            self.sock = context.wrap_socket(self.sock, server_hostname=name)

    def _tunnel(self, endpoint: ServerAddress) -> None:
        self.send(endpoint.tunnel_head())
        answer = AnswerReader("CONNECT")
        while not answer.code:
            data = self.receive()
            answer.take(data) if data else answer.end()
        if answer.code >= 300:
            raise ConnectionError(f"the proxy refused to connect: it answered {answer.code}")

    def begin(self, until: float | None) -> None:
        """Begins a call that has to be done by then."""
        self.until = until
        if until is None:
            self.sock.settimeout(None)

    def flow(self, silence: float | None) -> None:
        """Begins a stream: from now on each silence has a limit."""
        self.until = None
        self.sock.settimeout(silence)

    def send(self, data: bytes) -> None:
        """Sends bytes. Raises OSError."""
        if self.until is not None:
            self.sock.settimeout(self._left())
        self.sock.sendall(data)

    def receive(self, size: int = CHUNK) -> bytes:
        """What came; empty at the end. Raises OSError."""
        if self.until is not None:
            self.sock.settimeout(self._left())
        try:
            return self.sock.recv(size)
        except ValueError:  # TLS says so of a socket that another thread has closed
            raise ConnectionError("the connection was closed") from None

    def _left(self) -> float | None:
        left = seconds_until(self.until)
        if left == 0.0:
            raise TimeoutError("timed out")
        return left

    def is_stale(self) -> bool:
        """Whether the server closed it, or said something unasked, while it lay in the pool."""
        return has_news(self.sock)

    def abort(self) -> None:
        """Closes it by RST."""
        end_by_reset(self.sock)
        self.sock.close()

    def close(self) -> None:
        """Closes it."""
        self.sock.close()

    def hang_up(self) -> None:
        """Closes it, from any thread; whoever waits for it is woken."""
        with contextlib.suppress(OSError):  # the other side may have closed it
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def wire(self, host: str, prefix: str, headers: list[tuple[str, str]]) -> Wire:
        """This connection for another protocol, whose handshake has these."""
        return Wire(self.sock, host, prefix, headers)


def _through_socks(endpoint: ServerAddress, seconds: float) -> socket.socket:
    """A connection made by a SOCKS5 proxy; the proxy looks up the name (``socks5h``), as curl and Go have it."""
    try:
        from python_socks import ProxyError, ProxyTimeoutError
        from python_socks.sync import Proxy
    except ImportError:
        raise ConfigError("a socks5 proxy needs: pip install 'kubewright[socks]'") from None
    proxy = Proxy.from_url(endpoint.socks_url, rdns=True)
    try:
        made: socket.socket = proxy.connect(endpoint.host, endpoint.port, timeout=seconds)
    except (ProxyError, ProxyTimeoutError) as error:
        raise ConnectionError(f"the proxy refused: {error}") from None
    return made


def current_credential(endpoint: ServerAddress, until: float | None) -> Credential:
    """The credential to use now."""
    return endpoint.credentials.current()


class Pool:
    """Links that wait for another request; safe to share between threads, whose number bounds that of calls."""

    def __init__(self, calls: int) -> None:
        self.idle: list[Link] = []
        self._lock = threading.Lock()
        self._closed = False

    def enter(self, until: float | None) -> None:
        """Does nothing: each call has a thread."""

    def leave(self) -> None:
        """Does nothing."""

    def take(self, endpoint: ServerAddress, context: ssl.SSLContext | None, until: float | None) -> Link:
        """A link to the server, for a call that has to be done by then. Raises as ``Link.open``."""
        while True:
            with self._lock:
                link = self.idle.pop() if self.idle else None
            if link is None:
                link = Link.open(endpoint, context, until)
            elif link.context is not context or link.is_stale():
                link.close()
                continue
            link.begin(until)
            return link

    def put_back(self, link: Link, keeps: bool) -> None:
        """Takes back a link whose exchange has ended."""
        with self._lock:
            if keeps and not self._closed and len(self.idle) < IDLE_CONNECTIONS:
                self.idle.append(link)
                return
        link.close()

    def give_up(self, link: Link) -> None:
        """Ends a link in the middle of an exchange, by RST."""
        link.abort()

    def hang_up(self, link: Link) -> None:
        """Ends a link in the middle of an exchange."""
        link.hang_up()

    def close(self) -> None:
        """Closes idle links; streams end by their own ``close``."""
        with self._lock:
            idle, self.idle, self._closed = self.idle, [], True
        for link in idle:
            link.close()


class Wire:
    """A connection that another protocol is spoken on. ``host``, ``prefix`` and ``headers`` are for its handshake."""

    def __init__(self, sock: socket.socket, host: str, prefix: str, headers: list[tuple[str, str]]) -> None:
        self.host, self.prefix, self.headers = host, prefix, headers
        # One thread may read while another writes, but OpenSSL takes one caller at a time: nobody waits in it.
        sock.setblocking(False)
        self._sock = sock
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting = 0
        self._closed = False

    def read(self) -> bytes:
        """What came; empty at the end. Raises ``TransportError``."""
        return self._do(partial(self._sock.recv, CHUNK), selectors.EVENT_READ)

    def write(self, data: bytes) -> None:
        """Sends bytes. Raises ``TransportError``."""
        with self._writing:
            sent = 0
            while sent < len(data):
                sent += self._do(partial(self._sock.send, memoryview(data)[sent:]), selectors.EVENT_WRITE)

    def _do(self, action: Callable[[], T], wanted: int) -> T:
        """Tries as often as the socket has to be waited for."""
        import ssl  # not at the top: see tls.py

        try:
            while True:
                with self._lock:
                    if self._closed:
                        raise ConnectionError("it was closed")
                    try:
                        return action()
                    except ssl.SSLWantReadError:
                        event = selectors.EVENT_READ
                    except ssl.SSLWantWriteError:
                        event = selectors.EVENT_WRITE
                    except BlockingIOError:
                        event = wanted
                    self._waiting += 1
                self._wait(event)
        except (OSError, ValueError) as error:
            raise TransportError(f"the connection broke: {error}", sent=True) from None

    def _wait(self, event: int) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._sock, event)
                selector.select()
        finally:
            with self._lock:
                self._waiting -= 1
                self._release()

    def close(self) -> None:
        """Ends it; from any thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                with contextlib.suppress(OSError):
                    self._sock.shutdown(socket.SHUT_RDWR)
                self._release()

    def _release(self) -> None:
        """Closes the socket once nobody waits for it: whoever did would never hear of it."""
        if self._closed and not self._waiting:
            self._sock.close()
