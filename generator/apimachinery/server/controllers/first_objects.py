"""What a server makes when it starts, where it is missing: the system's namespaces, its priority classes, its
addresses, and the Service by which pods find it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from apimachinery.kinds.hooks import Json
from apimachinery.meta.clock import now
from apimachinery.meta.errors import ApiError
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.writes import Writer

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
SERVER = "kube-apiserver"
PRIORITIES = (
    (
        "system-node-critical",
        2000001000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2000000000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
)
GROUP = "networking.k8s.io"
TRACKING = "kube-apiserver-legacy-service-account-token-tracking"


async def make_first_objects(catalog: Catalog, writer: Writer) -> None:
    """Makes them; one that is refused is left out. Raises StorageError."""
    for name in NAMESPACES:
        await make_namespace(catalog, writer, name)
    for name, value, description in PRIORITIES:
        obj = {"metadata": {"name": name}, "value": value, "description": description}
        await _make(catalog, writer, ("scheduling.k8s.io", "v1", "priorityclasses"), obj)
    since = {"metadata": {"name": TRACKING, "namespace": "kube-system"}, "data": {"since": _today()}}
    await _make(catalog, writer, ("", "v1", "configmaps"), since)


async def make_namespace(catalog: Catalog, writer: Writer, name: str) -> None:
    """Makes a namespace if there is none; one that is refused is left out. Raises StorageError."""
    await _make(catalog, writer, ("", "v1", "namespaces"), {"metadata": {"name": name}})


async def make_service_range(catalog: Catalog, writer: Writer, networks: Sequence[str]) -> None:
    """Creates the ServiceCIDR that addresses of services come from at first. Raises StorageError."""
    resource = (GROUP, "v1", "servicecidrs")
    await _make(
        catalog, writer, resource, {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": [*networks]}}
    )
    served = catalog.find(*resource)
    if served is None:
        return
    target = WriteTarget(
        served, "", "kubernetes", WriteOptions(manager="kubernetes-service-cidr-controller"), "status"
    )
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": now(),
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
    }

    def mark(old: Json) -> Json:
        status = old.get("status") or {}
        return old if status.get("conditions") else {**old, "status": {**status, "conditions": [ready]}}

    with contextlib.suppress(ApiError):
        await writer.update(target, mark)


async def make_own_service(catalog: Catalog, writer: Writer, address: str, port: int) -> None:
    """Creates the Service by which pods find the server: kube-apiserver makes it, and its own tests look for it."""
    six = ":" in address
    obj: Json = {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": address,
            "clusterIPs": [address],
            "ipFamilies": ["IPv6" if six else "IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "targetPort": port}],
        },
    }
    await _make(catalog, writer, ("", "v1", "services"), obj)


async def publish(catalog: Catalog, writer: Writer, addresses: Sequence[str], port: int) -> None:
    """Says at which addresses of the network, all of one family, the Service ``kubernetes`` ends: Endpoints and an
    EndpointSlice, which are written again where they say otherwise. Raises StorageError."""
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    endpoints: Json = {
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "subsets": [{"addresses": [{"ip": address} for address in addresses], "ports": ports}],
    }
    labels = {"kubernetes.io/service-name": "kubernetes"}
    part: Json = {
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "addressType": "IPv6" if ":" in addresses[0] else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
        "ports": ports,
    }
    for resource, obj in (
        (("", "v1", "endpoints"), endpoints),
        (("discovery.k8s.io", "v1", "endpointslices"), part),
    ):
        served = catalog.find(*resource)
        if served is None:
            continue
        target = WriteTarget(served, "default", "kubernetes", WriteOptions(manager=SERVER))
        said = {key: value for key, value in obj.items() if key != "metadata"}
        with contextlib.suppress(ApiError):
            present = writer.current(target)
            if present is not None and served.read(present).get("addressType") != obj.get("addressType"):
                # An address of the other family: the type of a slice does not change.
                await writer.remove(target, present, served.read(present))
            await _make(catalog, writer, resource, obj)
            await writer.update(target, lambda old, said=said: {**old, **said})  # type: ignore[misc]


def _today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


async def _make(catalog: Catalog, writer: Writer, resource: tuple[str, str, str], obj: Json) -> None:
    served = catalog.find(*resource)
    if served is None:
        return
    metadata = obj["metadata"]
    target = WriteTarget(
        served, metadata.get("namespace", ""), metadata["name"], WriteOptions(manager=SERVER)
    )
    whole: Json = {"kind": served.kind, "apiVersion": served.api_version, **obj}
    finish_form(whole, served)
    with contextlib.suppress(ApiError):
        if writer.current(target) is None:
            await writer.create(target, whole)
