"""Ranges that numbers are given from: addresses of a network, ports of nodes.

Numbers that nobody asks for come from the upper part of a range, by chance, and from its beginning only when that is
full; so whoever wants a certain one finds it free at the beginning (KEP-3070, KEP-3668).
"""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from apimachinery.meta.addresses import Address, Network

ALLOCATED = "provided {} is already allocated"
FULL = "range is full"


class Unavailable(Exception):
    """A number that cannot be had; the text says why."""


def pick(first: int, last: int, reserved: int, taken: Callable[[int], bool]) -> int:
    """A number between ``first`` and ``last`` that is not taken, of the first ``reserved`` ones only where no other is
    left. Raises Unavailable."""
    begin = min(first + reserved, last + 1)
    if begin <= last:
        # From a random place: two servers that draw at once seldom draw the same number.
        start = begin + secrets.randbelow(last - begin + 1)
        for number in chain(range(start, last + 1), range(begin, start)):
            if not taken(number):
                return number
    for number in range(first, begin):
        if not taken(number):
            return number
    raise Unavailable(FULL)


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports of nodes, ``first`` to ``last``."""

    first: int = 30000
    last: int = 32767

    @property
    def reserved(self) -> int:
        """How many at the beginning are for those who ask for them: a 32nd, 16 to 128; none of a small range."""
        size = self.last - self.first + 1
        return 0 if size < 16 else min(max(16, size // 32), 128)

    def check(self, port: int) -> None:
        """Raises Unavailable for a port outside."""
        if not self.first <= port <= self.last:
            raise Unavailable(
                "provided port is not in the valid range. "
                f"The range of valid ports is {self.first}-{self.last}"
            )


_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5})|\+(\d{1,5}))?")


def parse_ports(text: str) -> Ports:
    """``30000-32767``, ``30000+100`` or one port. Raises ValueError."""
    found = _PORTS.fullmatch(text.strip())
    if found is not None:
        first = int(found[1])
        last = int(found[2]) if found[2] else first + int(found[3] or 0)
        if 0 < first <= last <= 65535:
            return Ports(first, last)
    raise ValueError(f"{text!r} is no range of ports; use FIRST-LAST, such as 30000-32767")


def parse_networks(text: str) -> tuple[Network, ...]:
    """One network, or two of different families with a comma, first choice first. Raises ValueError."""
    try:
        found = tuple(ipaddress.ip_network(part.strip(), strict=False) for part in text.split(","))
    except ValueError as fault:
        raise ValueError(f"{text!r}: {fault}") from None
    if len(found) > 2 or len({network.version for network in found}) != len(found):
        raise ValueError(f"{text!r}: give one network, or one of IPv4 and one of IPv6")
    for network in found:
        if network.num_addresses < 8:
            raise ValueError(f"{network} has fewer than 8 addresses")
        if network.version == 4 and network.prefixlen < 12:
            raise ValueError(f"{network} is too large: at most 20 bits may be left for services")
        if network.version == 6 and network.prefixlen < 64:
            raise ValueError(f"{network} is too large: its prefix has at least 64 bits")
    return found


def usable(network: Network) -> tuple[int, int]:
    """First and last address that a service can have: not the network itself, nor what reaches everybody in it."""
    first, last = int(network.network_address), int(network.broadcast_address)
    # IPv6 has no broadcast address.
    return first + 1, last - 1 if network.version == 4 else last


def reserved_in(network: Network) -> int:
    """How many addresses at the beginning are for those who ask for them: a 16th, 16 to 256; none of a small range."""
    size = network.num_addresses
    return 0 if size < 16 else min(max(16, size // 16), 256)


def first_of(network: Network) -> str:
    """The first address that a service can have."""
    return str(network.network_address + 1)


def holds(network: Network, address: Address) -> bool:
    """Whether a service can have an address of this network."""
    if address.version != network.version:
        return False
    first, last = usable(network)
    return first <= int(address) <= last
