"""Discovery: /api, /apis, the groups, their resources; and the aggregated form of it all (KEP-3352).

Documents are made once for each state of the catalog. ``storageVersionHash`` names a resource's storage version by
the first eight bytes of the SHA-256 of ``GROUP/VERSION/KIND``, in base64.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from apimachinery.http.messages import Request, Response
from apimachinery.http.steps import LIGHT, LONG, compute
from apimachinery.meta.asked import Area, Route
from apimachinery.meta.gvk import GroupVersion
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.server.describe.families import DOCUMENTED
from apimachinery.server.describe.others import Others
from apimachinery.server.request.codecs import WireCodec, whole
from apimachinery.server.request.negotiation import AnswerForm, negotiate, negotiate_discovery
from apimachinery.server.request.routers import ROUTERS

NOT_FOUND = Response(404, b"404 page not found\n", "text/plain; charset=utf-8")


MANY = 100
"""From so many groups or resources on a document takes long to write."""


class Discovery:
    """Answers discovery paths from a catalog, and for the group-versions of other servers."""

    def __init__(self, catalog: Catalog, address: str, others: Others | None = None) -> None:
        self._catalog = catalog
        self._address = address
        self._others = others or Others()
        self._generation = (-1, -1)
        self._made: dict[Any, tuple[str, bytes]] = {}

    async def answer(self, request: Request, route: Route, codecs: Iterable[WireCodec]) -> Response:
        """The document of a route, in one of ``codecs``. Raises ApiError 404, 406."""
        generation = (self._catalog.generation, self._others.generation)
        if self._generation != generation:
            self._generation = generation
            self._made.clear()
        accept = request.headers.get("accept", "")
        # ``/apis/`` is the group list alone: kube-apiserver merges what is asked for at ``/apis``.
        is_root = route.area is Area.API_VERSIONS or (
            route.area is Area.GROUPS and not request.path.endswith("/")
        )
        if is_root:
            form = negotiate_discovery(accept, codecs)
            if form.shown_as:
                return await self._all_groups(request, route.area, form)
        document = self._document(route)
        if document is None:
            return NOT_FOUND
        if not is_root:
            form = negotiate(accept, codecs, transforms=False)
        weight = _weight(document.get("groups") or document.get("resources") or ())
        return Response(200, await compute(weight, whole, form.codec, document), form.codec.media_type)

    async def _all_groups(self, request: Request, area: Area, form: AnswerForm) -> Response:
        place = (area, form.codec.media_type)
        made = self._made.get(place)
        if made is None:
            generation = self._generation
            document = self._aggregated(area)
            made = await compute(_weight(document["items"]), _tagged, form.codec, document)
            if generation == self._generation:
                self._made[place] = made
        etag, data = made
        content_type = f"{form.codec.media_type};g=apidiscovery.k8s.io;v=v2;as={form.shown_as}"
        headers = (("ETag", f'"{etag}"'), ("Vary", "Accept"))
        if request.headers.get("if-none-match", "").strip('"') == etag:
            return Response(304, b"", content_type, headers=headers)
        return Response(200, data, content_type, headers=headers)

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
                groups = [_group(name, versions) for name, versions in self._groups()]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case Area.GROUP:
                for name, versions in self._groups():
                    if name == route.group:
                        return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}
                return None
        return self._resources(route)

    def _groups(self) -> list[tuple[str, list[str]]]:
        """All groups but the core one, and their versions, in the order of discovery."""
        if not self._others.versions:
            return [(group.name, list(group.listed)) for group in self._catalog.in_order()]
        return self._others.in_order(self._catalog)

    def _resources(self, route: Route) -> dict[str, Any] | None:
        group = self._catalog.groups.get(route.group)
        if group is None:
            return None
        if route.version not in group.versions:
            if (missing := ROUTERS[group.family].missing()) is not None:
                raise missing
            return None
        listed: list[dict[str, Any]] = []
        for resource in group.of_version(route.version):
            listed.extend(_api_resources(resource))
        name = f"{group.name}/{route.version}" if group.name else route.version
        answer: dict[str, Any] = {"kind": "APIResourceList"}
        if group.name:
            # kube-apiserver leaves it out of the core group's list.
            answer["apiVersion"] = "v1"
        return {**answer, "groupVersion": name, "resources": listed}

    def _aggregated(self, area: Area) -> dict[str, Any]:
        groups = self._groups()
        if area is Area.API_VERSIONS:
            core = self._catalog.groups.get("")
            groups = [] if core is None else [("", list(core.versions))]
        items = []
        for name, versions in groups:
            entries = [self._discovered(name, version) for version in versions]
            items.append({"metadata": {"name": name} if name else {}, "versions": entries})
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }

    def _discovered(self, group: str, version: str) -> dict[str, Any]:
        other = self._others.versions.get((group, version))
        if other is not None:
            return other.discovered
        resources = self._catalog.groups[group].of_version(version)
        return {
            "version": version,
            "resources": [_discovered(resource) for resource in resources],
            "freshness": "Current",
        }


def _weight(listed: Sequence[Any]) -> int:
    return LONG if len(listed) > MANY else LIGHT


def _tagged(codec: WireCodec, document: dict[str, Any]) -> tuple[str, bytes]:
    data = codec.encode(document)
    return hashlib.sha512(data).hexdigest().upper(), data


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def storage_hash(served: Served) -> str:
    """The name of a resource's storage version."""
    group, version = GroupVersion.parse(served.storage_version)
    digest = hashlib.sha256(f"{group}/{version}/{served.kind}".encode()).digest()
    # Eight bytes, as kube-apiserver: storage migrations compare the texts.
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
    if "watch" in served.verbs:  # what is not kept cannot be watched
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


def _response_kind(served: Served, group: str, version: str, kind: str) -> dict[str, Any]:
    """The kind of an answer; group and version are left out where the family does not repeat its own."""
    own = (group, version) == (served.group, served.version)
    if own and not DOCUMENTED[served.family].names_own_version:
        group = version = ""
    return {"group": group, "version": version, "kind": kind}


def _discovered(served: Served) -> dict[str, Any]:
    resource = served.resource
    shown: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": _response_kind(served, resource.group, resource.version, resource.kind),
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
                "responseKind": _response_kind(
                    served,
                    sub.group if sub.kind else resource.group,
                    sub.version or resource.version,
                    sub.kind or resource.kind,
                ),
                "verbs": list(sub.verbs),
            }
            for sub in resource.subresources
        ]
    return shown
