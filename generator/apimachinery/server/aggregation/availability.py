"""Finds whether the servers of remote APIServices answer, and writes it as their condition ``Available``.

Looked at in this order, with kube-apiserver's reasons and messages: the Service, its port, its endpoints (of a
ClusterIP Service), and the answer to ``GET /apis/GROUP/VERSION``. Each is looked at anew when the APIService, its
Service or an EndpointSlice of its namespace changes, half a minute after a success, and soon after a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from apimachinery.http.outgoing import CallFailed
from apimachinery.meta.errors import ApiError
from apimachinery.server.aggregation.proxy import Proxy
from apimachinery.server.aggregation.registry import ApiService, Json, Registry, ServiceReference
from apimachinery.server.catalog.served import Served
from apimachinery.server.network.services import (
    SERVICES,
    SLICES,
    ServiceResolver,
    Unresolved,
    ready_addresses,
)
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.identity import now
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, StorageError
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


class Availability:
    """One task for each remote APIService."""

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
        self._lost = lost
        self._registry = registry
        self._cache = cache
        self._services = services
        self._proxy = proxy
        self._served = served
        self._writer = writer
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed: dict[str, asyncio.Event] = {}
        self._specs: dict[str, ApiService] = {}
        self._room = asyncio.Semaphore(PROBES_AT_ONCE)
        self._stops: list[Callable[[], None]] = []

    def start(self) -> None:
        """Follows APIServices, Services and EndpointSlices."""
        self._registry.listen(self._heard)
        for scope in (SERVICES, SLICES):
            self._stops.append(self._cache.resource(scope).listen(scope, self._moved))
        for service in self._registry.remote.values():
            self._heard(service.name)

    async def stop(self) -> None:
        """Ends all tasks."""
        for stop in self._stops:
            stop()
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _heard(self, name: str) -> None:
        service = self._registry.all.get(name)
        if service is None or service.service is None:
            task = self._tasks.pop(name, None)
            if task is not None:
                task.cancel()
                del self._changed[name]
            return
        if name not in self._tasks:
            self._changed[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._follow(name, self._changed[name]))
        else:
            self._changed[name].set()

    def _moved(self, event: Event) -> None:
        """A Service or an EndpointSlice: whose namespace is that of an APIService's Service."""
        for service in self._registry.remote.values():
            if service.service is not None and f"/{service.service.namespace}/" in event.record.key:
                if service.name in self._changed:
                    self._changed[service.name].set()

    async def _follow(self, name: str, changed: asyncio.Event) -> None:
        delay = FIRST_RETRY
        while True:
            changed.clear()
            passed = False
            try:
                service = self._registry.all.get(name)
                if service is not None and service.service is not None:
                    async with self._room:
                        found = await self.check(service, service.service)
                    passed = found is not None and found[0] == "True"
                    if found is not None:
                        await self._write(name, found)
            except (ApiError, StorageError):
                pass  # somebody else wrote; the next round sees what
            except Exception:
                log.exception("an APIService could not be checked", extra={"apiservice": name})
            delay = FIRST_RETRY if passed else min(delay * 2, LONGEST_RETRY)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RECHECK_SECONDS if passed else delay):
                    await changed.wait()

    async def check(self, service: ApiService, reference: ServiceReference) -> Found | None:
        """The condition of an APIService now; None where it cannot be said."""
        place = f'service/{reference.name} in "{reference.namespace}"'
        given = (reference.namespace, reference.name) in self._services.given
        found = self._services.service(reference.namespace, reference.name)
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
