"""Checks of services: ports, addresses and what the type of a service asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apimachinery.meta.field_errors import FieldError, duplicate, forbidden, invalid_value
from apimachinery.meta.field_errors import required as required_error
from apimachinery.rules import checks
from apimachinery.rules.fields import Json, items, numbered, struct

Errors = Iterator[FieldError]


def ports(value: Json, path: str) -> Errors:
    """A service has ports unless it is headless or a name only; several are named; none is there twice."""
    del path
    spec = struct(value, "spec") or {}
    given = list(items(spec, "ports"))
    if not given and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        yield required_error("spec.ports")
    seen_names, seen_ports = set(), set()
    for index, port in numbered(spec, "ports"):
        place = f"spec.ports[{index}]"
        name = port.get("name")
        if not name and len(given) > 1:
            yield required_error(f"{place}.name")
        elif name and name in seen_names:
            yield duplicate(f"{place}.name", name)
        seen_names.add(name)
        pair = (port.get("protocol"), port.get("port"))
        if pair in seen_ports:
            shown = {
                "Name": "",
                "Protocol": pair[0],
                "AppProtocol": None,
                "Port": pair[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(place, shown)
        seen_ports.add(pair)


def addresses(value: Json, path: str) -> Errors:
    """What each type of service may say about its addresses."""
    del path
    spec = struct(value, "spec") or {}
    kind, address = spec.get("type"), spec.get("clusterIP")
    if kind == "ExternalName":
        if address:
            yield forbidden("spec.clusterIPs[0]", "may not be set for ExternalName services")
        name = spec.get("externalName")
        if name:
            yield from checks.string_format(name.removesuffix("."), "spec.externalName", "dns-subdomain")
        else:
            yield required_error("spec.externalName")
        return
    if address == "None":
        if kind in ("LoadBalancer", "NodePort"):
            yield invalid_value("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    elif address:
        yield from checks.string_format(address, "spec.clusterIPs[0]", "ip")
    if kind == "ClusterIP":
        for index, port in numbered(spec, "ports"):
            if port.get("nodePort"):
                yield forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
    if spec.get("externalTrafficPolicy") and kind == "ClusterIP" and not spec.get("externalIPs"):
        yield invalid_value(
            "spec.externalTrafficPolicy",
            spec["externalTrafficPolicy"],
            "may only be set for externally-accessible services",
        )


def kept_address(value: Any, path: str, old: Any) -> Errors:
    """The address of a service, once it has one, stays."""
    del path
    if old and value and value != old:
        yield invalid_value("spec.clusterIPs[0]", [value], "may not change once set")
