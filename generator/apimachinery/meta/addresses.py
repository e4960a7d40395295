"""IP addresses and blocks of them, as Go reads them and as Kubernetes lets new objects write them.

Theory. Go's old parser takes IPv4 octets with leading zeros and IPv4 addresses written as IPv6; other software reads
those otherwise, so new values must not be written so (KEP-4858). *Legacy* fields take any other spelling of an
address, fields since then its canonical form only (RFC 5952). A value that is stored already stays good.
"""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NO_BLOCK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


class Parsed(NamedTuple):
    """An address (IPv4 where it is one, however it is written) and what is odd about its spelling."""

    address: Address
    leading_zeros: bool
    mapped: bool


class ParsedBlock(NamedTuple):
    """A block, what is odd about its spelling, and whether bits are set beyond its prefix."""

    network: Network
    leading_zeros: bool
    mapped: bool
    has_host: bool


def parse_ip(text: str) -> Parsed | None:
    """What Go's lenient parser reads, ``None`` where it reads nothing."""
    zeros = False
    head, colon, tail = text.rpartition(":")
    if "." in tail:
        octets = tail.split(".")
        if not all(octet.isascii() and octet.isdigit() for octet in octets):
            return None
        zeros = any(len(octet) > 1 and octet[0] == "0" for octet in octets)
        text = head + colon + ".".join(octet.lstrip("0") or "0" for octet in octets)
    if "%" in text:
        return None
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    plain = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return Parsed(plain or address, zeros, plain is not None)


def parse_cidr(text: str) -> ParsedBlock | None:
    """What Go's lenient parser reads, ``None`` where it reads nothing."""
    head, slash, tail = text.partition("/")
    parsed = parse_ip(head)
    if parsed is None or not slash or not (tail.isascii() and tail.isdigit()):
        return None
    length, zeros = int(tail), len(tail) > 1 and tail[0] == "0"
    if parsed.mapped:
        length -= 96
    if not 0 <= length <= parsed.address.max_prefixlen:
        return None
    network = ipaddress.ip_network((parsed.address, length), strict=False)
    has_host = network.network_address != parsed.address
    return ParsedBlock(network, parsed.leading_zeros or zeros, parsed.mapped, has_host)


def legacy_ip_faults(text: str) -> list[str]:
    """What is wrong with an address in a field of old, where it is not stored already."""
    parsed = parse_ip(text)
    if parsed is None:
        return [NO_ADDRESS]
    if parsed.leading_zeros:
        return ["must not have leading 0s"]
    return ["must not be an IPv4-mapped IPv6 address"] if parsed.mapped else []


def ip_faults(text: str) -> list[str]:
    """What is wrong with an address that must be in canonical form."""
    if faults := legacy_ip_faults(text):
        return faults
    canonical = str(ipaddress.ip_address(text))
    return [] if text == canonical else [f'must be in canonical form ("{canonical}")']


def legacy_cidr_faults(text: str) -> list[str]:
    """What is wrong with a block in a field of old, where it is not stored already."""
    parsed = parse_cidr(text)
    if parsed is None:
        return [NO_BLOCK]
    if parsed.leading_zeros:
        return ["must not have leading 0s in IP or prefix length"]
    if parsed.mapped:
        return ["must not have an IPv4-mapped IPv6 address"]
    return ["must not have bits set beyond the prefix length"] if parsed.has_host else []


def cidr_faults(text: str) -> list[str]:
    """What is wrong with a block that must be in canonical form."""
    if faults := legacy_cidr_faults(text):
        return faults
    parsed = parse_cidr(text)
    assert parsed is not None
    canonical = str(parsed.network)
    return [] if text == canonical else [f'must be in canonical form ("{canonical}")']


def interface_faults(text: str) -> list[str]:
    """What is wrong with an address and the length of its network, in canonical form."""
    parsed = parse_cidr(text)
    if parsed is None:
        return ["must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"]
    address = parse_ip(text.partition("/")[0])
    assert address is not None
    canonical = f"{address.address}/{parsed.network.prefixlen}"
    return [] if text == canonical else [f'must be in canonical form ("{canonical}")']


def is_ipv6(text: str) -> bool:
    """Whether a text is an IPv6 address."""
    parsed = parse_ip(text)
    return parsed is not None and parsed.address.version == 6
