"""Finds the address of a Service: for webhooks, aggregated servers and proxies.

A server outside a cluster has no service network, so ready endpoints come first and the cluster IP, which only nodes
can reach, comes last:

    an address given by the operator (``--resolve-service NS/NAME=HOST:PORT``)
    ExternalName                        that name, at the port asked for
    a Service with ready endpoints      one of them in turn, at the target port of the EndpointSlice
    any other with a cluster IP         that

The certificate must name ``NAME.NAMESPACE.svc``, whatever the address is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

SERVICES = "/core/services/"
SLICES = "/discovery.k8s.io/endpointslices/"
SERVICE_LABEL = "kubernetes.io/service-name"
Json = dict[str, Any]


class Unresolved(Exception):
    """There is no address; the text says why, in kube-apiserver's words where it has some."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def server_name(namespace: str, name: str) -> str:
    """The name that the certificate of a Service must have."""
    return f"{name}.{namespace}.svc"


class ServiceResolver:
    """Addresses of Services, read from the watch cache when asked."""

    def __init__(self, cache: WatchCache, given: Mapping[tuple[str, str], Address] | None = None) -> None:
        self._cache = cache
        self._services = cache.resource(SERVICES)
        self._slices = cache.resource(SLICES)
        self.given = {} if given is None else given
        self._turn = count()

    def service(self, namespace: str, name: str) -> Json | None:
        """The Service, None where there is none."""
        record = self._services.get(f"{SERVICES}{namespace}/{name}")
        return None if record is None else decode(record.value)

    def slices(self, namespace: str, name: str) -> list[Json]:
        """The EndpointSlices of a Service."""
        records = self._slices.snapshot(f"{SLICES}{namespace}/").records
        named = (decode(record.value) for record in records if name.encode() in record.value)
        return [
            found
            for found in named
            if (found["metadata"].get("labels") or {}).get(SERVICE_LABEL) == name
            and found.get("addressType") != "FQDN"
        ]

    def resolve(self, namespace: str, name: str, port: int) -> Address:
        """Where to reach a port of a Service. Raises Unresolved."""
        if (given := self.given.get((namespace, name))) is not None:
            return given
        service = self.service(namespace, name)
        if service is None:
            raise Unresolved(f'service "{name}" not found')
        spec = service.get("spec") or {}
        if spec.get("type") == "ExternalName":
            return Address(spec.get("externalName", ""), port)
        entry = next((entry for entry in spec.get("ports") or () if entry.get("port") == port), None)
        if entry is None:
            raise Unresolved(f'no service port {port} found for service "{name}"')
        slices = self.slices(namespace, name)
        ready = list(ready_addresses(slices, entry.get("name") or ""))
        if ready:
            return ready[next(self._turn) % len(ready)]
        cluster = spec.get("clusterIP") or ""
        if slices or cluster in ("", "None"):
            raise Unresolved(f'no endpoints available for service "{name}"')
        return Address(cluster, port)


def ready_addresses(slices: list[Json], port_name: str) -> Iterator[Address]:
    """The addresses of ready endpoints at a port by its name."""
    for found in slices:
        ports = [
            entry["port"]
            for entry in found.get("ports") or ()
            if (entry.get("name") or "") == port_name and entry.get("port")
        ]
        for endpoint in found.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is False:
                continue
            for host in endpoint.get("addresses") or ():
                for number in ports:
                    yield Address(host, number)
