"""Ports on loopback for programs that are told where to listen, and listen later."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000
# Where systems other than Linux begin to draw ports of their own (RFC 6335, section 6).
_EPHEMERAL = 49_152


def free_ports(number: int) -> list[int]:
    """Draw ``number`` different ports that nobody listens on.

    They lie below the range from which the system draws ports for connections: one of that range
    can be taken by any connection of any process before the program listens.
    """
    # Seeded tests of two processes would draw the same ports in the same order.
    source = random.SystemRandom()
    drawn: dict[int, socket.socket] = {}
    try:
        while len(drawn) < number:
            candidate = socket.socket()
            try:
                candidate.bind(("127.0.0.1", source.randrange(_LOWEST, _lowest_ephemeral())))
            except OSError:
                candidate.close()
                continue
            drawn[candidate.getsockname()[1]] = candidate
        return list(drawn)
    finally:
        for each in drawn.values():
            each.close()


def _lowest_ephemeral() -> int:
    """Say where the system's own ports begin; a range set too low to draw below it is ignored."""
    try:
        lowest = int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _EPHEMERAL
    return lowest if lowest > _LOWEST + 1_000 else _EPHEMERAL
