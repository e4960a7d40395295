"""What remote servers say of themselves, fetched and kept for this server's discovery and OpenAPI.

Fetched when an APIService or its condition changes, and every minute; an answer with an ETag is asked for again with
``If-None-Match``. A server that cannot be asked stays listed, without resources and marked ``Stale`` (KEP-3352); its
OpenAPI documents stay as they were. All documents of a server together are bounded, and so is the time they may take.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from apimachinery.http.outgoing import CallFailed
from apimachinery.queue.observing import Observer
from apimachinery.server.aggregation.proxy import Proxy
from apimachinery.server.aggregation.registry import ApiService, Json, Registry
from apimachinery.server.controllers.controller import SILENT, Controller
from apimachinery.server.describe.openapi_merge import part_of
from apimachinery.server.describe.others import Others, OtherVersion
from apimachinery.server.network.services import Unresolved
from apimachinery.storage.watch_cache import WatchCache

REFRESH_SECONDS = 60.0
SETTLE_SECONDS = 0.05
DISCOVERY_BYTES = 8 << 20
OPENAPI_BYTES = 32 << 20
FETCH_SECONDS = 10.0
FETCHES_AT_ONCE = 8
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
JSON = "application/json"
Value = TypeVar("Value")
log = logging.getLogger("kubewright.server.aggregation")


@dataclass(slots=True)
class _Kept:
    """One document as it came last."""

    etag: str = ""
    value: Any = None


@dataclass(slots=True)
class _Documents:
    """Those of one APIService."""

    discovered: Json | None = None
    openapi_v3: tuple[str, bytes] | None = None
    openapi_v2: Json | None = None
    kept: dict[str, _Kept] = field(default_factory=dict)


class RemoteDocuments(Controller):
    """Keeps ``others`` up to date. A server that hangs holds up nobody else's documents."""

    def __init__(self, registry: Registry, cache: WatchCache, proxy: Proxy, others: Others) -> None:
        super().__init__("apiservice-documents", cache, workers=FETCHES_AT_ONCE)
        self._registry = registry
        self._proxy = proxy
        self._others = others
        self._documents: dict[str, _Documents] = {}

    def start(self, observer: Observer = SILENT) -> None:
        """Follows the APIServices."""
        self._registry.listen(self._changed)
        for service in self._registry.remote.values():
            self._changed(service.name)
        super().start(observer)

    def _changed(self, name: str) -> None:
        if self._registry.remote or self._others.versions:
            self.queue.add_after(name, SETTLE_SECONDS)

    async def reconcile(self, key: str) -> float | None:
        """Fetches the documents of an APIService; when to fetch them again."""
        service = self._registry.all.get(key)
        if service is None or service.service is None:
            self._documents.pop(key, None)
            self._publish()
            return None
        self._publish()
        await self._refresh(service)
        self._publish()
        return REFRESH_SECONDS

    def _publish(self) -> None:
        """Puts what is known in place of what discovery and OpenAPI tell."""
        versions = {}
        for place, service in self._registry.remote.items():
            documents = self._documents.get(service.name) or _Documents()
            discovered = documents.discovered or {"version": service.version, "freshness": "Stale"}
            versions[place] = OtherVersion(
                service.group, service.version, discovered, documents.openapi_v3, documents.openapi_v2
            )
        priorities = {
            (service.group, service.version): (service.group_priority, service.version_priority)
            for service in self._registry.all.values()
        }
        if versions != self._others.versions or (versions and priorities != self._others.priorities):
            self._others.versions = versions
            self._others.priorities = priorities
            self._others.generation += 1

    async def _refresh(self, service: ApiService) -> None:
        documents = self._documents.setdefault(service.name, _Documents())
        documents.discovered = await self._tried(service, self._discovery(service, documents), None)
        if documents.discovered is None:
            return
        documents.openapi_v3 = await self._tried(
            service, self._openapi_v3(service, documents), documents.openapi_v3
        )
        documents.openapi_v2 = await self._tried(
            service, self._openapi_v2(service, documents), documents.openapi_v2
        )

    async def _tried(self, service: ApiService, asked: Awaitable[Value], otherwise: Value) -> Value:
        """What a server says, ``otherwise`` where that is of no use. It may say anything: a document of any shape must
        not end the loop."""
        try:
            return await asked
        except (CallFailed, Unresolved, ValueError) as fault:
            reason = str(fault)
        except Exception as fault:
            reason = f"a document of another shape ({type(fault).__name__})"
        log.info(
            "a document of an APIService cannot be had", extra={"apiservice": service.name, "reason": reason}
        )
        return otherwise

    async def _get(
        self, service: ApiService, documents: _Documents, path: str, accept: str, most: int
    ) -> tuple[Any, bytes]:
        """A JSON document and its bytes (empty where it is as it was). Raises CallFailed, Unresolved, ValueError."""
        kept = documents.kept.setdefault(path, _Kept())
        headers = [("Accept", accept), ("Accept-Encoding", "identity")]
        if kept.etag:
            headers.append(("If-None-Match", kept.etag))
        answer = await self._proxy.ask(service, path, headers, FETCH_SECONDS)
        if answer.status == 304 and kept.etag:
            answer.close()
            return kept.value, b""
        content = await answer.read(most)
        if answer.status != 200:
            raise CallFailed(f"{path} answered {answer.status}", answer.status)
        value = json.loads(content)
        if not isinstance(value, dict):
            raise ValueError(f"{path} is no JSON object")
        etag = next((text for name, text in answer.headers if name.lower() == "etag"), "")
        documents.kept[path] = _Kept(etag, value)
        return value, content

    async def _discovery(self, service: ApiService, documents: _Documents) -> Json:
        """The entry of aggregated discovery: of the server's own, else made of its plain one."""
        try:
            listed, _ = await self._get(service, documents, "/apis", f"{AGGREGATED},{JSON}", DISCOVERY_BYTES)
        except CallFailed as fault:
            if fault.status in (0, 503):
                raise
            listed = {}
        if listed.get("kind") == "APIGroupDiscoveryList":
            for group in listed.get("items") or ():
                if (group.get("metadata") or {}).get("name", "") != service.group:
                    continue
                for version in group.get("versions") or ():
                    if version.get("version") == service.version:
                        return checked(version)
            raise ValueError(f"{service.group}/{service.version} is not in its discovery")
        plain, _ = await self._get(service, documents, service.path, JSON, DISCOVERY_BYTES)
        return discovered_of(service, plain)

    async def _openapi_v3(self, service: ApiService, documents: _Documents) -> tuple[str, bytes] | None:
        index, _ = await self._get(service, documents, "/openapi/v3", JSON, DISCOVERY_BYTES)
        entry = (index.get("paths") or {}).get(service.path.strip("/"))
        if not isinstance(entry, dict):
            return None
        where = urlsplit(str(entry.get("serverRelativeURL") or ""))
        if where.netloc or not where.path.startswith("/"):
            raise ValueError(f"serverRelativeURL {where.geturl()!r} is not of the same server")
        _, content = await self._get(service, documents, where.path, JSON, OPENAPI_BYTES)
        documents.kept[where.path].value = None
        if not content:
            return documents.openapi_v3
        return hashlib.sha512(content).hexdigest().upper(), content

    async def _openapi_v2(self, service: ApiService, documents: _Documents) -> Json | None:
        document, content = await self._get(service, documents, "/openapi/v2", JSON, OPENAPI_BYTES)
        documents.kept["/openapi/v2"].value = None
        if not content:
            return documents.openapi_v2
        return part_of(document, (service.path, f"/apis/{service.group}"))


