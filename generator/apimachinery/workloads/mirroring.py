"""EndpointSlices of Endpoints that somebody else writes, for Services without a selector."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Iterator

from apimachinery.meta.json import Json

from .endpointslices import ENDPOINTS, MANAGED, NAME, SERVICES, SLICES, write_slices
from .interface import ClusterView, Follows, Workload
from .owners import is_going, labels_of, reference_to

CONTROLLER = "endpointslicemirroring-controller.k8s.io"
SKIP = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
NOT_COPIED = frozenset(
    ("endpoints.kubernetes.io/last-change-trigger-time", "kubectl.kubernetes.io/last-applied-configuration")
)
MOST_ADDRESSES = 1000


async def reconcile_mirror(cluster: ClusterView, endpoints: Json) -> float | None:
    """Makes the slices of Endpoints, and deletes those of Endpoints that are not mirrored. Raises ApiError."""
    metadata = endpoints["metadata"]
    held = [
        each
        for each in cluster.objects(SLICES, metadata["namespace"])
        if labels_of(each).get(NAME) == metadata["name"] and labels_of(each).get(MANAGED) == CONTROLLER
    ]
    wanted = list(_mirrored(endpoints)) if _is_mirrored(cluster, endpoints) else []
    await write_slices(cluster, held, wanted)
    return None


def _is_mirrored(cluster: ClusterView, endpoints: Json) -> bool:
    metadata = endpoints["metadata"]
    if is_going(endpoints) or labels_of(endpoints).get(SKIP) == "true":
        return False
    if LEADER in (metadata.get("annotations") or {}):
        return False
    service = cluster.get(SERVICES, metadata["namespace"], metadata["name"])
    return service is not None and not service["spec"].get("selector")


def _mirrored(endpoints: Json) -> Iterator[Json]:
    """A slice for each family of the addresses that have the same ports."""
    metadata = endpoints["metadata"]
    notes = {k: v for k, v in (metadata.get("annotations") or {}).items() if k not in NOT_COPIED}
    for ports, addresses in _by_ports(endpoints):
        families: dict[str, list[Json]] = {}
        for family, endpoint in list(_endpoints(addresses))[:MOST_ADDRESSES]:
            families.setdefault(family, []).append(endpoint)
        for family, found in families.items():
            yield {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {
                    "generateName": f"{metadata['name']}-",
                    "namespace": metadata["namespace"],
                    "labels": {**labels_of(endpoints), NAME: metadata["name"], MANAGED: CONTROLLER},
                    "annotations": notes,
                    "ownerReferences": [reference_to({**endpoints, "apiVersion": "v1", "kind": "Endpoints"})],
                },
                "addressType": family,
                "endpoints": found,
                "ports": ports,
            }


def _by_ports(endpoints: Json) -> Iterator[tuple[list[Json], list[tuple[Json, bool]]]]:
    """Ports with the same addresses together, each address with whether it is ready: an address may be in several
    subsets, is what the first says of it, and not ready at a port where one of them says so."""
    known: dict[tuple[str, str], Json] = {}
    at_port: dict[str, dict[tuple[str, str], bool]] = {}
    ports: dict[str, list[Json]] = {}
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or (None,):
            text = json.dumps(port, sort_keys=True)
            ports[text] = [] if port is None else [{"name": "", "protocol": "TCP", **port}]
            states = at_port.setdefault(text, {})
            for key in ("addresses", "notReadyAddresses"):
                for address in subset.get(key) or ():
                    identity = address["ip"], (address.get("targetRef") or {}).get("uid", "")
                    known.setdefault(identity, address)
                    states[identity] = key == "addresses" and states.get(identity, True)
    groups: dict[frozenset[tuple[tuple[str, str], bool]], list[Json]] = {}
    for text, states in at_port.items():
        groups.setdefault(frozenset(states.items()), []).extend(ports[text])
    for states_of, shared in groups.items():
        yield shared, [(known[identity], ready) for identity, ready in sorted(states_of)]


def _endpoints(addresses: Iterable[tuple[Json, bool]]) -> Iterator[tuple[str, Json]]:
    """The endpoints of addresses, each with its family."""
    for address, ready in addresses:
        try:
            ip = ipaddress.ip_address(address["ip"])
        except ValueError:
            continue  # such as 010.0.0.1, which older servers took
        endpoint: Json = {"addresses": [str(ip)], "conditions": {"ready": ready}}
        endpoint |= {name: address[name] for name in ("hostname", "nodeName", "targetRef") if name in address}
        yield f"IPv{ip.version}", endpoint


def _named_alike(cluster: ClusterView, service: Json) -> Iterator[tuple[str, str]]:
    yield service["metadata"]["namespace"], service["metadata"]["name"]


def _endpoints_of(cluster: ClusterView, held: Json) -> Iterator[tuple[str, str]]:
    """Of a slice by its label: what others change is mended."""
    if labels_of(held).get(MANAGED) == CONTROLLER and NAME in labels_of(held):
        yield held["metadata"]["namespace"], labels_of(held)[NAME]


WORKLOAD = Workload(
    ENDPOINTS, reconcile_mirror, (Follows(SERVICES, _named_alike), Follows(SLICES, _endpoints_of))
)
