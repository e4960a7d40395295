"""EndpointSlices and Endpoints: the addresses of the pods behind a Service."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from apimachinery.meta.json import Json
from apimachinery.meta.selectors import selector_of

from .interface import ClusterView, Follows, Workload
from .owners import controller_of, is_going, labels_of, reference_to
from .pods import has_ended, is_ready

SERVICES, SLICES, ENDPOINTS = "services", "endpointslices.discovery.k8s.io", "endpoints"
NAME, MANAGED = "kubernetes.io/service-name", "endpointslice.kubernetes.io/managed-by"
CONTROLLER = "endpointslice-controller.k8s.io"
OF_ENDPOINTS, ENDPOINTS_CONTROLLER = "endpoints.kubernetes.io/managed-by", "endpoint-controller"
HEADLESS = "service.kubernetes.io/headless"
ZONE = "topology.kubernetes.io/zone"
MOST_ENDPOINTS, MOST_ADDRESSES = 100, 1000
COPIED = ("labels", "annotations", "ownerReferences")
"""The metadata of a slice that its maker decides; the rest is the server's."""


def pods_of(cluster: ClusterView, service: Json) -> list[Json]:
    """The pods that a service selects and that have an address, by name."""
    chosen = selector_of({"matchLabels": service["spec"]["selector"]})
    return [
        pod
        for pod in cluster.objects("pods", service["metadata"]["namespace"])
        if chosen.matches(labels_of(pod)) and not has_ended(pod) and (pod.get("status") or {}).get("podIP")
    ]


def address_of(pod: Json, family: str) -> str:
    """The address of a pod in a family, ``IPv4`` or ``IPv6``; empty where it has none."""
    status = pod["status"]
    for each in status.get("podIPs") or [{"ip": status["podIP"]}]:
        if f"IPv{ipaddress.ip_address(each['ip']).version}" == family:
            return str(each["ip"])
    return ""


def ports_of(service: Json, pod: Json) -> list[Json] | None:
    """The ports of a service as a pod has them; those that name a port it has not are left out."""
    found = []
    for port in service["spec"].get("ports") or ():
        target = port.get("targetPort") or port["port"]
        number = target if isinstance(target, int) else _named(pod, str(target), port.get("protocol", "TCP"))
        if number is not None:
            shown = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}
            if port.get("appProtocol"):
                shown["appProtocol"] = port["appProtocol"]
            found.append(shown)
    return found


def _named(pod: Json, name: str, protocol: str) -> int | None:
    sidecars = [
        each for each in pod["spec"].get("initContainers") or () if each.get("restartPolicy") == "Always"
    ]
    for container in [*sidecars, *pod["spec"]["containers"]]:
        for port in container.get("ports") or ():
            if port.get("name") == name and port.get("protocol", "TCP") == protocol:
                return int(port["containerPort"])
    return None


async def reconcile_slices(cluster: ClusterView, service: Json) -> float | None:
    """Makes the slices of a service. Raises ApiError."""
    spec, metadata = service["spec"], service["metadata"]
    if not spec.get("selector") or spec.get("type") == "ExternalName" or is_going(service):
        return None
    held = [
        each
        for each in cluster.objects(SLICES, metadata["namespace"])
        if labels_of(each).get(NAME) == metadata["name"] and labels_of(each).get(MANAGED) == CONTROLLER
    ]
    wanted = [
        made for family in spec.get("ipFamilies") or ["IPv4"] for made in _slices(cluster, service, family)
    ]
    await write_slices(cluster, held, wanted)
    return None


async def write_slices(cluster: ClusterView, held: list[Json], wanted: Sequence[Json]) -> None:
    """Brings the slices that there are to those that are wanted: changes the ones that fit, creates and deletes the
    rest. Raises ApiError."""
    for made in wanted:
        same = next((each for each in held if _fits(each, made)), None)
        if same is None:
            await cluster.create(SLICES, made)
            continue
        held.remove(same)
        if _shown(same, made) != _shown(made, made):
            await cluster.update(SLICES, same, lambda obj, made=made: _updated(obj, made))  # type: ignore[misc]
    for each in held:
        await cluster.delete(SLICES, each)


