"""Answers of /openapi/v2, /openapi/v3, /version and /.

Documents are made when first asked for, and again after what they describe has changed, or when those that were asked
for later have taken their place (``KeptForms``). Each has a hash of its
content: in the index of v3, as ETag, and as ``?hash=`` that makes an answer good forever (KEP-2896). The index needs
the hashes of all documents, but keeps none of them.

They are made apart from the loop, one answer after the other, from what the catalog had when the answer's turn came.
"""

from __future__ import annotations

import asyncio
import hashlib
import platform
import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from apimachinery.http.messages import Request, Response
from apimachinery.http.steps import LONG, compute
from apimachinery.meta.asked import Area, Route
from apimachinery.meta.json import Json
from apimachinery.server.catalog.catalog import Catalog, ServedGroup
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.catalog.served import Served
from apimachinery.server.catalog.served_package import ServedPackage
from apimachinery.server.describe import openapi_operations as operations
from apimachinery.server.describe.families import DOCUMENTED
from apimachinery.server.describe.front_page import front_page, wants_page
from apimachinery.server.describe.kept_forms import KeptForms
from apimachinery.server.describe.openapi_documents import DocumentPart, document_v2, document_v3, fragment_v2
from apimachinery.server.describe.openapi_merge import merge_v2
from apimachinery.server.describe.openapi_protobuf import V2_TYPES, V3_TYPES, encode_v2, encode_v3
from apimachinery.server.describe.openapi_schemas import (
    custom_definitions,
    names_by_kind,
    of_part,
    with_defaults,
    with_described_metadata,
)
from apimachinery.server.describe.others import Others, OtherVersion
from apimachinery.server.request.negotiation import preferred
from apimachinery.wire.json import DecodeFault, decode, encode, encode_in_steps

_FOR_EVER = ("Cache-Control", "public, immutable")
_JSON = "application/json"
_NO_ACCEPT = Response(200, b"", "")
_CUSTOM_INFO = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}


