"""The APIServices that are stored, read once each: which group-versions are another server's, and the order of all."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apimachinery.storage.interface import Event, Record
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

API_SERVICES = "/apiregistration.k8s.io/apiservices/"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ServiceReference:
    """The Service that serves a group-version."""

    namespace: str
    name: str
    port: int = 443


@dataclass(frozen=True, slots=True)
class ApiService:
    """One APIService; ``service`` is None for a local one."""

    name: str
    group: str
    version: str
    group_priority: int
    version_priority: int
    service: ServiceReference | None = None
    ca_bundle: bytes = b""
    insecure: bool = False
    available: bool = False

    @property
    def path(self) -> str:
        """Where it is served."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


def read_api_service(obj: Json) -> ApiService:
    """Reads a stored APIService; a CA bundle that is no base64 becomes one that cannot be read."""
    spec = obj.get("spec") or {}
    reference = spec.get("service")
    conditions = (obj.get("status") or {}).get("conditions") or ()
    bundle = b""
    if spec.get("caBundle"):
        try:
            bundle = base64.b64decode(spec["caBundle"], validate=True)
        except (binascii.Error, ValueError):
            bundle = b"unreadable"
    return ApiService(
        obj["metadata"]["name"],
        spec.get("group") or "",
        spec.get("version") or "",
        spec.get("groupPriorityMinimum") or 0,
        spec.get("versionPriority") or 0,
        None
        if reference is None
        else ServiceReference(
            reference.get("namespace") or "", reference.get("name") or "", reference.get("port") or 443
        ),
        bundle,
        bool(spec.get("insecureSkipTLSVerify")),
        any(entry.get("type") == "Available" and entry.get("status") == "True" for entry in conditions),
    )


class Registry:
    """All APIServices by name. ``remote`` are those of other servers by group and version; ``generation`` changes with
    any of them."""

    def __init__(self, cache: WatchCache) -> None:
        self._objects = cache.resource(API_SERVICES)
        self.all: dict[str, ApiService] = {}
        self.remote: dict[tuple[str, str], ApiService] = {}
        self.generation = 0
        self._listeners: list[Callable[[str], None]] = []
        for record in self._objects.snapshot(API_SERVICES).records:
            self._set(record)
        self._objects.listen(API_SERVICES, self._take)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Calls ``listener`` with the name of each APIService that has changed or gone."""
        self._listeners.append(listener)

    def record(self, name: str) -> Record | None:
        """The stored object."""
        return self._objects.get(API_SERVICES + name)

    def _take(self, event: Event) -> None:
        name = event.record.key.removeprefix(API_SERVICES)
        self.generation += 1
        if event.deleted:
            self._drop(name)
        else:
            self._set(event.record)
        for listener in self._listeners:
            listener(name)

    def _set(self, record: Record) -> None:
        read = read_api_service(decode(record.value))
        self._drop(read.name)
        self.all[read.name] = read
        if read.service is not None:
            self.remote[read.group, read.version] = read

    def _drop(self, name: str) -> None:
        old = self.all.pop(name, None)
        if old is not None and old.service is not None:
            self.remote.pop((old.group, old.version), None)