def _fits(held: Json, made: Json) -> bool:
    """Whether a slice can become another: its family cannot change."""
    return bool(held["addressType"] == made["addressType"])


def _shown(held: Json, made: Json) -> Json:
    """The part of a slice that ``made`` decides."""
    return {
        **{key: held.get(key) or [] for key in ("endpoints", "ports")},
        **{key: held["metadata"].get(key) or {} for key in COPIED if key in made["metadata"]},
    }


def _updated(obj: Json, made: Json) -> Json:
    obj["metadata"] |= {key: value for key, value in made["metadata"].items() if key in COPIED}
    return {**obj, "endpoints": made["endpoints"], "ports": made["ports"]}


def _slices(cluster: ClusterView, service: Json, family: str) -> Iterator[Json]:
    """The slices of one family: pods with the same ports together, so many in each."""
    groups: dict[str, tuple[list[Json], list[Json]]] = {}
    for pod in pods_of(cluster, service):
        address = address_of(pod, family)
        ready = is_ready(pod) or service["spec"].get("publishNotReadyAddresses")
        if address and (pod["spec"].get("nodeName")):
            ports = ports_of(service, pod) or []
            endpoints = groups.setdefault(repr(ports), (ports, []))[1]
            endpoints.append(_endpoint(cluster, service, pod, address, bool(ready)))
    for ports, endpoints in groups.values() or [([], [])]:
        for low in range(0, max(len(endpoints), 1), MOST_ENDPOINTS):
            yield _slice(service, family, ports, endpoints[low : low + MOST_ENDPOINTS])


def _slice(service: Json, family: str, ports: Sequence[Json], endpoints: Sequence[Json]) -> Json:
    metadata = service["metadata"]
    labels = {**labels_of(service), NAME: metadata["name"], MANAGED: CONTROLLER}
    if service["spec"].get("clusterIP") == "None":
        labels[HEADLESS] = ""
    else:
        labels.pop(HEADLESS, None)
    made = {
        "generateName": f"{metadata['name']}-",
        "namespace": metadata["namespace"],
        "labels": labels,
        "ownerReferences": [reference_to({"apiVersion": "v1", "kind": "Service", **service})],
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": made,
        "addressType": family,
        "endpoints": list(endpoints),
        "ports": list(ports),
    }


def _endpoint(cluster: ClusterView, service: Json, pod: Json, address: str, ready: bool) -> Json:
    ending, serving = is_going(pod), is_ready(pod)
    endpoint: Json = {
        "addresses": [address],
        "conditions": {
            "ready": ready and (not ending or bool(service["spec"].get("publishNotReadyAddresses"))),
            "serving": serving,
            "terminating": ending,
        },
        "targetRef": _target(pod),
        "nodeName": pod["spec"]["nodeName"],
    }
    node = cluster.get("nodes", "", pod["spec"]["nodeName"])
    if node is not None and (zone := labels_of(node).get(ZONE)):
        endpoint["zone"] = zone
    if (name := _hostname(service, pod)) is not None:
        endpoint["hostname"] = name
    return endpoint


def _hostname(service: Json, pod: Json) -> str | None:
    """The name under which a pod is found behind a service that it names as its domain."""
    spec = pod["spec"]
    named = spec.get("hostname") and spec.get("subdomain") == service["metadata"]["name"]
    return str(spec["hostname"]) if named else None


