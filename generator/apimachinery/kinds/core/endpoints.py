"""Endpoints of services, whole and in slices. What is stored already and stays as it is is good."""

from __future__ import annotations

from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.core.services import endpoint_address
from apimachinery.kinds.fields import Json, numbered, struct
from apimachinery.meta.field_errors import duplicate, invalid_value, too_many
from apimachinery.meta.field_errors import required as required_error

_PROTOCOLS = ("SCTP", "TCP", "UDP")


def endpoints(value: Json, path: str, old: Json | None = None) -> Errors:
    """The endpoints of a service."""
    del path
    if old is not None and old.get("subsets") == value.get("subsets"):
        return
    for index, subset in numbered(value, "subsets"):
        place = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required_error(place, "must specify `addresses` or `notReadyAddresses`")
        for key in ("addresses", "notReadyAddresses"):
            for number, address in numbered(subset, key):
                yield from _address(address, f"{place}.{key}[{number}]")
        several = len(subset.get("ports") or ()) > 1
        for number, port in numbered(subset, "ports"):
            yield from _port(port, f"{place}.ports[{number}]", several)


def _address(address: Json, path: str) -> Errors:
    text = address.get("ip") or ""
    yield from checks.each_fault(text, f"{path}.ip", "ip")
    yield from checks.string_format(address.get("hostname"), f"{path}.hostname", "dns-label")
    if address.get("nodeName") is not None:
        yield from checks.each_fault(address["nodeName"], f"{path}.nodeName", "dns-subdomain")
    yield from endpoint_address(text, f"{path}.ip")


def _port(port: Json, path: str, several: bool) -> Errors:
    if several and not port.get("name"):
        yield required_error(f"{path}.name")
    yield from checks.string_format(port.get("name"), f"{path}.name", "dns-label")
    yield from checks.between(port.get("port") or 0, f"{path}.port", 1, 65535)
    yield from checks.must_be_one_of(port.get("protocol"), f"{path}.protocol", _PROTOCOLS)
    if port.get("appProtocol") is not None:
        yield from checks.each_fault(port["appProtocol"], f"{path}.appProtocol", "qualified-name")


def endpoint_slice(value: Json, path: str, old: Json | None = None) -> Errors:
    """A slice of endpoints: its kind of addresses, its ports, and up to 1000 endpoints."""
    del path
    kind = value.get("addressType")
    yield from checks.must_be_one_of(kind, "addressType", ("FQDN", "IPv4", "IPv6"))
    yield from _slice_ports(value)
    if old is None or old.get("endpoints") != value.get("endpoints"):
        yield from _slice_endpoints(value, kind)


def _slice_ports(value: Json) -> Errors:
    count = len(value.get("ports") or ())
    if count > 20000:
        yield too_many("ports", count, 20000)
        return
    seen = set()
    for index, port in numbered(value, "ports"):
        place, name = f"ports[{index}]", port.get("name") or ""
        yield from checks.string_format(name, f"{place}.name", "dns-label")
        if name in seen:
            yield duplicate(f"{place}.name", name)
        seen.add(name)
        yield from checks.must_be_one_of(port.get("protocol"), f"{place}.protocol", _PROTOCOLS, pointer=True)
        if port.get("appProtocol") is not None:
            yield from checks.each_fault(port["appProtocol"], f"{place}.appProtocol", "qualified-name")


def _slice_endpoints(value: Json, kind: Any) -> Errors:
    count = len(value.get("endpoints") or ())
    if count > 1000:
        yield too_many("endpoints", count, 1000)
        return
    for index, endpoint in numbered(value, "endpoints"):
        place = f"endpoints[{index}]"
        given = endpoint.get("addresses") or []
        if not given:
            yield required_error(f"{place}.addresses", "must contain at least 1 address")
        yield from checks.no_more_than(given, f"{place}.addresses", 100)
        for number, text in enumerate(given):
            yield from _slice_address(text, f"{place}.addresses", number, kind)
        if endpoint.get("nodeName") is not None:
            yield from checks.each_fault(endpoint["nodeName"], f"{place}.nodeName", "dns-subdomain")
        topology = endpoint.get("deprecatedTopology")
        yield from checks.no_more_than(topology, f"{place}.deprecatedTopology", 16)
        yield from checks.labels(topology, f"{place}.deprecatedTopology")
        if endpoint.get("hostname") is not None:
            yield from checks.each_fault(endpoint["hostname"], f"{place}.hostname", "dns-label")
        yield from _hints(struct(endpoint, "hints"), f"{place}.hints")


def _slice_address(text: str, path: str, index: int, kind: Any) -> Errors:
    place = f"{path}[{index}]"
    if kind == "FQDN":
        yield from checks.each_fault(text, place, "fully-qualified")
        return
    if kind not in ("IPv4", "IPv6"):
        return
    faults = list(checks.each_fault(text, place, "ip" if kind == "IPv4" else "canonical-ip"))
    yield from faults
    if faults:
        return
    if (":" in text) != (kind == "IPv6"):
        yield invalid_value(path, text, f"must be an {kind} address")
    yield from endpoint_address(text, place)


def _hints(hints: Json | None, path: str) -> Errors:
    for key, format in (("forZones", "label-value"), ("forNodes", "dns-subdomain")):
        count = len((hints or {}).get(key) or ())
        if count > 8:
            yield too_many(f"{path}.{key}", count, 8)
            return
        seen = set()
        for index, hint in numbered(hints or {}, key):
            place, name = f"{path}.{key}[{index}].name", hint.get("name") or ""
            if name in seen:
                yield duplicate(place, name)
            seen.add(name)
            yield from checks.each_fault(name, place, format)
