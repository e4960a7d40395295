"""What namespaces hold on the servers of remote APIServices: a namespace that goes takes it along."""

from __future__ import annotations

import json
from urllib.parse import quote

from apimachinery.http.outgoing import CallFailed
from apimachinery.server.aggregation.proxy import Proxy
from apimachinery.server.aggregation.registry import ApiService, Registry
from apimachinery.server.describe.others import Others
from apimachinery.server.network.services import Unresolved

LIST_BYTES = 16 << 20
SECONDS = 30.0


class RemoteContents:
    """Empties namespaces on other servers, by what their discovery lists."""

    def __init__(self, registry: Registry, proxy: Proxy, others: Others) -> None:
        self._registry = registry
        self._proxy = proxy
        self._others = others

    def _discovered(self, group: str, version: str) -> bool:
        other = self._others.versions.get((group, version))
        return other is not None and other.discovered.get("freshness") == "Current"

    async def empty(self, namespace: str) -> tuple[dict[str, int], list[str]]:
        """Deletes all objects of a namespace; how many are left, by resource, and the group-versions of which that
        cannot be said."""
        left: dict[str, int] = {}
        unknown: list[str] = []
        for (group, version), service in sorted(self._registry.remote.items()):
            if not self._discovered(group, version):
                unknown.append(f"{group}/{version}")
                continue
            try:
                left |= await self._empty_all(service, namespace)
            except CallFailed:
                unknown.append(f"{group}/{version}")
        return left, unknown

    async def _empty_all(self, service: ApiService, namespace: str) -> dict[str, int]:
        left = {}
        known = self._others.versions[service.group, service.version].discovered
        for resource in known.get("resources") or ():
            verbs = resource.get("verbs") or []
            if resource.get("scope") != "Namespaced" or "list" not in verbs:
                continue
            count = await self._empty(service, namespace, resource["resource"], verbs)
            if count:
                left[f"{resource['resource']}.{service.group}"] = count
        return left

    async def _empty(self, service: ApiService, namespace: str, plural: str, verbs: list[str]) -> int:
        path = f"{service.path}/namespaces/{quote(namespace)}/{quote(plural)}"
        if not await self._count(service, path):
            return 0
        if "deletecollection" in verbs:
            await self._call(service, "DELETE", path)
        return await self._count(service, path)

    async def _count(self, service: ApiService, path: str) -> int:
        items = (await self._call(service, "GET", path)).get("items")
        return len(items) if isinstance(items, list) else 0

    async def _call(self, service: ApiService, method: str, path: str) -> dict[str, object]:
        headers = [("Accept", "application/json"), ("Accept-Encoding", "identity")]
        try:
            answer = await self._proxy.ask(service, path, headers, SECONDS, method=method)
            content = await answer.read(LIST_BYTES)
            found = json.loads(content)
        except (Unresolved, ValueError, OSError, RecursionError) as fault:
            raise CallFailed(f"{path}: {fault}") from None
        if answer.status >= 300 or not isinstance(found, dict):
            raise CallFailed(f"{path}: answered {answer.status}", answer.status)
        return found
