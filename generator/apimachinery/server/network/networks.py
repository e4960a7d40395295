"""Which addresses this server may connect to because an object names them.

Whoever may write a Pod's status or an EndpointSlice chooses these addresses, so nothing is allowed unless the operator
names its network. Addresses that mean this machine or its link (loopback, link-local, where clouds keep credentials,
multicast, unspecified) are allowed only by a network that holds nothing else; 0.0.0.0/0 does not allow them. Names are
never resolved: only literal addresses count, so an answer of DNS cannot lead elsewhere.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_SPECIAL: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/128",
        "::1/128",
        "fe80::/10",
        "ff00::/8",
    )
)


def parse_network(text: str) -> Network:
    """A network in CIDR form. Raises ValueError."""
    return ipaddress.ip_network(text.strip(), strict=False)


class AllowedNetworks:
    """The networks that an operator has named."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = tuple(networks)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def allows(self, host: str) -> bool:
        """Whether a literal address may be connected to."""
        try:
            address: _Address = ipaddress.ip_address(host)
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address):
            if address.scope_id:
                return False
            address = address.ipv4_mapped or address.sixtofour or address
        special = next((network for network in _SPECIAL if _within(address, network)), None)
        return any(
            _within(address, network) and (special is None or _below(network, special))
            for network in self._networks
        )


def _within(address: _Address, network: Network) -> bool:
    return address.version == network.version and address in network


def _below(network: Network, other: Network) -> bool:
    if isinstance(network, ipaddress.IPv4Network) and isinstance(other, ipaddress.IPv4Network):
        return network.subnet_of(other)
    if isinstance(network, ipaddress.IPv6Network) and isinstance(other, ipaddress.IPv6Network):
        return network.subnet_of(other)
    return False