@dataclass(slots=True)
class _Made:
    """A document: what it was made from, and its hash."""

    source: object
    hash: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is described: none of it changes any more."""

    groups: Mapping[str, ServedGroup]
    resources: Sequence[Served]
    others: Mapping[tuple[str, str], OtherVersion]
    generation: tuple[int, int]


class OpenApi:
    """Describes what a catalog serves; ``issuer`` says whether the server issues tokens."""

    def __init__(
        self,
        catalog: Catalog,
        packages: Sequence[ServedPackage],
        options: ApiOptions,
        others: Others | None = None,
        *,
        issuer: bool = False,
    ) -> None:
        self._catalog = catalog
        self._others = others or Others()
        self._packages = packages
        self._options = options
        self._issuer = issuer
        self._made: dict[str, _Made] = {}
        self._forms = KeptForms()
        self._turn = asyncio.Lock()
        self._seen = _Seen({}, (), {}, (-1, -1))
        self._parts: dict[Hashable, DocumentPart] = {}
        self._info = {"title": "Kubernetes", "version": options.emulated_version}

    @property
    def weight(self) -> int:
        """Bytes of documents that are kept."""
        return self._forms.weight

    async def answer(self, request: Request, route: Route) -> Response:
        """The answer to a path of these areas."""
        match route.area:
            case Area.VERSION:
                return Response(200, encode(self._version()) + b"\n")
            case Area.INDEX:
                if wants_page(request):
                    return front_page(self._options.emulated_version)
                return Response(200, encode({"paths": self._index_paths()}) + b"\n")
        async with self._turn:
            generation = (self._catalog.generation, self._others.generation)
            if self._seen.generation != generation:
                groups, others = dict(self._catalog.groups), dict(self._others.versions)
                self._seen = _Seen(groups, self._catalog.described(), others, generation)
                roots = {"v2", *(f"v3/{root}" for root in self._roots())}
                for name in self._made.keys() - roots:
                    del self._made[name]
                    self._forms.drop(name)
            return await compute(LONG, self._described, request, route)

    def _described(self, request: Request, route: Route) -> Response:
        if route.area is Area.OPENAPI_V2:
            return self._v2(request)
        return self._v3(request, route.rest) if route.rest else self._index(request)

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

    @cached_property
    def _definitions(self) -> dict[str, Any]:
        """Those of the packages, as version 2 has them."""
        found: dict[str, Any] = {}
        for package in self._packages:
            found.update(with_described_metadata(package.described))
        return found

    @cached_property
    def _definitions_v3(self) -> dict[str, Any]:
        found = self._definitions
        for package in self._packages:
            if package.zero_values is not None:
                written = {name: fields for name, (fields, _) in package.zero_values.items()}
                found = with_defaults(found, written)
            found = with_defaults(found, package.defaults)
        return found

    @cached_property
    def _names(self) -> dict[Any, str]:
        return names_by_kind(self._definitions)

    def _kept(self, name: str, source: object, document: Callable[[], bytes]) -> _Made:
        """A document's hash, made again if it is made from something else now; its JSON is kept as a form."""
        made = self._made.get(name)
        if made is None or made.source != source:
            data = document()
            made = self._made[name] = _Made(source, hashlib.sha512(data).hexdigest().upper())
            self._forms.drop(name)
            self._forms.keep(name, _JSON, data)
        return made

    # version 2

    def _v2(self, request: Request) -> Response:
        vary = (("Vary", "Accept-Encoding"), ("Vary", "Accept"))
        kind = _media_type(request, V2_TYPES)
        if not kind:
            return Response(406, b"", "", headers=vary)
        made = self._kept("v2", self._seen.generation, self._document_v2)
        data = self._forms.get("v2", kind)
        if data is None:
            data = self._forms.get("v2", _JSON) or self._document_v2()
            if kind != _JSON:
                data = encode_v2(decode(data))
            self._forms.keep("v2", kind, data)
        return _cached(request, made.hash, data, kind, vary)

    def _document_v2(self) -> bytes:
        document = document_v2(self._fragments(), self._info)
        others = [other for _, other in sorted(self._seen.others.items()) if other.openapi_v2 is not None]
        if others:
            merged = decode(document)
            for other in others:
                merge_v2(merged, other.openapi_v2 or {})
            document = encode_in_steps(merged)
        return document

    def _fragments(self) -> list[DocumentPart]:
        """What everything that is served adds to the document; of what has not changed, what was made before."""
        seen = self._seen
        kept, self._parts = self._parts, {}

        def part(key: Hashable, made: Callable[[], DocumentPart]) -> None:
            found = kept.get(key)
            self._parts[key] = made() if found is None else found

        part("packages", lambda: fragment_v2((), self._definitions))
        part("roots", lambda: fragment_v2(operations.of_roots(issuer=self._issuer)))
        for group in seen.groups.values():
            name = group.name
            if DOCUMENTED[group.family].groups and name:
                part(("group", name), lambda name=name: fragment_v2([operations.of_group(name)]))  # type: ignore[misc]
            for version in group.listed:
                if group.has_builtin(version) and (name, version) not in seen.others:
                    part(
                        ("version", name, version),
                        lambda at=(name, version): fragment_v2([operations.of_version(*at)]),  # type: ignore[misc]
                    )
        listed = {
            served.number
            for group in seen.groups.values()
            for version in group.listed
            for served in group.of_version(version)
        }
        for served in seen.resources:
            if (served.group, served.version) not in seen.others:
                part(
                    ("resource", served.number, served.number in listed),
                    lambda served=served: self._fragment(served, listed=served.number in listed),  # type: ignore[misc]
                )
        return list(self._parts.values())

    def _fragment(self, served: Served, *, listed: bool) -> DocumentPart:
        """What a resource adds; only the definition of one that discovery does not list."""
        found = operations.of_resource(served, self._names) if listed else ()
        own = {} if served.resource.definition else dict(custom_definitions(served, v2=True))
        return fragment_v2(found, own, [operations.definition_name(served)])

    def _operations(self, group: str, version: str) -> list[operations.Operation]:
        resources = self._resources(group, version)
        builtin = self._seen.groups[group].has_builtin(version)
        found = [operations.of_version(group, version)] if builtin else []
        for served in resources:
            found += operations.of_resource(served, self._names)
        return found

    def _resources(self, group: str, version: str) -> list[Served]:
        found = self._seen.groups.get(group)
        if found is None:
            return []
        return sorted(found.of_version(version), key=lambda served: served.plural)

    # version 3

    def _roots(self) -> dict[str, tuple[str, str]]:
        """The documents there are, and the group and version of each: no version for those of groups, and for those of
        paths that no group has (``api``) neither."""
        found = {each.path.strip("/"): ("", "") for each in operations.of_roots(issuer=self._issuer)}
        for group in self._seen.groups.values():
            if DOCUMENTED[group.family].groups and group.name:
                found[f"apis/{group.name}"] = (group.name, "")
            for version in group.listed:
                root = f"apis/{group.name}/{version}" if group.name else f"api/{version}"
                found[root] = (group.name, version)
        for (name, version), other in self._seen.others.items():
            root = f"apis/{name}/{version}"
            if other.openapi_v3 is None:
                found.pop(root, None)
            else:
                found[root] = (name, version)
        return found

    def _index(self, request: Request) -> Response:
        paths = {}
        for root, place in sorted(self._roots().items()):
            paths[root] = {"serverRelativeURL": f"/openapi/v3/{root}?hash={self._hash_of(root, place)}"}
        data = encode({"paths": paths})
        return _cached(request, hashlib.sha512(data).hexdigest().upper(), data, "text/plain; charset=utf-8")

    def _other(self, place: tuple[str, str]) -> tuple[str, bytes] | None:
        other = self._seen.others.get(place)
        return None if other is None else other.openapi_v3

    def _hash_of(self, root: str, place: tuple[str, str]) -> str:
        if (other := self._other(place)) is not None:
            return other[0]
        return self._of(root, place).hash

    def _of(self, root: str, place: tuple[str, str]) -> _Made:
        resources = self._resources(*place) if place[1] else []
        return self._kept(
            f"v3/{root}", resources, lambda: encode_in_steps(self._document_v3(root, place, resources))
        )

    def _form_of(self, root: str, place: tuple[str, str], kind: str) -> tuple[str, bytes] | None:
        """The hash and the bytes of a document; None where another server's has no such form."""
        if (other := self._other(place)) is not None:
            if kind == _JSON:
                return other
            try:
                return other[0], encode_v3(decode(other[1]))
            except (DecodeFault, AttributeError, TypeError, ValueError, KeyError, struct.error):
                return None
        made = self._of(root, place)
        data = self._forms.get(f"v3/{root}", kind)
        if data is None:
            document = self._document_v3(root, place, made.source)
            data = encode_in_steps(document) if kind == _JSON else encode_v3(document)
            self._forms.keep(f"v3/{root}", kind, data)
        return made.hash, data

    def _document_v3(self, root: str, place: tuple[str, str], resources: Any) -> Json:
        group, version = place
        if not version:
            roots = {each.path.strip("/"): each for each in operations.of_roots(issuer=self._issuer)}
            found = [operations.of_group(group) if group else roots[root]]
            return document_v3(found, self._definitions_v3, self._info)
        extra = [operations.definition_name(served) for served in resources]
        if self._seen.groups[group].has_builtin(version):
            shown = of_part(self._definitions_v3, place)
            return document_v3(self._operations(group, version), shown, self._info, extra)
        definitions = of_part(self._definitions_v3, None)
        for served in resources:
            definitions.update(custom_definitions(served))
        return document_v3(self._operations(group, version), definitions, _CUSTOM_INFO, extra, secured=False)

    def _v3(self, request: Request, root: str) -> Response:
        place = self._roots().get(root)
        if place is None:
            return Response(404, b"", "")
        kind = _media_type(request, V3_TYPES)
        if kind == "":
            return _NO_ACCEPT
        vary = (("Vary", "Accept"),)
        found = None if kind is None else self._form_of(root, place, kind)
        if kind is None or found is None:
            return Response(406, b"", "", headers=vary)
        hashed, data = found
        wanted = request.sought_first("hash") or ""
        if wanted and wanted != hashed:
            location = ("Location", f"/openapi/v3/{root}?hash={hashed}")
            return Response(301, b"", kind, headers=(("ETag", f'"{hashed}"'), *vary, location))
        return _cached(request, hashed, data, kind, (*vary, _FOR_EVER) if wanted else vary)


