"""Finds whether the servers of remote APIServices answer, and writes it as their condition ``Available``.

Looked at in this order, with kube-apiserver's reasons and messages: the Service, its port, its endpoints (of a
ClusterIP Service), and the answer to ``GET /apis/GROUP/VERSION``. Each is looked at anew when the APIService, its
Service or an EndpointSlice of its namespace changes, half a minute after a success, and soon after a failure.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from apimachinery.http.outgoing import CallFailed
from apimachinery.meta.clock import now
from apimachinery.queue.observing import Observer
from apimachinery.server.aggregation.proxy import Proxy
from apimachinery.server.aggregation.registry import ApiService, Json, Registry, ServiceReference
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import SILENT, Controller, Source
from apimachinery.server.network.services import (
    SERVICES,
    SLICES,
    ServiceResolver,
    Unresolved,
    ready_addresses,
)
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

RECHECK_SECONDS = 30.0
FIRST_RETRY, LONGEST_RETRY = 0.1, 5.0
PROBE_SECONDS = 5.0
PROBES_AT_ONCE = 8
MANAGER = "kube-apiserver"
Found = tuple[str, str, str]
"""Status, reason and message of the condition."""
PASSED: Found = ("True", "Passed", "all checks passed")
log = logging.getLogger("kubewright.server.aggregation")


class Availability(Controller):
    """Probes remote APIServices."""

    def __init__(
        self,
        registry: Registry,
        cache: WatchCache,
        services: ServiceResolver,
        proxy: Proxy,
        served: Served,
        writer: Writer,
        lost: Callable[[str, str], None],
    ) -> None:
        """``lost`` is told name and reason when one becomes unavailable."""
        sources = [Source(scope, self._moved, listed=False) for scope in (SERVICES, SLICES)]
        super().__init__("apiservice-availability", cache, *sources, workers=PROBES_AT_ONCE)
        self._lost = lost
        self._registry = registry
        self._services = services
        self._proxy = proxy
        self._served = served
        self._writer = writer
        self._delays: dict[str, float] = {}

    def start(self, observer: Observer = SILENT) -> None:
        """Follows APIServices, Services and EndpointSlices."""
        self._registry.listen(self.queue.add)
        for service in self._registry.remote.values():
            self.queue.add(service.name)
        super().start(observer)

    def _moved(self, event: Event) -> Iterable[str]:
        """The APIServices whose Service is of the namespace of a Service or an EndpointSlice."""
        for service in self._registry.remote.values():
            if service.service is not None and f"/{service.service.namespace}/" in event.record.key:
                yield service.name

    async def reconcile(self, key: str) -> float | None:
        """Probes one and writes its condition; when it is to be probed again. Raises ApiError, StorageError."""
        service = self._registry.all.get(key)
        if service is None or service.service is None:
            self._delays.pop(key, None)
            return None
        found = await self.check(service, service.service)
        if found is not None:
            # None says nothing about the server, so its condition stays.
            await self._write(key, found)
        if found is not None and found[0] == "True":
            self._delays.pop(key, None)
            return RECHECK_SECONDS
        delay = self._delays[key] = min(self._delays.get(key, FIRST_RETRY) * 2, LONGEST_RETRY)
        return delay

    async def check(self, service: ApiService, reference: ServiceReference) -> Found | None:
        """The condition of an APIService now; None where it cannot be said."""
        place = f'service/{reference.name} in "{reference.namespace}"'
        given = (reference.namespace, reference.name) in self._services.given
        found = self._services.service(reference.namespace, reference.name)
        # Given addresses (--resolve-service) need no Service.
        if found is None and not given:
            return "False", "ServiceNotFound", f"{place} is not present"
        spec = (found or {}).get("spec") or {}
        if not given and spec.get("type", "ClusterIP") == "ClusterIP":
            missing = self._missing_endpoint(spec, reference, place)
            if missing is not None:
                return missing
        return await self._probe(service)

    def _missing_endpoint(self, spec: Json, reference: ServiceReference, place: str) -> Found | None:
        port = next((entry for entry in spec.get("ports") or () if entry.get("port") == reference.port), None)
        if port is None:
            return "False", "ServicePortError", f"{place} is not listening on port {reference.port}"
        slices = self._services.slices(reference.namespace, reference.name)
        if not slices:
            return "False", "EndpointsNotFound", f"cannot find endpointslices for {place}"
        # Endpoint slices name ports; their numbers are those of the pods.
        name = port.get("name") or ""
        if next(ready_addresses(slices, name), None) is None:
            return (
                "False",
                "MissingEndpoints",
                f'endpointslices for {place} have no addresses with port name "{name}"',
            )
        return None

    async def _probe(self, service: ApiService) -> Found | None:
        try:
            url = self._proxy.url(service, service.path)
        except Unresolved as fault:
            return "False", "FailedDiscoveryCheck", str(fault)
        said = f"failing or missing response from {url}: "
        try:
            answer = await self._proxy.ask(service, service.path, [], PROBE_SECONDS)
        except CallFailed as fault:
            return "False", "FailedDiscoveryCheck", f'{said}Get "{url}": {fault}'
        # Nothing was learned about the server: the fault is in its configuration, or here.
        except (Unresolved, ValueError, OSError):
            return None
        answer.close()
        if not 200 <= answer.status < 300:
            return "False", "FailedDiscoveryCheck", f"{said}bad status from {url}: {answer.status}"
        return PASSED

    async def _write(self, name: str, found: Found) -> None:
        record = self._registry.record(name)
        if record is None:
            return
        wanted = dict(zip(("status", "reason", "message"), found, strict=True))
        conditions = (decode(record.value).get("status") or {}).get("conditions") or []
        # Unchanged: the time of the transition must not move.
        if any(c.get("type") == "Available" and wanted.items() <= c.items() for c in conditions):
            return

        def change(old: Json) -> Json:
            present = (old.get("status") or {}).get("conditions") or []
            before: Json = next((c for c in present if c.get("type") == "Available"), {})
            since = before.get("lastTransitionTime") if before.get("status") == wanted["status"] else None
            condition = {
                "type": "Available",
                "status": wanted["status"],
                "lastTransitionTime": since or now(),
                "reason": wanted["reason"],
                "message": wanted["message"],
            }
            others = [c for c in present if c.get("type") != "Available"]
            return {**old, "status": {"conditions": [*others, condition]}}

        target = WriteTarget(self._served, "", name, WriteOptions(manager=MANAGER), "status")
        await self._writer.update(target, change)
        if found[0] != "True":
            self._lost(name, found[1])
        log.info("an APIService changed", extra={"apiservice": name, "available": found[0], "why": found[2]})
