"""IP addresses and CIDRs.

As Go's net/netip reads them, with two refusals of Kubernetes: zones, and IPv4 addresses mapped into IPv6.
The texts of errors are those that users of kube-apiserver see.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, ClassVar

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.values import Opaque

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class IP(Opaque):
    """``net.IP``."""

    __slots__ = ("address",)
    type_name: ClassVar[str] = "net.IP"

    def __init__(self, address: Address):
        self.address = address

    def equals(self, other: Any) -> bool:
        """By value."""
        return bool(self.address == other.address)

    def cost_size(self) -> int:
        """Bytes of the address."""
        return self.address.max_prefixlen // 8

    def __str__(self) -> str:
        return str(self.address)


class CIDR(Opaque):
    """``net.CIDR``: an address and the length of a prefix."""

    __slots__ = ("address", "length")
    type_name: ClassVar[str] = "net.CIDR"

    def __init__(self, address: Address, length: int):
        self.address = address
        self.length = length

    def equals(self, other: Any) -> bool:
        """By address and length."""
        return bool(self.address == other.address) and self.length == other.length

    def cost_size(self) -> int:
        """Bytes of the prefix, rounded up."""
        return -(-self.length // 8)

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """The masked network."""
        return ipaddress.ip_network((self.address, self.length), strict=False)

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"


def _quoted(text: str) -> str:
    from .strings import quote

    return quote(text)


class AddressError(ValueError):
    """A text that is not an address; the message is netip's."""


def parse_address(text: str) -> Address:
    """Read an address; AddressError."""
    for char in text:
        if char == ".":
            return _ipv4(text)
        if char == ":":
            return _ipv6(text)
        if char == "%":
            raise AddressError(f"ParseAddr({_quoted(text)}): missing IPv6 address")
    raise AddressError(f"ParseAddr({_quoted(text)}): unable to parse IP")


def _fault(text: str, message: str, at: str = "") -> AddressError:
    return AddressError(f"ParseAddr({_quoted(text)}): {message}" + (f" (at {_quoted(at)})" if at else ""))


def _ipv4(text: str) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(bytes(_octets(text, text)))