def _media_type(request: Request, protobuf: tuple[str, str]) -> str | None:
    """The media type of the answer; None for 406, empty where ``Accept`` says nothing that can be read (which version 3
    answers with nothing)."""
    accept = request.headers.get("accept", "")
    if not accept or accept == _JSON:
        return _JSON
    asked = preferred(accept, (_JSON, *protobuf))
    return protobuf[0] if asked == protobuf[1] else asked


def _cached(
    request: Request, hashed: str, data: bytes, kind: str, headers: tuple[tuple[str, str], ...] = ()
) -> Response:
    etag = f'"{hashed}"'
    headers = (("ETag", etag), *headers)
    if (known := request.headers.get("if-none-match", "")) and _is_known(known, etag):
        if request.method in ("GET", "HEAD"):
            return Response(304, b"", "", headers=headers)
        return Response(412, b"", kind, headers=headers)  # RFC 9110 section 13.1.2
    return Response(200, data, kind, headers=headers)


def _is_known(known: str, etag: str) -> bool:
    """Whether an ``If-None-Match`` names an ETag (RFC 9110 section 13.1.2: ``W/`` makes no difference)."""
    tags = (tag.strip().removeprefix("W/") for tag in known.split(","))
    return any(tag in ("*", etag) for tag in tags)