def _target(pod: Json) -> Json:
    metadata = pod["metadata"]
    return {
        "kind": "Pod",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


async def reconcile_endpoints(cluster: ClusterView, service: Json) -> float | None:
    """Makes the Endpoints of a service. Raises ApiError."""
    spec, metadata = service["spec"], service["metadata"]
    if not spec.get("selector") or spec.get("type") == "ExternalName" or is_going(service):
        return None
    subsets = _subsets(service, pods_of(cluster, service))
    labels = {**labels_of(service), OF_ENDPOINTS: ENDPOINTS_CONTROLLER}
    if spec.get("clusterIP") == "None":
        labels[HEADLESS] = ""
    held = cluster.get(ENDPOINTS, metadata["namespace"], metadata["name"])
    if held is None:
        made = {"apiVersion": "v1", "kind": "Endpoints"}
        meta = {"name": metadata["name"], "namespace": metadata["namespace"], "labels": labels}
        await cluster.create(ENDPOINTS, {**made, "metadata": meta, "subsets": subsets})
    elif (held.get("subsets") or []) != subsets or labels_of(held) != labels:
        await cluster.update(
            ENDPOINTS,
            held,
            lambda obj: {**obj, "metadata": {**obj["metadata"], "labels": labels}, "subsets": subsets},
        )
    return None


async def collect_endpoints(cluster: ClusterView, endpoints: Json) -> float | None:
    """Deletes Endpoints that were made for a service that is gone: no owner is written in them. Raises ApiError."""
    metadata = endpoints["metadata"]
    ours = labels_of(endpoints).get(OF_ENDPOINTS) == ENDPOINTS_CONTROLLER
    if ours and cluster.get(SERVICES, metadata["namespace"], metadata["name"]) is None:
        await cluster.delete(ENDPOINTS, endpoints)
    return None


def _subsets(service: Json, pods: Sequence[Json]) -> list[Json]:
    """Pods with the same ports together; those that end are in none."""
    family = (service["spec"].get("ipFamilies") or ["IPv4"])[0]
    groups: dict[str, Json] = {}
    for pod in pods[:MOST_ADDRESSES]:
        address = address_of(pod, family)
        if not address or (is_going(pod) and not service["spec"].get("publishNotReadyAddresses")):
            continue
        ports = ports_of(service, pod) or []
        shown = {"ip": address, "nodeName": pod["spec"].get("nodeName"), "targetRef": _target(pod)}
        if (name := _hostname(service, pod)) is not None:
            shown["hostname"] = name
        group = groups.setdefault(repr(ports), {"ports": [_plain(port) for port in ports]})
        ready = is_ready(pod) or service["spec"].get("publishNotReadyAddresses")
        group.setdefault("addresses" if ready else "notReadyAddresses", []).append(shown)
    for group in groups.values():
        for key in ("addresses", "notReadyAddresses"):
            if key in group:
                group[key].sort(key=lambda each: each["ip"])
        if not group["ports"]:
            del group["ports"]
    return list(groups.values())


def _plain(port: Json) -> Json:
    return {key: value for key, value in port.items() if value != ""}


def _services_of(cluster: ClusterView, pod: Json) -> Iterator[tuple[str, str]]:
    namespace, labels = pod["metadata"]["namespace"], labels_of(pod)
    for service in cluster.objects(SERVICES, namespace):
        wanted = (service.get("spec") or {}).get("selector")
        if wanted and wanted.items() <= labels.items():
            yield namespace, service["metadata"]["name"]


def _service_of(cluster: ClusterView, obj: Json) -> Iterator[tuple[str, str]]:
    """Of a slice by its owner: what others change is mended. Of Endpoints by their name, once they are gone: nobody
    mends what others write into them until the pods change."""
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    owner = controller_of(obj)
    if owner is not None and owner["kind"] == "Service":
        yield namespace, owner["name"]
    elif "addressType" not in obj and cluster.get(ENDPOINTS, namespace, name) is None:
        yield namespace, name


def _named_alike(cluster: ClusterView, service: Json) -> Iterator[tuple[str, str]]:
    yield service["metadata"]["namespace"], service["metadata"]["name"]


SLICES_WORKLOAD = Workload(
    SERVICES, reconcile_slices, (Follows("pods", _services_of), Follows(SLICES, _service_of))
)
ENDPOINTS_WORKLOAD = Workload(
    SERVICES, reconcile_endpoints, (Follows("pods", _services_of), Follows(ENDPOINTS, _service_of))
)
ENDPOINTS_COLLECTION = Workload(ENDPOINTS, collect_endpoints, (Follows(SERVICES, _named_alike),))
