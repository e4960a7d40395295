"""Whom ``services/NAME/proxy``, ``pods/NAME/proxy`` and ``nodes/NAME/proxy`` mean.

NAME is ``NAME``, ``NAME:PORT`` or ``SCHEME:NAME:PORT`` (http, https, or empty for http). A port of a Service is a name
or number, that of a Pod a number (without one the first that a container declares), that of a Node the kubelet's or
another. A kubelet speaks https; its certificate is not checked, as in kube-apiserver without
``--kubelet-certificate-authority``.
"""

from __future__ import annotations

from dataclasses import dataclass

from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError, bad_request, not_found
from apimachinery.meta.printing import go_quote
from apimachinery.server.network.services import Address, ServiceResolver, ready_addresses
from apimachinery.server.subresources.connections import LAST_PORT
from apimachinery.server.write.versions import unsigned_fault

KUBELET_PORT = 10250
_USUAL_PORTS = {"http": 80, "https": 443}
_ADDRESS_TYPES = ("InternalIP", "ExternalIP")


@dataclass(frozen=True, slots=True)
class Meant:
    """What a name of a path says."""

    scheme: str
    name: str
    port: str


def read_name(kind: str, text: str) -> Meant:
    """The parts of a name. Raises ApiError 400."""
    parts = text.split(":")
    if len(parts) == 1:
        return Meant("", text, "")
    if len(parts) == 2:
        return Meant("", parts[0], parts[1])
    if len(parts) != 3 or parts[0] not in ("", "http", "https"):
        raise bad_request(f"invalid {kind} request {go_quote(text)}")
    return Meant(parts[0], parts[1], parts[2])


@dataclass(frozen=True, slots=True)
class ProxiedAddress:
    """Where a request goes."""

    scheme: str
    address: Address


def place_of_service(meant: Meant, asked: str, service: Json, services: ServiceResolver) -> ProxiedAddress:
    """A ready endpoint of a Service. Raises ApiError 404 where nobody keeps endpoints of it, 503."""
    metadata, ports = service["metadata"], (service.get("spec") or {}).get("ports") or []
    name = meant.port
    if name.isascii() and name.isdigit():
        entry = next((entry for entry in ports if entry.get("port") == int(name)), None)
        if entry is None:
            raise _unavailable(f"no service port {name} found for service {go_quote(meant.name)}")
        name = entry.get("name") or ""
    slices = services.slices(metadata["namespace"], metadata["name"])
    if not slices:
        raise not_found("services", "", metadata["name"])
    address = next(ready_addresses(slices, name), None)
    if address is None:
        raise _unavailable(f"no endpoints available for service {go_quote(asked)}")
    return ProxiedAddress(meant.scheme or "http", address)


def place_of_pod(meant: Meant, pod: Json) -> ProxiedAddress:
    """A port of a Pod. Raises ApiError 400 where it has no address."""
    host = (pod.get("status") or {}).get("podIP") or ""
    if not host:
        raise bad_request("address not allowed")
    scheme = meant.scheme or "http"
    declared = [
        port["containerPort"]
        for container in (pod.get("spec") or {}).get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("containerPort") and port.get("protocol", "TCP") == "TCP"
    ]
    number = _number(meant.port) or (declared[0] if declared else _USUAL_PORTS[scheme])
    return ProxiedAddress(scheme, Address(host, number))


def place_of_node(meant: Meant, node: Json) -> ProxiedAddress:
    """A port of a Node. Raises ApiError 400, 503 where it has no address."""
    status = node.get("status") or {}
    addresses = {entry.get("type"): entry.get("address") for entry in status.get("addresses") or ()}
    host = next((addresses[kind] for kind in _ADDRESS_TYPES if addresses.get(kind)), "")
    if not host:
        raise _unavailable(f"no preferred addresses found; known addresses: {status.get('addresses') or []}")
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    kubelet = endpoint.get("Port") or KUBELET_PORT
    port = _number(meant.port) or kubelet
    scheme = "https" if port == kubelet else meant.scheme or "http"
    return ProxiedAddress(scheme, Address(host, port))


def _number(text: str) -> int:
    """A port, 0 where none is given. Raises ApiError 400."""
    if not text:
        return 0
    if unsigned_fault(text, LAST_PORT) or not text.strip("0"):
        raise bad_request(f"{go_quote(text)} is no port")
    return int(text[-5:])


def _unavailable(text: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", text, has_details=False)
