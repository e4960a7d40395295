"""Services: ports, addresses, and what the type of a service asks for.

A service is a union that its ``type`` decides, with fields that grew over the years. What is stored already stays
good where rules became stricter: so most checks get the stored service too.
"""

from __future__ import annotations

from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    numbered,
    struct,
)
from apimachinery.kinds.gates import enabled
from apimachinery.meta import addresses
from apimachinery.meta.field_errors import duplicate, forbidden, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.printing import InOrder

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_HINTS = "service.kubernetes.io/topology-aware-hints"
_MODE = "service.kubernetes.io/topology-mode"
_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_OF_BALANCERS = "may only be used when `type` is 'LoadBalancer'"
_ONE_A_FAMILY = "may specify no more than one IP for each IP family"


def service(value: Json, path: str, old: Json | None = None) -> Errors:
    """A service, next to the stored one where there is one."""
    del path
    spec, before = struct(value, "spec") or {}, struct(old or {}, "spec") or {}
    annotations = lookup(value, "metadata", "annotations") or {}
    if _MODE in annotations and _HINTS in annotations and annotations[_MODE] != annotations[_HINTS]:
        detail = f"must match annotations[{_HINTS}] when both are specified"
        yield invalid_value(f"metadata.annotations[{_MODE}]", annotations[_MODE], detail)
    yield from _of_type(spec)
    yield from _ports(spec)
    yield from checks.labels(spec.get("selector"), "spec.selector")
    yield from _affinity(spec)
    yield from cluster_addresses(spec, before)
    yield from _external_addresses(spec, before)
    yield from checks.must_be_one_of(spec.get("type"), "spec.type", _TYPES)
    yield from _node_ports(spec)
    yield from _source_ranges(spec, before, annotations, lookup(old, "metadata", "annotations") or {})
    yield from _balancer(spec)
    yield from _traffic(spec)


def _headless(spec: Json) -> bool:
    return spec.get("clusterIPs") == ["None"]


