"""A listener for TLS: what a connection takes is counted from when it is accepted.

An event loop that does TLS for a listener says nothing of a connection before its handshake is done, and one that is
half done takes more memory than one that idles. So connections are accepted here: where there is no room for one it is
closed at once, and a handshake that takes longer than ``HANDSHAKE_SECONDS`` ends.

What they weigh was measured over 1,000 connections, in KiB each (CPython 3.11, OpenSSL 3, x86-64): under uvloop 53 half
done, 33 idle after a request; under asyncio's own loop 307 and 275, since it keeps a buffer of 256 KiB for each. Once
much has come at once, buffers stay that large: up to 590 (``protocol.TLS_LARGE_BYTES``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Sequence
from itertools import chain
from typing import Any, Protocol

from apimachinery.http.protocol import Connections, HttpConnection
from apimachinery.http.tls import HANDSHAKE_SECONDS

log = logging.getLogger("kubewright.server")

UVLOOP_BYTES, ASYNCIO_BYTES = 64 << 10, 320 << 10
RETRY_SECONDS = 1.0
BACKLOG = 1024


def tls_bytes(loop: asyncio.AbstractEventLoop) -> int:
    """What a connection over TLS takes at most while nothing comes or goes."""
    return UVLOOP_BYTES if type(loop).__module__.startswith("uvloop") else ASYNCIO_BYTES


class Listening(Protocol):
    """What accepts connections on sockets."""

    @property
    def sockets(self) -> Sequence[socket.socket]:
        """Where."""

    def close(self) -> None:
        """Accepts nothing more."""

    async def wait_closed(self) -> None:
        """Waits until nothing is accepted any more."""


async def bound_sockets(host: str, port: int, number: int = 1) -> list[list[socket.socket]]:
    """Sockets on all addresses of a host, that do not listen yet; several times the same ones, so that as many
    processes may listen, among which the kernel shares connections (SO_REUSEPORT). Raises OSError, also where another
    program listens there, which the kernel would share them with too."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    places = list(dict.fromkeys(found))
    sockets: list[list[socket.socket]] = []
    # A trial without SO_REUSEPORT fails where another program listens, as it should.
    try:
        if number > 1 and port:
            for each in [_bound(family, address) for family, _, _, _, address in places]:
                each.close()
        for _ in range(number):
            own: list[socket.socket] = []
            sockets.append(own)
            for family, _, _, _, address in places:
                own.append(_bound(family, (address[0], port, *address[2:]), several=number > 1))
                if number > 1:
                    # Port 0: the kernel draws one for the first socket, and all others must have the same.
                    port = port or own[-1].getsockname()[1]
    except OSError:
        for each in chain.from_iterable(sockets):
            each.close()
        raise
    return sockets


def _bound(family: int, address: tuple[Any, ...], *, several: bool = False) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        # A server that restarts must not wait for the TIME_WAIT of its old connections.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if several:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            # Separate sockets for IPv4 and IPv6: otherwise the IPv6 one takes both, and binding the other fails.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setblocking(False)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


class TlsListener:
    """Listens on sockets, as ``asyncio.Server`` does."""

    def __init__(
        self, connections: Connections, context: ssl.SSLContext, sockets: list[socket.socket]
    ) -> None:
        """``sockets`` are bound. Raises OSError where they cannot listen."""
        self._connections = connections
        self._context = context
        self.sockets = sockets
        try:
            for each in sockets:
                each.listen(BACKLOG)
        except OSError:
            for each in sockets:
                each.close()
            raise
        loop = asyncio.get_running_loop()
        self._weight = tls_bytes(loop)
        self._accepting = [loop.create_task(self._accept(each)) for each in sockets]
        self._handshakes: set[asyncio.Task[None]] = set()

    @classmethod
    async def on(cls, connections: Connections, context: ssl.SSLContext, host: str, port: int) -> TlsListener:
        """Listens on all addresses of a host. Raises OSError."""
        (sockets,) = await bound_sockets(host, port)
        return cls(connections, context, sockets)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except ConnectionError:
                continue  # it went before it was accepted
            except OSError as fault:
                # Too many open files, for example: accepting goes on when some have been closed.
                log.warning("cannot accept connections", extra={"reason": str(fault)})
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if not self._connections.governor.connections.take(self._weight):
                accepted.close()
                continue
            accepted.setblocking(False)
            with contextlib.suppress(OSError):
                # Answers are written whole; Nagle's algorithm would hold the last packet back for an
                # acknowledgement.
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = loop.create_task(self._shake(accepted))
            # asyncio keeps only weak references to tasks.
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    async def _shake(self, accepted: socket.socket) -> None:
        connection = HttpConnection(self._connections, self._weight)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
            )
        except OSError:
            pass  # the client went, took too long, or what it speaks is no TLS
        finally:
            connection.never_made()

    def leave(self) -> None:
        """Accepts nothing more; what is in its handshake goes on."""
        for task in self._accepting:
            task.cancel()
        for each in self.sockets:
            each.close()

    def close(self) -> None:
        """Accepts nothing more, and ends what is in its handshake."""
        for task in (*self._accepting, *self._handshakes):
            task.cancel()
        for each in self.sockets:
            each.close()

    async def wait_closed(self) -> None:
        """Waits until nothing is accepted any more."""
        await asyncio.gather(*self._accepting, *self._handshakes, return_exceptions=True)


class PlainListener:
    """Listens without TLS on sockets that are bound."""

    def __init__(self, servers: list[asyncio.Server]) -> None:
        self._servers = servers
        self.sockets = [each for server in servers for each in server.sockets]

    @classmethod
    async def on(cls, connections: Connections, sockets: list[socket.socket]) -> PlainListener:
        """Listens. Raises OSError."""
        loop = asyncio.get_running_loop()
        return cls([await loop.create_server(connections, sock=each, backlog=BACKLOG) for each in sockets])

    def leave(self) -> None:
        """Accepts nothing more; connections go on."""
        for each in self._servers:
            each.close()

    close = leave

    async def wait_closed(self) -> None:
        """Waits until nothing is accepted any more."""
        for each in self._servers:
            await each.wait_closed()


async def listen_on(
    connections: Connections, context: ssl.SSLContext | None, sockets: list[socket.socket]
) -> TlsListener | PlainListener:
    """Listens on sockets that are bound. Raises OSError."""
    if context is not None:
        return TlsListener(connections, context, sockets)
    return await PlainListener.on(connections, sockets)
