"""Discovery: /api, /apis, the groups, their resources; and the aggregated form of it all (KEP-3352).

Documents are made once for each state of the catalog. ``storageVersionHash`` names a resource's storage version by
the first eight bytes of the SHA-256 of ``GROUP/VERSION/KIND``, in base64.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from apimachinery.meta.errors import ApiError, no_such_resource
from apimachinery.meta.gvk import GroupVersion
from apimachinery.server.catalog.catalog import Catalog, ServedGroup
from apimachinery.server.catalog.served import Served
from apimachinery.server.http.messages import Request, Response
from apimachinery.server.request.codecs import JSON, PROTOBUF_TYPE, YAML, whole
from apimachinery.server.request.negotiation import negotiate, refused
from apimachinery.server.request.routes import Area, Route
from apimachinery.wire.json import encode

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
NOT_FOUND = Response(404, b"404 page not found\n", "text/plain; charset=utf-8")


class Discovery:
    """Answers discovery paths from a catalog."""

    def __init__(self, catalog: Catalog, address: str) -> None:
        self._catalog = catalog
        self._address = address
        self._generation = -1
        self._made: dict[Any, bytes] = {}

    def answer(self, request: Request, route: Route) -> Response:
        """The document of a route. Raises ApiError 404, 406."""
        if self._generation != self._catalog.generation:
            self._generation = self._catalog.generation
            self._made.clear()
        accept = request.headers.get("accept", "")
        if route.area in (Area.API_VERSIONS, Area.GROUPS) and _wants_aggregated(accept):
            data = self._kept(("aggregated", route.area), lambda: self._aggregated(route.area))
            etag = hashlib.sha512(data).hexdigest().upper()
            if request.headers.get("if-none-match", "").strip('"') == etag:
                return Response(304, b"", AGGREGATED, headers=(("ETag", f'"{etag}"'), ("Vary", "Accept")))
            return Response(200, data, AGGREGATED, headers=(("ETag", f'"{etag}"'), ("Vary", "Accept")))
        document = self._document(route)
        if document is None:
            return NOT_FOUND
        try:
            form = negotiate(accept, (JSON, YAML), transforms=False)
        except ApiError:
            raise refused((JSON.media_type, YAML.media_type, PROTOBUF_TYPE)) from None
        return Response(200, whole(form.codec, document), form.codec.media_type)

    def _kept(self, key: Any, make: Any) -> bytes:
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = encode(make())
        return found

    def _document(self, route: Route) -> dict[str, Any] | None:
        match route.area:
            case Area.API_VERSIONS:
                return {
                    "kind": "APIVersions",
                    "versions": ["v1"],
                    "serverAddressByClientCIDRs": [
                        {"clientCIDR": "0.0.0.0/0", "serverAddress": self._address}
                    ],
                }
            case Area.GROUPS:
                groups = [_group(group) for group in self._catalog.in_order()]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case Area.GROUP:
                found = self._catalog.groups.get(route.group)
                return None if found is None else {"kind": "APIGroup", "apiVersion": "v1", **_group(found)}
        return self._resources(route)

    def _resources(self, route: Route) -> dict[str, Any] | None:
        group = self._catalog.groups.get(route.group)
        if group is None:
            return None
        if route.version not in group.versions:
            if group.builtin:
                raise no_such_resource()
            return None
        listed: list[dict[str, Any]] = []
        for resource in _of_version(group, route.version):
            listed.extend(_api_resources(resource))
        name = f"{group.name}/{route.version}" if group.name else route.version
        answer: dict[str, Any] = {"kind": "APIResourceList"}
        if group.name:
            answer["apiVersion"] = "v1"
        return {**answer, "groupVersion": name, "resources": listed}

    def _aggregated(self, area: Area) -> dict[str, Any]:
        groups = self._catalog.in_order()
        if area is Area.API_VERSIONS:
            groups = [self._catalog.groups[""]] if "" in self._catalog.groups else []
        items = []
        for group in groups:
            versions = [
                {
                    "version": version,
                    "resources": [_discovered(resource) for resource in _of_version(group, version)],
                    "freshness": "Current",
                }
                for version in group.versions
            ]
            items.append({"metadata": {"name": group.name} if group.name else {}, "versions": versions})
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }


def _wants_aggregated(accept: str) -> bool:
    for part in accept.split(","):
        pieces = {piece.strip() for piece in part.split(";")}
        if "as=APIGroupDiscoveryList" in pieces:
            if {"application/json", "g=apidiscovery.k8s.io", "v=v2"} <= pieces:
                return True
        elif pieces & {"application/json", "application/yaml", "*/*"}:
            return False
    return False


def _of_version(group: ServedGroup, version: str) -> list[Served]:
    return [resource for (at, _), resource in group.resources.items() if at == version]


def _group(group: ServedGroup) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group.name}/{version}", "version": version} for version in group.versions]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def storage_hash(served: Served) -> str:
    """The name of a resource's storage version."""
    group, version = GroupVersion.parse(served.storage_version)
    digest = hashlib.sha256(f"{group}/{version}/{served.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _api_resources(served: Served) -> list[dict[str, Any]]:
    resource = served.resource
    shown: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(served.resource.verbs),
    }
    if resource.short_names:
        shown["shortNames"] = list(resource.short_names)
    if resource.categories:
        shown["categories"] = list(resource.categories)
    if "list" in served.verbs:
        shown["storageVersionHash"] = storage_hash(served)
    listed = [shown]
    for sub in resource.subresources:
        entry: dict[str, Any] = {
            "name": f"{resource.plural}/{sub.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
        }
        if sub.kind and (sub.group, sub.version) != (resource.group, resource.version):
            entry.update(
                {"group": sub.group, "version": sub.version} if sub.group else {"version": sub.version}
            )
        entry["kind"] = sub.kind or resource.kind
        entry["verbs"] = list(sub.verbs)
        listed.append(entry)
    return listed


def _discovered(served: Served) -> dict[str, Any]:
    resource = served.resource
    shown: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(served.resource.verbs),
    }
    if resource.short_names:
        shown["shortNames"] = list(resource.short_names)
    if resource.categories:
        shown["categories"] = list(resource.categories)
    if resource.subresources:
        shown["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {
                    "group": sub.group if sub.kind else resource.group,
                    "version": sub.version or resource.version,
                    "kind": sub.kind or resource.kind,
                },
                "verbs": list(sub.verbs),
            }
            for sub in resource.subresources
        ]
    return shown