def _of_type(spec: Json) -> Errors:
    kind, headless = spec.get("type"), _headless(spec)
    if not spec.get("ports") and not headless and kind != "ExternalName":
        yield required_error("spec.ports")
    if kind in ("LoadBalancer", "NodePort") and headless:
        yield invalid_value("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind != "ExternalName":
        return
    for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(key) or spec.get(key) == "":
            yield forbidden(f"spec.{key}", "may not be set for ExternalName services")
    name = (spec.get("externalName") or "").removesuffix(".")
    if name:
        yield from checks.each_fault(name, "spec.externalName", "dns-subdomain")
    else:
        yield required_error("spec.externalName")


def _ports(spec: Json) -> Errors:
    """Several ports have names; no pair of protocol and port is there twice."""
    several, names, pairs = len(spec.get("ports") or ()) > 1, set(), set()
    for index, port in numbered(spec, "ports"):
        place, name = f"spec.ports[{index}]", port.get("name")
        if name:
            yield from checks.each_fault(name, f"{place}.name", "dns-label")
            if name in names:
                yield duplicate(f"{place}.name", name)
            names.add(name)
        elif several:
            yield required_error(f"{place}.name")
        yield from checks.between(port.get("port") or 0, f"{place}.port", 1, 65535)
        allowed = ("SCTP", "TCP", "UDP")
        yield from checks.must_be_one_of(port.get("protocol"), f"{place}.protocol", allowed)
        yield from checks.port_or_name(port.get("targetPort"), f"{place}.targetPort")
        if port.get("appProtocol") is not None:
            yield from checks.each_fault(port["appProtocol"], f"{place}.appProtocol", "qualified-name")
        pair = (port.get("protocol") or "", port.get("port") or 0)
        if pair in pairs:
            # kube-apiserver compares, and so shows, ports that have nothing but these two fields.
            yield duplicate(place, InOrder(_go_port(*pair)))
        pairs.add(pair)


def _go_port(protocol: str, port: int) -> Json:
    return {
        "Name": "",
        "Protocol": protocol,
        "AppProtocol": None,
        "Port": port,
        "TargetPort": 0,
        "NodePort": 0,
    }


def _affinity(spec: Json) -> Errors:
    kind, place = spec.get("sessionAffinity"), "spec.sessionAffinityConfig"
    yield from checks.must_be_one_of(kind, "spec.sessionAffinity", ("ClientIP", "None"))
    config = struct(spec, "sessionAffinityConfig")
    if kind == "None" and config is not None:
        yield forbidden(place, "must not be set when session affinity is None")
    if kind != "ClientIP":
        return
    detail = "when session affinity type is ClientIP"
    client = struct(config or {}, "clientIP")
    if config is None:
        yield required_error(place, detail)
    elif client is None:
        yield required_error(f"{place}.clientIP", detail)
    elif client.get("timeoutSeconds") is None:
        yield required_error(f"{place}.clientIP.timeoutSeconds", detail)
    # 86400 itself passes, though the message says otherwise: as in kube-apiserver.
    elif not 0 < client["timeoutSeconds"] <= 86400:
        yield invalid_value(
            f"{place}.clientIP.timeoutSeconds",
            client["timeoutSeconds"],
            "must be greater than 0 and less than 86400",
        )


def cluster_addresses(spec: Json, before: Json) -> Errors:
    """Addresses in the cluster, their families, and the policy of both."""
    if spec.get("type") == "ExternalName":
        return
    place, given = "spec.clusterIPs", spec.get("clusterIPs") or []
    families = spec.get("ipFamilies") or []
    if spec.get("clusterIP"):
        if not given:
            yield required_error(place)
        elif given[0] != spec["clusterIP"]:
            yield invalid_value(place, given, "first value must match `clusterIP`")
    elif given:
        yield invalid_value(place, given, "must be empty when `clusterIP` is not specified")
    for index, family in enumerate(families):
        if family not in _FAMILIES:
            yield not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        if family in families[:index]:
            yield duplicate(f"spec.ipFamilies[{index}]", family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        yield not_supported("spec.ipFamilyPolicy", policy, _POLICIES)
    faults = list(_addresses(given, place, before.get("clusterIPs") or []))
    yield from faults
    if len(given) > 2:
        yield invalid_value(place, given, "may only hold up to 2 values")
    if faults:
        return
    if len(given) > 1 and not is_dual_stack(given):
        yield invalid_value(place, given, _ONE_A_FAMILY)
    if given != ["None"]:
        for index, (text, family) in enumerate(zip(given, families, strict=False)):
            if family in _FAMILIES and addresses.is_ipv6(text) != (family == "IPv6"):
                detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
                yield invalid_value(f"{place}[{index}]", text, detail)


def _addresses(given: list[str], path: str, kept: list[str]) -> Errors:
    for index, text in enumerate(given):
        if index == 0 and text == "None":
            if len(given) > 1:
                yield invalid_value(path, given, "'None' must be the first and only value")
        elif text not in kept:
            yield from checks.each_fault(text, f"{path}[{index}]", "ip")


def is_dual_stack(given: list[str]) -> bool:
    """Whether addresses are of both families."""
    parsed = [addresses.parse_ip(text) for text in given]
    return {each.address.version for each in parsed if each is not None} == {4, 6}


def _external_addresses(spec: Json, before: Json) -> Errors:
    kept = before.get("externalIPs") or []
    for index, text in enumerate(spec.get("externalIPs") or ()):
        place = f"spec.externalIPs[{index}]"
        faults = [] if text in kept else list(checks.each_fault(text, place, "ip"))
        yield from faults or endpoint_address(text, place)


def endpoint_address(text: str, path: str) -> Errors:
    """An address at which something can be reached from elsewhere."""
    parsed = addresses.parse_ip(text)
    if parsed is None:
        yield invalid_value(path, text, "must be a valid IP address")
        return
    address = parsed.address
    if address.is_unspecified:
        yield invalid_value(path, text, f"may not be unspecified ({text})")
    if address.is_loopback:
        yield invalid_value(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        yield invalid_value(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    octets = address.packed
    # Of IPv6 the scope alone counts, the low half of the second byte; flags are beside it (RFC 4291 §2.7).
    scope = octets[1] & 0x0F if octets[0] == 0xFF else 0
    if octets[:3] == b"\xe0\0\0" if address.version == 4 else scope == 2:
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        yield invalid_value(path, text, detail)


def _node_ports(spec: Json) -> Errors:
    seen = set()
    for index, port in numbered(spec, "ports"):
        if not port.get("nodePort"):
            continue
        place, pair = f"spec.ports[{index}].nodePort", (port.get("protocol"), port["nodePort"])
        if spec.get("type") == "ClusterIP":
            yield forbidden(place, "may not be used when `type` is 'ClusterIP'")
        if pair in seen:
            yield duplicate(place, port["nodePort"])
        seen.add(pair)


def _source_ranges(spec: Json, before: Json, annotations: Json, old_annotations: Json) -> Errors:
    ranges, balances = spec.get("loadBalancerSourceRanges") or [], spec.get("type") == "LoadBalancer"
    if ranges:
        if not balances:
            # kube-apiserver writes this field with a capital letter.
            yield forbidden("spec.LoadBalancerSourceRanges", _OF_BALANCERS)
        kept = {text.strip() for text in before.get("loadBalancerSourceRanges") or ()}
        for index, padded in enumerate(ranges):
            text = padded.strip()
            if text not in kept:
                yield from checks.each_fault(text, f"spec.LoadBalancerSourceRanges[{index}]", "cidr")
    elif _RANGES in annotations:
        place, text = f"metadata.annotations[{_RANGES}]", annotations[_RANGES].strip()
        if not balances:
            yield forbidden(place, _OF_BALANCERS)
        if old_annotations.get(_RANGES) != annotations[_RANGES] and text:
            for each in text.split(","):
                yield from checks.each_fault(each.strip(), place, "cidr")


def _balancer(spec: Json) -> Errors:
    balances, allocates = spec.get("type") == "LoadBalancer", spec.get("allocateLoadBalancerNodePorts")
    if allocates is not None and not balances:
        yield forbidden("spec.allocateLoadBalancerNodePorts", _OF_BALANCERS)
    if allocates is None and balances:
        # Without ``spec`` in kube-apiserver, too.
        yield required_error("allocateLoadBalancerNodePorts")
    yield from _class(spec)


def _class(spec: Json) -> Errors:
    """Which balancer a service asks for."""
    of_class = spec.get("loadBalancerClass")
    if of_class is not None:
        if spec.get("type") == "LoadBalancer":
            yield from checks.each_fault(of_class, "spec.loadBalancerClass", "qualified-name")
        else:
            yield forbidden("spec.loadBalancerClass", _OF_BALANCERS)


def needs_health_check(spec: Json) -> bool:
    """Whether a port of every node tells a load balancer if the node has an endpoint."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def is_external(spec: Json) -> bool:
    """Whether a service is reached from outside the cluster."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def _traffic(spec: Json) -> Errors:
    external, internal = spec.get("externalTrafficPolicy"), spec.get("internalTrafficPolicy")
    place, allowed = "spec.externalTrafficPolicy", ("Cluster", "Local")
    if is_external(spec):
        yield from checks.must_be_one_of(external, place, allowed)
    elif external:
        yield invalid_value(place, external, "may only be set for externally-accessible services")
    port, place = spec.get("healthCheckNodePort") or 0, "spec.healthCheckNodePort"
    if not needs_health_check(spec):
        if port:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            yield invalid_value(place, port, detail)
    elif not port:
        yield required_error(place)
    else:
        yield from checks.between(port, place, 1, 65535)
    if internal is None:
        if spec.get("type") in ("ClusterIP", "LoadBalancer", "NodePort"):
            yield required_error("spec.internalTrafficPolicy")
    elif internal not in allowed:
        yield not_supported("spec.internalTrafficPolicy", internal, allowed)
    distribution = spec.get("trafficDistribution")
    known = _DISTRIBUTIONS if enabled("PreferSameTrafficDistribution") else _DISTRIBUTIONS[:1]
    if distribution is not None and distribution not in known:
        yield not_supported("spec.trafficDistribution", distribution, known)


def service_update(value: Json, path: str, old: Json) -> Errors:
    """What of a service stays: addresses once given, families, the class of its balancer."""
    spec, before = struct(value, "spec") or {}, struct(old, "spec") or {}
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        headless, was = _headless(spec), _headless(before)
        if not (headless and was):
            yield from _kept_addresses(spec, before)
        if not headless and not was:
            yield from _kept_families(spec, before)
    if spec.get("type") == before.get("type") == "LoadBalancer":
        if spec.get("loadBalancerClass") != before.get("loadBalancerClass"):
            shown = spec.get("loadBalancerClass")
            yield invalid_value("spec.loadBalancerClass", shown, "may not change once set")
    yield from _class(spec)  # and once more with all the rest
    if needs_health_check(spec) and needs_health_check(before):
        if (spec.get("healthCheckNodePort") or 0) != (before.get("healthCheckNodePort") or 0):
            yield forbidden("spec.healthCheckNodePort", "field is immutable")
    yield from service(value, path, old)


def _kept_addresses(spec: Json, before: Json) -> Errors:
    now, last = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    place, shown = "spec.clusterIPs", spec.get("clusterIPs")
    if len(now) == len(last):
        for index, (text, stored) in enumerate(zip(now, last, strict=True)):
            if text != stored:
                yield invalid_value(f"{place}[{index}]", shown, "may not change once set")
        return
    if not now:
        yield invalid_value(f"{place}[0]", shown, "primary clusterIP can not be unset")
    elif last and now[0] != last[0]:
        yield invalid_value(f"{place}[0]", shown, "may not change once set")
    if len(now) < len(last) and len(now) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        yield invalid_value("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail)


def _kept_families(spec: Json, before: Json) -> Errors:
    now, last = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
    place, shown = "spec.ipFamilies[0]", spec.get("ipFamilies")
    if len(now) == len(last):
        if now != last:
            yield invalid_value(place, shown, "may not change once set")
        return
    if len(now) < len(last) and not spec.get("clusterIPs"):
        yield invalid_value(place, shown, "primary ipFamily can not be unset")
    if now and last and now[0] != last[0]:
        yield invalid_value(place, spec.get("clusterIPs"), "may not change once set")
    if len(now) < len(last) and len(now) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        yield invalid_value("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail)


def service_status(value: Json, path: str, old: Json) -> Errors:
    """The status of a service."""
    del path
    kind = lookup(value, "spec", "type")
    status = lookup(value, "status", "loadBalancer") or {}
    place = "status.loadBalancer.ingress"
    if kind != "LoadBalancer" and status.get("ingress"):
        yield forbidden(place, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    kept = {each.get("ip") for each in items(lookup(old, "status", "loadBalancer") or {}, "ingress")}
    for index, each in numbered(status, "ingress"):
        at, text, mode = f"{place}[{index}]", each.get("ip") or "", each.get("ipMode")
        if text and text not in kept:
            yield from checks.each_fault(text, f"{at}.ip", "ip")
        if mode is None:
            if text:
                yield required_error(f"{at}.ipMode", "must be specified when `ip` is set")
        elif not text:
            yield forbidden(f"{at}.ipMode", "may not be specified when `ip` is not set")
        elif mode not in ("Proxy", "VIP"):
            yield not_supported(f"{at}.ipMode", mode, ("Proxy", "VIP"))
        yield from host_name(each.get("hostname"), f"{at}.hostname")


def host_name(value: Any, path: str) -> Errors:
    """A name in DNS, and no address."""
    if not value:
        return
    yield from checks.each_fault(value, path, "dns-subdomain")
    if addresses.parse_ip(value) is not None:
        yield invalid_value(path, value, "must be a DNS name, not an IP address")
