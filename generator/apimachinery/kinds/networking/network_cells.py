"""Tables of how what runs is reached."""

from __future__ import annotations

from apimachinery.kinds.cell import (
    NONE,
    UNKNOWN,
    UNSET,
    Cell,
    at,
    few,
    get,
    labels_text,
    name_of_class,
    of,
    selector_text,
)
from apimachinery.meta.json import Json


def _cluster_ip(service: Json) -> str:
    spec = service.get("spec") or {}
    given = spec.get("clusterIPs") or [spec.get("clusterIP")]
    return str(given[0] or NONE)


def _external_ip(service: Json) -> str:
    spec = service.get("spec") or {}
    kind, ips = spec.get("type"), spec.get("externalIPs") or []
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    if kind == "LoadBalancer":
        found = [
            i.get("ip") or i.get("hostname", "") for i in get(service, "status.loadBalancer.ingress") or ()
        ]
        return ",".join([*found, *ips]) or "<pending>"
    if kind not in ("ClusterIP", "NodePort"):
        return UNKNOWN
    return ",".join(ips) or NONE


def _service_ports(service: Json) -> str:
    ports = []
    for port in get(service, "spec.ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(ports) or NONE


def _hosts(ingress: Json) -> str:
    hosts = [rule.get("host") for rule in get(ingress, "spec.rules") or () if rule.get("host")]
    if not hosts:
        return "*"
    return ",".join(hosts[:3]) + (f" + {len(hosts) - 3} more..." if len(hosts) > 3 else "")


def _addresses(ingress: Json) -> str:
    found = [i.get("ip") or i.get("hostname", "") for i in get(ingress, "status.loadBalancer.ingress") or ()]
    return ",".join(text for text in found if text)


def _parameters(ingress_class: Json) -> str:
    found = get(ingress_class, "spec.parameters")
    if not found:
        return NONE
    group = f".{found['apiGroup']}" if found.get("apiGroup") else ""
    return f"{found.get('kind', '')}{group}/{found.get('name', '')}"


def _endpoints(endpoints: Json) -> str:
    found: list[str] = []
    for subset in endpoints.get("subsets") or ():
        ports = subset.get("ports") or [{}]
        for port in ports:
            for address in subset.get("addresses") or ():
                suffix = f":{port['port']}" if "port" in port else ""
                found.append(f"{address.get('ip', '')}{suffix}")
    return few(found)


def _slice_ports(endpoint_slice: Json) -> str:
    ports = endpoint_slice.get("ports")
    if not ports:
        return UNSET
    return few([str(port.get("port", port.get("name", "*"))) for port in ports])


def _slice_endpoints(endpoint_slice: Json) -> str:
    found = [a for endpoint in endpoint_slice.get("endpoints") or () for a in endpoint.get("addresses") or ()]
    return few(found) if found else UNSET


def _parent(address: Json) -> str:
    parent = get(address, "spec.parentRef")
    if parent is None:
        return NONE
    group = f".{parent['group']}" if parent.get("group") else ""
    place = f"{parent['namespace']}/" if parent.get("namespace") else ""
    return f"{parent.get('resource', '')}{group}".lower() + f"/{place}{parent.get('name', '')}"


NETWORK: dict[str, dict[str, Cell]] = {
    "EndpointSlice": {
        "AddressType": at("addressType"),
        "Ports": _slice_ports,
        "Endpoints": _slice_endpoints,
    },
    "Endpoints": {"Endpoints": _endpoints},
    "IPAddress": {"ParentRef": _parent},
    "Ingress": {
        "Class": at("spec.ingressClassName", NONE),
        "Hosts": _hosts,
        "Address": _addresses,
        "Ports": lambda obj: "80, 443" if get(obj, "spec.tls") else "80",
    },
    "IngressClass": {
        "Name": name_of_class("ingressclass.kubernetes.io/is-default-class"),
        "Controller": at("spec.controller"),
        "Parameters": _parameters,
    },
    "NetworkPolicy": {"Pod-Selector": of("spec.podSelector", selector_text)},
    "Service": {
        "Type": at("spec.type"),
        "Cluster-IP": _cluster_ip,
        "External-IP": _external_ip,
        "Port(s)": _service_ports,
        "Selector": of("spec.selector", labels_text),
    },
    "ServiceCIDR": {"CIDRs": of("spec.cidrs", lambda cidrs: ",".join(cidrs or ()))},
}