def discovered_of(service: ApiService, plain: Json) -> Json:
    """An entry of aggregated discovery made of an APIResourceList. Raises ValueError for one that is none."""
    if plain.get("kind") != "APIResourceList" or not isinstance(plain.get("resources"), list):
        raise ValueError(f"{service.path} is no APIResourceList")
    resources: dict[str, Json] = {}
    for entry in plain["resources"]:
        name, _, subresource = str(entry.get("name") or "").partition("/")
        kind = {
            "group": entry.get("group") or "",
            "version": entry.get("version") or "",
            "kind": entry.get("kind") or "",
        }
        if subresource:
            shown = {"subresource": subresource, "responseKind": kind, "verbs": entry.get("verbs") or []}
            resources.setdefault(name, {"resource": name}).setdefault("subresources", []).append(shown)
            continue
        made: Json = {
            "resource": name,
            "responseKind": kind,
            "scope": "Namespaced" if entry.get("namespaced") else "Cluster",
            "singularResource": entry.get("singularName") or "",
            "verbs": entry.get("verbs") or [],
        }
        for key in ("shortNames", "categories"):
            if entry.get(key):
                made[key] = entry[key]
        if name in resources:
            made["subresources"] = resources[name]["subresources"]
        resources[name] = made
    return checked({"version": service.version, "resources": list(resources.values())})


def checked(version: Json) -> Json:
    """An entry of aggregated discovery whose shape others may rely on. Raises ValueError."""
    resources = version.get("resources") or []
    if not isinstance(resources, list):
        raise ValueError("resources is no list")
    for entry in resources:
        verbs = entry.get("verbs") if isinstance(entry, dict) else None
        named = isinstance(entry, dict) and isinstance(entry.get("resource"), str) and entry["resource"]
        if not named or not isinstance(verbs, list) or not all(isinstance(verb, str) for verb in verbs):
            raise ValueError("an entry of resources has no name or no verbs")
    return {**version, "resources": resources, "freshness": "Current"}