def _octets(text: str, part: str) -> list[int]:
    """The four numbers of ``part``, which is ``text`` or its end."""
    fields: list[int] = []
    digits, value = 0, 0
    for place, char in enumerate(part):
        if char in "0123456789":
            # Some take such a number for an octal one, and so for another address (CVE-2021-29923).
            if digits == 1 and value == 0:
                raise _fault(text, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(char), digits + 1
            if value > 255:
                raise _fault(text, "IPv4 field has value >255")
        elif char == ".":
            if place == 0 or place == len(part) - 1 or part[place - 1] == ".":
                raise _fault(text, "IPv4 field must have at least one digit", part[place:])
            if len(fields) == 3:
                raise _fault(text, "IPv4 address too long")
            fields.append(value)
            value, digits = 0, 0
        else:
            raise _fault(text, "unexpected character", part[place:])
    if len(fields) < 3:
        raise _fault(text, "IPv4 address too short")
    return [*fields, value]


_HEX = re.compile(r"[0-9a-fA-F]*", re.ASCII)


def _ipv6(text: str) -> ipaddress.IPv6Address:
    left, percent, zone = text.partition("%")
    if percent and not zone:
        raise _fault(text, "zone must be a non-empty string")
    groups: list[int] = []
    gap = -1  # how many groups are before the ``::``
    if left.startswith("::"):
        gap, left = 0, left[2:]
    while left and len(groups) < 8:
        found = _HEX.match(left)
        assert found
        digits = found.group()
        if len(digits) > 4:
            raise _fault(text, "each group must have 4 or less digits", left)
        if not digits:
            raise _fault(text, "each colon-separated field must have at least one digit", left)
        after = left[len(digits) :]
        if after.startswith("."):
            if gap < 0 and len(groups) != 6:
                message = "embedded IPv4 address must replace the final 2 fields of the address"
                raise _fault(text, message, left)
            if len(groups) > 6:
                message = "too many hex fields to fit an embedded IPv4 at the end of the address"
                raise _fault(text, message, left)
            one, two, three, four = _octets(text, left)
            groups += [one << 8 | two, three << 8 | four]
            left = ""
            break
        groups.append(int(digits, 16))
        left, more = _next_group(text, after, gap)
        if more:
            gap = len(groups)
    if left:
        raise _fault(text, "trailing garbage after address", left)
    if len(groups) < 8 and gap < 0:
        raise _fault(text, "address string too short")
    if len(groups) == 8 and gap >= 0:
        raise _fault(text, "the :: must expand to at least one field of zeros")
    if gap >= 0:
        groups[gap:gap] = [0] * (8 - len(groups))
    # Last: of an address that is bad otherwise, netip says that first.
    if zone:
        raise ZoneError("")
    return ipaddress.IPv6Address(b"".join(group.to_bytes(2, "big") for group in groups))


def _next_group(text: str, after: str, gap: int) -> tuple[str, bool]:
    """What follows the colon behind a group, and whether that colon is the first of ``::``."""
    if not after:
        return "", False
    if after[0] != ":":
        raise _fault(text, "unexpected character, want colon", after)
    if len(after) == 1:
        raise _fault(text, "colon must be followed by more characters", after)
    if after[1] != ":":
        return after[1:], False
    if gap >= 0:
        raise _fault(text, "multiple :: in address", after[1:])
    return after[2:], True


class ZoneError(AddressError):
    """An address with a zone."""


def _kubernetes_address(text: str) -> Address:
    try:
        address = parse_address(text)
    except ZoneError:
        raise EvalError(f"IP address {_quoted(text)} with zone value is not allowed") from None
    except AddressError as error:
        raise EvalError(
            f"IP Address {_quoted(text)} parse error during conversion from string: {error}"
        ) from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvalError(f"IPv4-mapped IPv6 address {_quoted(text)} is not allowed")
    return address


def _ip(text: str) -> IP:
    return IP(_kubernetes_address(text))


def _is_ip(text: str) -> bool:
    try:
        _kubernetes_address(text)
    except EvalError:
        return False
    return True


def canonical(address: Address) -> str:
    """The canonical text, RFC 5952."""
    return str(address)


def _is_canonical(text: str) -> bool:
    return canonical(_kubernetes_address(text)) == text


def _link_local_multicast(ip: IP) -> bool:
    address = ip.address
    if isinstance(address, ipaddress.IPv4Address):
        return address in _V4_LINK_MULTICAST
    # The scope is the low half of the second byte; flags, the high half, may be any (RFC 4291 §2.7).
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 2


_V4_LINK_MULTICAST = ipaddress.IPv4Network("224.0.0.0/24")


def _global_unicast(ip: IP) -> bool:
    address = ip.address
    if isinstance(address, ipaddress.IPv4Address) and int(address) in (0, 2**32 - 1):
        return False
    # As Go's netip: private addresses are global unicast too.
    plain = address.is_unspecified or address.is_loopback or address.is_multicast
    return not (plain or _link_local_unicast(ip))


def _link_local_unicast(ip: IP) -> bool:
    return ip.address.is_link_local


def ips() -> Library:
    """``ip``, ``isIP`` and what is asked of an address."""
    lib = Library("ip")
    lib.declare_type("ip", t.opaque("net.IP"), IP)
    lib.overload("ip", "string_to_ip", "(string) ip", _ip)
    lib.overload("string", "ip_to_string", "(ip) string", str)
    lib.overload("isIP", "is_ip", "(string) bool", _is_ip)
    lib.overload("ip.isCanonical", "ip_is_canonical", "(string) bool", _is_canonical)
    lib.overload("family", "ip_family", "ip.() int", lambda ip: ip.address.version)
    lib.overload("isUnspecified", "ip_is_unspecified", "ip.() bool", lambda ip: ip.address.is_unspecified)
    lib.overload("isLoopback", "ip_is_loopback", "ip.() bool", lambda ip: ip.address.is_loopback)
    lib.overload("isLinkLocalMulticast", "ip_is_link_local_multicast", "ip.() bool", _link_local_multicast)
    lib.overload("isLinkLocalUnicast", "ip_is_link_local_unicast", "ip.() bool", _link_local_unicast)
    lib.overload("isGlobalUnicast", "ip_is_global_unicast", "ip.() bool", _global_unicast)
    return lib


def parse_cidr(text: str) -> CIDR:
    """Read ``address/length``; EvalError."""
    prefix = "network address parse error during conversion from string"

    def fail(message: str) -> EvalError:
        # Twice, since kube-apiserver wraps what its own parser has wrapped already.
        return EvalError(f"{prefix}: {prefix}: netip.ParsePrefix({_quoted(text)}): {message}")

    slash = text.rfind("/")
    if slash < 0:
        raise fail("no '/'")
    try:
        address = parse_address(text[:slash])
    except ZoneError:
        raise fail("IPv6 zones cannot be present in a prefix") from None
    except AddressError as error:
        raise fail(str(error)) from None
    bits = text[slash + 1 :]
    # strconv.Atoi alone would take a sign and leading zeros; netip checks for them first.
    if not bits or not set(bits) <= set("0123456789") or (len(bits) > 1 and bits[0] == "0"):
        raise fail(f"bad bits after slash: {_quoted(bits)}")
    if len(bits) > 3 or int(bits) > address.max_prefixlen:
        raise fail("prefix length out of range")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvalError(f"IPv4-mapped IPv6 address {_quoted(text)} is not allowed")
    return CIDR(address, int(bits))


def _is_cidr(text: str) -> bool:
    try:
        parse_cidr(text)
    except EvalError:
        return False
    return True


def _contains_ip(cidr: CIDR, other: IP | str) -> bool:
    if isinstance(other, str):
        try:
            address = _kubernetes_address(other)
        except EvalError:
            raise EvalError("no such overload") from None
    else:
        address = other.address
    return address in cidr.network


def _contains_cidr(cidr: CIDR, other: CIDR | str) -> bool:
    if isinstance(other, str):
        try:
            other = parse_cidr(other)
        except EvalError:
            raise EvalError("no such overload") from None
    if other.address.version != cidr.address.version:
        return False
    return other.address in cidr.network and other.length >= cidr.length


def _masked(cidr: CIDR) -> CIDR:
    return CIDR(cidr.network.network_address, cidr.length)


def cidrs() -> Library:
    """``cidr``, ``isCIDR`` and what is asked of a network."""
    lib = Library("cidr")
    lib.declare_type("ip", t.opaque("net.IP"), IP)
    lib.declare_type("cidr", t.opaque("net.CIDR"), CIDR)
    lib.overload("cidr", "string_to_cidr", "(string) cidr", parse_cidr)
    lib.overload("string", "cidr_to_string", "(cidr) string", str)
    lib.overload("isCIDR", "is_cidr", "(string) bool", _is_cidr)
    lib.overload("containsIP", "cidr_contains_ip_string", "cidr.(string) bool", _contains_ip)
    lib.overload("containsIP", "cidr_contains_ip_ip", "cidr.(ip) bool", _contains_ip)
    lib.overload("containsCIDR", "cidr_contains_cidr_string", "cidr.(string) bool", _contains_cidr)
    lib.overload("containsCIDR", "cidr_contains_cidr", "cidr.(cidr) bool", _contains_cidr)
    lib.overload("ip", "cidr_ip", "cidr.() ip", lambda cidr: IP(cidr.address))
    lib.overload("masked", "cidr_masked", "cidr.() cidr", _masked)
    lib.overload("prefixLength", "cidr_prefix_length", "cidr.() int", lambda cidr: cidr.length)
    return lib
