"""Answers of /openapi/v2, /openapi/v3, /version and /.

Documents are made when first asked for, and again after the catalog has changed. Each has a hash of its content: in
the index of v3, as ETag, and as ``?hash=`` that makes an answer good forever (KEP-2896).
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.from_packages import Package
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.catalog.served import Served
from apimachinery.server.describe.openapi_documents import (
    custom_definitions,
    definition_name,
    document_v2,
    document_v3,
    v2_definition,
    with_described_metadata,
)
from apimachinery.server.describe.openapi_merge import merge_v2
from apimachinery.server.describe.openapi_protobuf import MEDIA_TYPES, encode_document
from apimachinery.server.describe.others import Others
from apimachinery.server.http.messages import Request, Response
from apimachinery.server.request.routes import Area, Route
from apimachinery.wire.json import encode

_FOR_EVER = "public, immutable"
_REVALIDATE = "no-cache, private"


class OpenApi:
    """Describes what a catalog serves."""

    def __init__(
        self,
        catalog: Catalog,
        packages: Sequence[Package],
        options: ApiOptions,
        others: Others | None = None,
    ) -> None:
        self._catalog = catalog
        self._others = others or Others()
        self._packages = packages
        self._options = options
        self._generation = (-1, -1)
        self._made: dict[Hashable, tuple[str, bytes]] = {}

    def answer(self, request: Request, route: Route) -> Response:
        """The answer to a path of these areas."""
        match route.area:
            case Area.VERSION:
                return Response(200, encode(self._version()) + b"\n")
            case Area.INDEX:
                return Response(200, encode({"paths": self._index_paths()}) + b"\n")
        generation = (self._catalog.generation, self._others.generation)
        if self._generation != generation:
            self._generation = generation
            self._made.clear()
        if route.area is Area.OPENAPI_V2:
            return self._v2(request)
        return self._group_version(request, route.rest) if route.rest else self._index(request)

    def _version(self) -> dict[str, str]:
        major, _, minor = self._options.emulated_version.partition(".")
        return {
            "major": major,
            "minor": minor,
            "emulationMajor": major,
            "emulationMinor": minor,
            "minCompatibilityMajor": major,
            "minCompatibilityMinor": str(max(int(minor.partition(".")[0] or 0) - 1, 0)),
            "gitVersion": f"v{major}.{minor}.0",
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "",
            "compiler": platform.python_implementation(),
            "platform": f"{platform.system().lower()}/{platform.machine()}",
        }

    def _index_paths(self) -> list[str]:
        paths = [
            "/api",
            "/apis",
            "/healthz",
            "/livez",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/readyz",
            "/version",
        ]
        for group in self._catalog.groups.values():
            if group.name:
                paths.append(f"/apis/{group.name}")
            root = f"/apis/{group.name}" if group.name else "/api"
            paths.extend(f"{root}/{version}" for version in group.versions)
        for name, version in self._others.versions:
            paths += [f"/apis/{name}", f"/apis/{name}/{version}"]
        return sorted(set(paths))

    def _kept(self, key: Hashable, make: Callable[[], bytes]) -> tuple[str, bytes]:
        found = self._made.get(key)
        if found is None:
            data = make()
            found = self._made[key] = (hashlib.sha512(data).hexdigest().upper(), data)
        return found

    def _definitions(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for package in self._packages:
            found.update(with_described_metadata(package.described))
        for served in self._catalog:
            if not served.builtin:
                described = custom_definitions(served, served.described)
                found.update((name, v2_definition(schema)) for name, schema in described)
        return found

    def _v2(self, request: Request) -> Response:
        accept = request.headers.get("accept", "")
        if any(media_type in accept for media_type in MEDIA_TYPES):
            kind = MEDIA_TYPES[1]
            hashed, data = self._kept("v2 protobuf", lambda: encode_document(self._document()))
        else:
            kind = "application/json"
            hashed, data = self._kept("v2", lambda: encode(self._document()))
        return _cached(request, hashed, data, kind)

    def _document(self) -> dict[str, Any]:
        local = [
            served for served in self._catalog if (served.group, served.version) not in self._others.versions
        ]
        document = document_v2(sorted(local, key=_by_name), self._definitions())
        for place in sorted(self._others.versions):
            other = self._others.versions[place].openapi_v2
            if other is not None:
                merge_v2(document, other)
        return document

    def _roots(self) -> dict[str, tuple[str, str]]:
        found = {}
        for group in self._catalog.groups.values():
            for version in group.versions:
                root = f"apis/{group.name}/{version}" if group.name else f"api/{version}"
                found[root] = (group.name, version)
        for (name, version), other in self._others.versions.items():
            root = f"apis/{name}/{version}"
            if other.openapi_v3 is None:
                found.pop(root, None)
            else:
                found[root] = (name, version)
        return found

    def _index(self, request: Request) -> Response:
        def make() -> bytes:
            paths = {}
            for root, place in sorted(self._roots().items()):
                hashed, _ = self._of(root, place)
                paths[root] = {"serverRelativeURL": f"/openapi/v3/{root}?hash={hashed}"}
            return encode({"paths": paths})

        hashed, data = self._kept("v3", make)
        return _cached(request, hashed, data, "application/json")

    def _of(self, root: str, place: tuple[str, str]) -> tuple[str, bytes]:
        other = self._others.versions.get(place)
        if other is not None and other.openapi_v3 is not None:
            return other.openapi_v3

        def make() -> bytes:
            resources = [s for s in self._catalog if (s.group, s.version) == place]
            return encode(self._document_v3(resources))

        return self._kept(root, make)

    def _document_v3(self, resources: list[Served]) -> dict[str, Any]:
        definitions: Mapping[str, Any] = {}
        for package in self._packages:
            definitions = {**definitions, **with_described_metadata(package.described)}
        extra: list[str] = []
        for served in resources:
            extra.append(definition_name(served))
            if not served.builtin:
                definitions = {**definitions, **dict(custom_definitions(served, served.described))}
        return document_v3(sorted(resources, key=_by_name), definitions, extra)

    def _group_version(self, request: Request, root: str) -> Response:
        place = self._roots().get(root)
        if place is None:
            return Response(404, b"", "")
        hashed, data = self._of(root, place)
        wanted = request.first("hash") if request.query_string else ""
        if wanted and wanted != hashed:
            location = f"/openapi/v3/{root}?hash={hashed}"
            return Response(301, b"", "text/plain; charset=utf-8", headers=(("Location", location),))
        return _cached(request, hashed, data, "application/json", for_ever=bool(wanted))


def _by_name(served: Served) -> tuple[str, str, str]:
    return served.group, served.version, served.plural


def _cached(request: Request, hashed: str, data: bytes, kind: str, *, for_ever: bool = False) -> Response:
    etag = f'"{hashed}"'
    headers = (
        ("ETag", etag),
        ("Vary", "Accept"),
        ("Cache-Control", _FOR_EVER if for_ever else _REVALIDATE),
    )
    if request.headers.get("if-none-match", "") == etag:
        return Response(304, b"", kind, headers=headers)
    return Response(200, data, kind, headers=headers)
