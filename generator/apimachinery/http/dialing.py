"""Connections to hosts that have several addresses (RFC 8305, "happy eyeballs"), for threads; ``async_dialing`` has the
same for asyncio.

An address that answers nothing must not hold up the others: each has a head start before the next is tried as well, and
the first connection that is made is used. An address that refuses is followed by the next at once. IPv6 and IPv4 take
turns, beginning with what the system prefers (RFC 6724).
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import time
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Final, TypeAlias

HEAD_START: Final = 0.25
"""Seconds; what section 5 of the RFC recommends."""

Address: TypeAlias = tuple[Any, ...]
"""As ``socket.getaddrinfo`` gives it."""


def dial(host: str, port: int, seconds: float) -> socket.socket:
    """Connects within so many seconds. Raises OSError: that of the last address that failed."""
    left = taking_turns(socket.getaddrinfo(as_sent(host), port, type=socket.SOCK_STREAM))
    until = time.monotonic() + seconds
    failure = OSError(f"{host} has no address")
    trying: set[socket.socket] = set()
    try:
        with selectors.DefaultSelector() as selector:
            while left or trying:
                if left:
                    try:
                        # Refused at once (no route, no such family): the next address needs no head start.
                        sock = _begin(left.pop(0))
                    except OSError as error:
                        failure = error
                        continue
                    trying.add(sock)
                    selector.register(sock, selectors.EVENT_WRITE)
                rest = max(until - time.monotonic(), 0.0)
                for key, _ in selector.select(min(rest, HEAD_START) if left else rest):
                    selector.unregister(sock := key.fileobj)  # type: ignore[assignment]
                    trying.remove(sock)
                    # A socket is writable after a failure too; the error is read off the socket.
                    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if not code:
                        sock.settimeout(seconds)
                        return sock
                    sock.close()
                    failure = OSError(code, os.strerror(code))
                if time.monotonic() >= until:
                    raise TimeoutError("timed out")
    finally:
        for sock in trying:
            sock.close()
    raise failure


def _begin(address: Address) -> socket.socket:
    """A socket that connects. Raises OSError for what fails at once."""
    sock = socket_for(address)
    code = sock.connect_ex(address[4])
    if code not in (0, errno.EINPROGRESS, errno.EWOULDBLOCK):
        sock.close()
        raise OSError(code, os.strerror(code))
    return sock


def taking_turns(addresses: Sequence[Address]) -> list[Address]:
    """Returns addresses in the order of tries: families take turns, each in the order given."""
    families: dict[int, list[Address]] = {}
    for address in addresses:
        families.setdefault(address[0], []).append(address)
    return [each for turn in zip_longest(*families.values()) for each in turn if each is not None]


def socket_for(address: Address) -> socket.socket:
    """Makes the socket that connects to an address, which does not block. Raises OSError."""
    sock = socket.socket(*address[:3])
    sock.setblocking(False)
    return sock


def as_sent(host: str) -> bytes:
    """Returns a host as it is looked up. As bytes: a str would load Python's codec for international names, a megabyte
    of tables. Raises OSError."""
    try:
        return host.encode("ascii" if host.isascii() else "idna")
    except UnicodeError as error:
        raise OSError(f"{host!r} is no host name: {error}") from None
